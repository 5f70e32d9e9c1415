"""What a command's INPUT is, on its own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.cli.inputs import resolve_input
from isotrope.cli.scan import suggest_command
from isotrope.errors import InputError
from isotrope.findings import Findings, Statement, Verdict
from isotrope.sources.input import Input
from testkit.command import Command, one_sentence


@pytest.mark.parametrize("name", ["model.onnx", "model.gguf", "folder/config.json", "folder/modules.json"])
def test_models_by_their_files(name: str, tmp_path: Path) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("{}")
    given = str(file if file.parent == tmp_path else file.parent)
    assert resolve_input(given, Input()) == Input(model=given)


@pytest.mark.parametrize("input", ["embeddings.npy", "rows.H5", "lancedb:folder#table", "index.faiss"])
def test_vectors_take_no_model_and_no_text(input: str) -> None:
    for given in ("model", "text"):
        with pytest.raises(InputError, match=rf"holds vectors, and vectors take no {given}; leave out --{given}\.\Z"):
            resolve_input(input, Input(**{given: "x"}))
    # A table may hold the text for a model.
    assert resolve_input("a.parquet", Input(model="m")) == Input(model="m", text="a.parquet")


def test_a_folder_of_vectors_that_do_not_belong_together_offers_one(isotrope: Command) -> None:
    np.save("labels.npy", np.arange(300))
    np.save("my rows.npy", np.random.default_rng(0).normal(size=(300, 8)))
    said = one_sentence(isotrope("scan", "."))
    assert said.startswith("isotrope: labels.npy has shape (300,)")
    assert said.endswith("; type isotrope scan 'my rows.npy' to scan vectors that lie in it.\n")
    assert "; type" not in one_sentence(isotrope("scan", ".", "--layers", "3"))
    Path("labels.npy").unlink()
    assert isotrope("scan", ".", "--json").json["source"]["width"] == 8


def test_a_folder_of_folders_of_vectors_offers_one(isotrope: Command) -> None:
    Path("below").mkdir()
    np.save("below/rows.npy", np.ones((3, 2)))
    said = one_sentence(isotrope("scan", "."))
    assert "no text in ." in said
    assert said.endswith("; type isotrope scan below to scan vectors that lie in it.\n")


@pytest.mark.parametrize(
    ("level", "word", "reading", "command"),
    [
        (3, "collapsed", Input(vectors="a b.npy", column="x"), "isotrope advise 'a b.npy' --column x"),
        (1, "leaning", Input(model="org/m", text="t.txt"), "isotrope advise --model org/m --text t.txt"),
        (1, "leaning", Input(text="-"), "isotrope advise --text FILE"),
        (1, "leaning", Input(), "isotrope advise --text python-manual"),  # advice is given on a text alone
        (0, "healthy", Input(vectors="a.npy"), "isotrope scan a.npy --fail-on 'mean_cosine > 0.5'"),
        (0, "healthy", Input(vectors="s3://k:word@b/a.npy"), "isotrope scan 's3://***@b/a.npy' --fail-on"),
        (0, "healthy", Input(model="org/m"), "isotrope compare 'the run' OTHER_RUN"),
        (0, "too few rows", Input(vectors="a.npy"), "isotrope catalogue"),
    ],
)
def test_the_next_command(level: int, word: str, reading: Input, command: str) -> None:
    findings = Findings([], verdict=Verdict(word, (Statement(level, "…", (0,)),)))
    assert suggest_command(findings, reading, Path("the run")).startswith(command)


def test_a_scan_ends_with_the_next_command(isotrope: Command, collapsed: Path, healthy: Path) -> None:
    assert isotrope("scan", collapsed.name).out.endswith("\nNext: isotrope advise collapsed.npy\n")
    assert "Next:" not in isotrope("scan", healthy, "--json").out
