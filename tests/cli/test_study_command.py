"""isotrope study on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import Command

from models import save_model, texts


def test_a_study_as_json_and_as_a_folder_that_goes_on(isotrope: Command, tmp_path: Path) -> None:
    model = save_model(tmp_path / "small", "bert")
    (tmp_path / "words.txt").write_text("\n".join(texts(80)))
    given = ["study", "norm-variance", "--models", str(model), "--text", str(tmp_path / "words.txt"), "--quick"]
    folder = ["-o", str(tmp_path / "s"), "--device", "cpu"]
    found = json.loads(isotrope(*given, *folder, "--json").out)
    assert found["study"] == "norm-variance"
    assert any(claim["where"] == "Eq. 13" and claim["outcome"] == "agrees" for claim in found["claims"])
    assert (tmp_path / "s" / "study.md").is_file()
    refused = isotrope(*given, *folder)
    assert refused.code == 2
    assert "already holds a study" in refused.err
    shown = isotrope(*given, *folder, "--resume")
    assert shown.code == 0
    assert ", Eq. 13): Q = M + V_W + V_B holds" in shown.out
    assert "Results:" in shown.out


def test_what_cannot_be_is_said_in_one_sentence(
    isotrope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ISOTROPE_DATA", raising=False)
    assert "name it with --data" in isotrope("study", "latent-geometry", "-o", str(tmp_path / "a")).err
    assert "name it with -o" in isotrope("study", "anisotropy", "--resume").err
    result = isotrope("study", "latent-geometry", "predict", "m", "--data", str(tmp_path))
    assert result.code == 2
    assert "authors' files" in result.err
    bad = isotrope("study", "latent-geometry", "--alphas", "x", "-o", str(tmp_path / "b"))
    assert "expected numbers" in bad.err
