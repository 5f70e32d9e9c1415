"""What a run lacks for a figure, what no figure is, what cannot be written: one sentence each."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from isotrope.errors import InputError, MissingExtra, StoreError
from isotrope.figures import FIGURES, draw, save
from testkit.known_run import KnownRun


def test_vectors_have_what_needs_no_tokens_and_no_layers(vectors: Path) -> None:
    drawable = {"isoscore", "pca", "softdecay-spectra", "spectra", "squared-norms", "lsds"}
    for name in drawable:
        assert draw(vectors, name).axes
    for name in set(FIGURES.names()) - drawable - {"tsne"}:
        with pytest.raises(InputError) as refused:
            draw(vectors, name)
        words = str(refused.value)
        assert words.endswith(".")
        assert "scan" in words or "layers" in words


def test_lack_names_what_and_how_to_get_it(vectors: Path) -> None:
    with pytest.raises(
        InputError, match=r"'norm-variance' needs the table of token types, which the run .* --measures tokens"
    ):
        draw(vectors, "norm-variance")
    with pytest.raises(InputError, match=r"'uniformity' needs a value of sequence_uniformity, cls_uniformity, which"):
        draw(vectors, "uniformity")


def test_a_run_without_a_sample_or_statistics(vectors: Path, tmp_path: Path) -> None:
    import shutil

    import numpy as np

    import isotrope

    isotrope.scan(vectors=np.random.default_rng(0).normal(size=(300, 5)), sample=0, output=tmp_path / "none")
    with pytest.raises(InputError, match=r"needs a sample of rows.* --sample"):
        draw(tmp_path / "none", "pca")
    shutil.copytree(vectors, tmp_path / "bare")
    shutil.rmtree(tmp_path / "bare" / "statistics")
    with pytest.raises(InputError, match="needs the statistics of its layers"):
        draw(tmp_path / "bare", "softdecay-spectra")


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("norm-varianc", "did you mean 'norm-variance'"),
        ("mean_cosin", "did you mean 'mean_cosine'"),
        ("zzzzzz", "--list"),
        ("vrm", "needs a value of vrm, which .* scan with --measures vrm"),
        ("drift_correlation_spearman", "one number for all layers"),
    ],
)
def test_names(name: str, word: str, known: KnownRun) -> None:
    with pytest.raises(InputError, match=word):
        draw(known.folder, name)


def test_layers(known: KnownRun) -> None:
    with pytest.raises(InputError, match=r"has no layer '9'; it has 0, 1, 2, 3\."):
        draw(known.folder, "norm-variance", layer=9)
    with pytest.raises(InputError, match="not of a single layer; leave out the layer"):
        draw(known.folder, "spectra", layer=1)


def test_not_a_run(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run"):
        draw(tmp_path, "spectra")


@pytest.mark.parametrize(
    ("file", "word"),
    [
        ("figure.doc", r"ends in one of \.pdf, \.svg, \.png"),
        ("figure", r"ends in one of \.pdf, \.svg, \.png"),
        ("nowhere/figure.pdf", "no folder"),
        ("folder.pdf", "is a folder"),
    ],
)
def test_files(file: str, word: str, vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "folder.pdf").mkdir()
    with pytest.raises(StoreError, match=word):
        save(draw(vectors, "spectra"), tmp_path / file)
    assert [path.name for path in tmp_path.iterdir()] == ["folder.pdf"]


def test_a_file_that_is_there_is_replaced_whole(vectors: Path, tmp_path: Path) -> None:
    (tmp_path / "figure.SVG").write_text("old")
    save(draw(vectors, "spectra"), tmp_path / "figure.SVG")
    assert (tmp_path / "figure.SVG").read_text("utf-8").rstrip().endswith("</svg>")
    assert [path.name for path in tmp_path.iterdir()] == ["figure.SVG"]


def test_without_matplotlib(vectors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'matplotlib'.*isotrope\[figures\]"):
        draw(vectors, "spectra")


def test_without_opentsne(known: KnownRun, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openTSNE", None)
    with pytest.raises(MissingExtra, match=r"needs the package 'openTSNE'.*isotrope\[figures\]"):
        draw(known.folder, "tsne")
