"""faiss index files of every kind that gives its vectors back; others, and damaged ones, are refused in words."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError, StoreError
from isotrope.repairs import Centering, apply_to_store
from isotrope.sources.vectors.source import ArraySource
from isotrope.sources.vectors.stores.address import parse
from isotrope.storage.locks import reserve_path

faiss: Any = pytest.importorskip("faiss")

ROWS = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
IDS = np.arange(400, dtype=np.int64)[::-1] * 3 + 7


def written(path: Path, kind: str, ids: bool) -> Path:
    index = faiss.index_factory(8, kind)
    index.train(ROWS)
    index.add_with_ids(ROWS, IDS) if ids else index.add(ROWS)
    faiss.write_index(index, str(path))
    return path


def read(path: Path) -> Any:
    return np.concatenate([batch.layers[0] for batch in ArraySource(path, batch_rows=300).batches()])


@pytest.mark.parametrize("kind", ["Flat", "HNSW8", "NSG8,Flat", "IVF4,Flat"])
def test_exact_kinds(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path / "a.faiss", kind, False)
    np.testing.assert_array_equal(read(path), ROWS)
    assert "note" not in ArraySource(path).describe()["files"][0]


@pytest.mark.parametrize("kind", ["IDMap,Flat", "IDMap2,Flat", "IDMap,HNSW8", "IDMap,IVF4,Flat"])
def test_ids_around_an_index_keep_the_order_of_adding(tmp_path: Path, kind: str) -> None:
    np.testing.assert_array_equal(read(written(tmp_path / "a.faiss", kind, True)), ROWS)


def test_inverted_lists_come_by_id(tmp_path: Path) -> None:
    np.testing.assert_array_equal(read(written(tmp_path / "a.faiss", "IVF4,Flat", True)), ROWS[::-1])


@pytest.mark.parametrize("kind", ["SQ8", "SQfp16", "PQ4x4", "HNSW8_SQ8", "IVF4,PQ4x4", "IVF4,SQ8", "OPQ4,IVF4,PQ4x4"])
def test_quantised_kinds_are_approximations_and_say_so(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path / "a.faiss", kind, False)
    # Computed apart: what faiss gives back one row at a time.
    index = faiss.read_index(str(path))
    if "IVF" in kind:
        faiss.extract_index_ivf(index).make_direct_map()
    np.testing.assert_allclose(read(path), np.stack([index.reconstruct(i) for i in range(400)]), atol=1e-6)
    assert "approximations" in ArraySource(path).describe()["files"][0]["note"]


@pytest.mark.parametrize("kind", ["LSH", "IVF4,PQ4x4fs", "PQ4x4fs", "PCA4,L2norm,Flat"])
def test_kinds_that_give_nothing_back_are_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match=r"gives no vectors back|cannot undo"):
        ArraySource(written(tmp_path / "a.faiss", kind, False))


@pytest.mark.parametrize(
    ("kind", "ids"), [("Flat", False), ("IVF4,Flat", True), ("IDMap,Flat", True), ("IVF4,PQ4x4", False)]
)
def test_the_new_index_is_what_faiss_would_write(tmp_path: Path, kind: str, ids: bool) -> None:
    source = ArraySource(written(tmp_path / "a.faiss", kind, ids))
    rows = read(tmp_path / "a.faiss")
    repair, store = Centering().fit(rows), source.store
    assert store is not None
    target = parse(f"faiss:{tmp_path / 'new index'}")
    assert target is not None
    apply_to_store(repair, store, store.target(target, None, 8))
    flat = faiss.IndexFlatL2(8)
    expected = faiss.IndexIDMap2(flat) if ids else flat
    order = np.sort(IDS) if kind.startswith("IVF") else IDS
    expected.add_with_ids(repair.transform(rows), order) if ids else expected.add(repair.transform(rows))
    faiss.write_index(expected, str(tmp_path / "expected"))
    assert (tmp_path / "new index").read_bytes() == (tmp_path / "expected").read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.faiss", "expected", "new index"]


def test_a_folder_of_indexes_is_read_like_one_of_files(tmp_path: Path) -> None:
    written(tmp_path / "a.faiss", "Flat", False)
    np.save(tmp_path / "b.npy", ROWS)
    assert ArraySource(tmp_path).total == 800
    assert ArraySource(tmp_path).store is None


def test_a_file_that_appears_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    store, address = ArraySource(written(tmp_path / "a.faiss", "Flat", False)).store, parse(str(tmp_path / "new.faiss"))
    assert store is not None
    assert address is not None
    target = store.target(address, None, 8)
    with reserve_path(tmp_path / "new.faiss"), pytest.raises(StoreError, match="being written by another process"):
        target.write(store.records(100))

    def appearing() -> Any:
        yield from store.records(100)
        (tmp_path / "new.faiss").write_text("mine")

    with pytest.raises(StoreError, match="never written over"):
        target.write(appearing())
    assert (tmp_path / "new.faiss").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.faiss", "new.faiss"]


@pytest.mark.long
def test_no_warning_of_threads(tmp_path: Path) -> None:
    """LanceDB warns in every copy of a process that has imported it."""
    pytest.importorskip("lancedb")
    path = written(tmp_path / "a.faiss", "Flat", False)
    code = (
        "import lancedb; from isotrope.sources.vectors.source import ArraySource; "
        f"print(ArraySource({str(path)!r}).total)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("400\n", "")
