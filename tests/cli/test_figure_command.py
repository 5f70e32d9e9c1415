"""isotrope figure: figures for print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.figures import FIGURES
from testkit.command import Command, one_sentence


@pytest.fixture
def run(isotrope: Command, healthy: Path) -> Command:
    assert isotrope("scan", healthy, "-o", "run").code == 0
    return isotrope


def test_list_says_what_each_shows_answers_and_needs(isotrope: Command) -> None:
    result = isotrope("figure", "--list")
    assert (result.code, result.err) == (0, "")
    for record in FIGURES:
        assert f"{record.name}  {record.shows}" in result.out
        assert record.answers in result.out
    listed = isotrope("figure", "--list", "--json").json
    assert [entry["name"] for entry in listed] == sorted(FIGURES.names())
    assert {"shows", "answers", "needs", "measures", "width_inches", "layer"} <= listed[0].keys()


@pytest.mark.parametrize(("kind", "start"), [("pdf", b"%PDF-"), ("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_writes_the_kind_of_file_asked_for(kind: str, start: bytes, run: Command) -> None:
    result = run("figure", "run", "spectra", "-o", f"figure.{kind}")
    assert (result.code, result.err) == (0, "")
    assert Path(f"figure.{kind}").read_bytes().startswith(start)
    assert result.out.startswith(f"figure.{kind}: Cumulative distribution")
    assert "after Yan et al. 2022" in result.out


def test_json_is_one_document(run: Command) -> None:
    document = run("figure", "run", "mean_cosine", "-o", "figure.svg", "--json").json
    assert (document["name"], document["file"], document["layer"]) == ("mean_cosine", "figure.svg", None)
    assert document["width_inches"] == 3.25
    assert document["caption"].startswith("Mean cosine in each layer")


def test_names_the_layer_in_the_caption(isotrope: Command) -> None:
    rng = np.random.default_rng(0)
    np.savez("layers.npz", rng.normal(size=(60, 4)))
    assert isotrope("scan", "layers.npz", "-o", "run").code == 0
    pytest.importorskip("openTSNE")
    document = isotrope("figure", "run", "tsne", "--layer", "-1", "-o", "figure.svg", "--json").json
    assert document["layer"] == 0
    assert ", layer 0; after" in document["caption"]


def test_refusals(run: Command) -> None:
    assert "did you mean 'spectra'" in one_sentence(run("figure", "run", "spectr", "-o", "f.pdf"))
    assert "ends in one of" in one_sentence(run("figure", "run", "spectra", "-o", "f.gif"))
    assert "--list" in one_sentence(run("figure"))
    assert "-o FILE" in one_sentence(run("figure", "run", "spectra"))
    assert "needs the table of token types" in one_sentence(run("figure", "run", "norm-variance", "-o", "f.pdf"))
    assert "is not a run" in one_sentence(run("figure", "nosuch", "spectra", "-o", "f.pdf"))
    assert "no layer '7'" in one_sentence(run("figure", "run", "tsne", "--layer", "7", "-o", "f.pdf"))
    assert not list(Path().glob("*f.pdf*"))
