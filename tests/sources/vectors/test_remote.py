"""Files at URLs give the same rows as the same files here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.media.corpus import open_media
from isotrope.sources.source import Source
from isotrope.sources.vectors.source import ArraySource
from isotrope.storage.files import write_arrays

fsspec = pytest.importorskip("fsspec")

ROWS = np.random.default_rng(4).normal(size=(500, 6)).astype(np.float32)


@pytest.fixture
def memory(tmp_path: Path) -> str:
    """A folder of the file system in memory, with a file of each kind."""
    system = fsspec.filesystem("memory")
    folder = f"/{tmp_path.name}"
    np.save(tmp_path / "a.npy", ROWS)
    np.savez(tmp_path / "b.npz", rows=ROWS)
    write_arrays(tmp_path / "c.safetensors", {"rows": ROWS})
    pd.DataFrame({"x": list(ROWS), "kind": ["k", "l"] * 250}).to_parquet(tmp_path / "d.parquet", row_group_size=130)
    (tmp_path / "texts.txt").write_text("one text\nanother text\n")
    for path in tmp_path.iterdir():
        system.pipe_file(f"{folder}/{path.name}", path.read_bytes())
    (tmp_path / "a.npy").unlink()
    return f"memory:/{folder}"


def _rows(source: Source, start: int = 0) -> np.ndarray:
    return np.concatenate([batch.layers[0] for batch in source.batches(start)])


@pytest.mark.parametrize("name", ["a.npy", "b.npz", "c.safetensors", "d.parquet"])
def test_every_kind_of_file(name: str, memory: str) -> None:
    source = ArraySource(f"{memory}/{name}", batch_rows=70)
    np.testing.assert_array_equal(_rows(source), ROWS)
    np.testing.assert_array_equal(_rows(source, start=3), ROWS[210:])
    (facts,) = source.describe()["files"]
    assert facts["path"] == f"{memory}/{name}"
    assert facts["bytes"] == fsspec.filesystem("memory").size(f"{memory}/{name}")


def test_a_folder_and_groups(memory: str) -> None:
    system = fsspec.filesystem("memory")
    system.pipe_file(f"{memory}/set/2.parquet", system.cat_file(f"{memory}/d.parquet"))
    system.pipe_file(f"{memory}/set/1.parquet", system.cat_file(f"{memory}/d.parquet"))
    system.pipe_file(f"{memory}/set/readme.md", b"words")
    source = ArraySource(f"{memory}/set", group_by="kind")
    assert source.total == 1000
    (batch,) = source.batches()
    assert batch.rows.group is not None
    assert batch.rows.group.tolist() == ["k", "l"] * 500
    system.mkdir(f"{memory}/none")
    with pytest.raises(InputError, match=r"holds no file that ends in \.npy"):
        ArraySource(f"{memory}/none")


def test_refusals(memory: str) -> None:
    system = fsspec.filesystem("memory")
    with pytest.raises(InputError, match=r"there is no file memory://.*/other\.npy"):
        ArraySource(f"{memory}/other.npy")
    system.pipe_file(f"{memory}/short.npy", system.cat_file(f"{memory}/a.npy")[:-100])
    with pytest.raises(InputError, match=r"cut short: 12000 bytes of numbers expected, 11900 found"):
        ArraySource(f"{memory}/short.npy")
    with pytest.raises(InputError, match="there is nothing at memory://"):
        open_corpus(f"{memory}/nothing.txt")


def test_texts_are_copied_and_told_by_their_url(memory: str) -> None:
    corpus = open_corpus(f"{memory}/texts.txt")
    assert [text.text for text in corpus] == ["one text", "another text"]
    assert corpus.describe()["path"] == f"{memory}/texts.txt"
    fsspec.filesystem("memory").pipe_file(f"{memory}/pictures/a.png", b"...")
    media = open_media(f"{memory}/pictures", "image")
    assert [Path(item.data).name for item in media] == ["a.png"]
    assert media.facts()["path"] == f"{memory}/pictures"


def test_a_scan(memory: str) -> None:
    found = isotrope.scan(vectors=f"{memory}/a.npy")
    here = isotrope.scan(vectors=ROWS)
    assert [r.value for r in found.readings] == pytest.approx([r.value for r in here.readings], nan_ok=True)
