"""isotrope study on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import faiss
import pytest

from testkit.command import Command
from testkit.models import save_model, texts
from testkit.paths import SHARED_DATA

MODELS = SHARED_DATA / "latent_geometry"


@pytest.mark.long
def test_a_study_as_json_and_as_a_folder_that_goes_on(isotrope: Command, tmp_path: Path) -> None:
    model = save_model(tmp_path / "small", "bert")
    (tmp_path / "words.txt").write_text("\n".join(texts(80)))
    given = ["study", "norm-variance", "--models", str(model), "--text", str(tmp_path / "words.txt"), "--quick"]
    folder = ["-o", str(tmp_path / "s"), "--device", "cpu"]
    found = json.loads(isotrope(*given, *folder, "--json").out)
    assert found["study"] == "norm-variance"
    assert any(claim["where"] == "Eq. 13" and claim["outcome"] == "agrees" for claim in found["claims"])
    assert (tmp_path / "s" / "study.html").is_file()
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
    model = save_model(tmp_path / "small", "bert")
    (tmp_path / "words.txt").write_text("\n".join(texts(20)))
    (tmp_path / "empty.txt").write_text("")
    read = ["--text", tmp_path / "words.txt", "--quick"]
    for asked, said in (
        (["latent-geometry"], "name it with --data"),
        (["norm-variance", *read, "--models", tmp_path / "none"], "there is no model folder"),
        (["norm-variance", *read, "--models", f"{model},{model}/"], "names of their own"),
        (["norm-variance", "--models", model, "--text", tmp_path / "empty.txt"], "is empty"),
        (["norm-variance", *read, "--models", model, "--texts", "-3"], "expected 1 or more"),
        (["anisotropy", *read, "--models", model, "--width", "200"], "a multiple of 64"),
        (["anisotropy", *read, "--models", model, "--blocks", "7"], "has blocks 0 to 2"),
        (["anisotropy", *read, "--models", model, "--blocks", "x"], "expected numbers"),
        (["uniformity", *read, "--models", model, "--seeds", "0"], "got 0 seeds"),
        (["uniformity", *read, "--models", model, "--fit-text", tmp_path / "nli.txt"], "nli.txt"),
        (["uniformity", *read, "--models", model, "--fit-text", "-"], "can be read once"),
        (["all", tmp_path / "none", *read], "there is no model folder"),
    ):
        for more in ([], ["--json"]):
            refused = isotrope("study", *asked, *more, "-o", tmp_path / "out", "--device", "cpu")
            assert refused.code == 2, asked
            assert said in refused.err
            assert not (tmp_path / "out").exists()
    assert "name it with -o" in isotrope("study", "anisotropy", "--resume").err
    result = isotrope("study", "latent-geometry", "predict", "m", "--data", str(tmp_path))
    assert result.code == 2
    assert "authors' files" in result.err
    bad = isotrope("study", "latent-geometry", "--levels", "x", "-o", str(tmp_path / "b"))
    assert "expected numbers" in bad.err


def test_a_prediction_tells_its_skill_and_warns(
    isotrope: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not MODELS.is_dir():
        pytest.skip(f"there is no {MODELS}; set ISOTROPE_DATA to the folder of the data sets.")
    monkeypatch.setattr("isotrope.studies.latent_geometry.prediction.SEQUENCES", 60)
    (tmp_path / "data" / "wikitext-2").mkdir(parents=True)
    (tmp_path / "data" / "latent_geometry").symlink_to(MODELS)
    lines = [f"{text} ." for text in texts(120) if len(text.split()) > 2]
    (tmp_path / "data" / "wikitext-2" / "valid.txt").write_text("\n".join(lines))
    model = save_model(tmp_path / "small", "bert")
    given = ["study", "latent-geometry", "predict", model, "--data", tmp_path / "data", "--device", "cpu"]
    found = isotrope(*given, "--json").json
    assert found["architecture"] is None
    assert len(found["predictions"]) + sum("undefined" in text for text in found["warnings"]) == 19
    assert any("none of BERT-small" in text for text in found["warnings"])
    assert found["quantizer"] == f"faiss {faiss.__version__}"
    for p in found["predictions"]:
        assert (p["glue"] is not None) == p["inside"]
        assert not p["inside"] or 0 <= p["low"] <= p["glue"] <= p["high"] <= 1
        assert p["quantizer"] == (found["quantizer"] if p["measure"].endswith(("additive", "product")) else "")
    assert any(text.startswith("the sequences are sentences of wikitext-2/valid.txt") for text in found["warnings"])
    shown = isotrope(*given).out
    assert "their own mean by 9.4, which no measure beats" in shown
    (tmp_path / "data" / "wikitext-2" / "valid.txt").unlink()
    assert "WikiText-2 and Penn Treebank only" in isotrope(*given).err
