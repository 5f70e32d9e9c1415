"""A repair in front of a faiss index: raw queries find what repaired queries find in the plain index."""

from __future__ import annotations

from pathlib import Path

import faiss
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isotrope.errors import InputError
from isotrope.integrations.faiss import in_front_of, linear_transform
from isotrope.repairs import Affine, Centering, Repair, Whitening


def test_it_gives_what_transform_gives(repair: Repair, rows: np.ndarray) -> None:
    assert_allclose(linear_transform(repair).apply(rows), repair.transform(rows), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", [faiss.IndexFlatIP, faiss.IndexFlatL2])
def test_raw_queries_find_what_repaired_ones_find(kind: type, repair: Repair, rows: np.ndarray) -> None:
    stored, queries = rows[:300], rows[300:]
    plain = kind(repair.map_.columns)
    plain.add(repair.transform(stored))
    scores, found = plain.search(repair.transform(queries), 5)

    empty = in_front_of(kind(repair.map_.columns), repair)  # raw rows are added
    empty.add(stored)
    filled = in_front_of(plain, repair)  # rows were repaired and added before
    for index in (empty, filled):
        assert index.ntotal == 300
        near, ours = index.search(queries, 5)
        assert_allclose(near, scores, rtol=0, atol=1e-4)
        assert_array_equal(ours, found)


def test_an_index_that_is_trained(rows: np.ndarray) -> None:
    repair = Whitening(8).fit(rows)
    plain = faiss.IndexIVFFlat(faiss.IndexFlatL2(8), 8, 4)
    index = in_front_of(plain, repair)
    assert not index.is_trained
    index.train(rows)
    index.add(rows)
    assert index.search(rows[:20], 1)[1].ravel().tolist() == list(range(20))
    # Training the index has left the repair as it was.
    transform = faiss.downcast_VectorTransform(index.chain.at(0))
    assert_allclose(transform.apply(rows), repair.transform(rows), rtol=0, atol=1e-5)


def test_it_is_written_and_read_with_the_index(rows: np.ndarray, tmp_path: Path) -> None:
    repair = Whitening(8).fit(rows)
    index = in_front_of(faiss.IndexFlatIP(8), repair)
    index.add(rows)
    faiss.write_index(index, str(tmp_path / "index"))
    for found, expected in zip(
        faiss.read_index(str(tmp_path / "index")).search(rows, 3), index.search(rows, 3), strict=True
    ):
        assert_array_equal(found, expected)


def test_only_an_orthonormal_map_brings_rows_back(rows: np.ndarray) -> None:
    assert linear_transform(Centering().fit(rows)).is_orthonormal
    assert_allclose(linear_transform(Centering().fit(rows)).reverse_transform(rows[:1]), rows[:1] + rows.mean(0), 1e-5)
    assert not linear_transform(Whitening().fit(rows)).is_orthonormal


def test_refusals() -> None:
    affine = Affine(np.zeros(3), np.eye(3))
    with pytest.raises(InputError, match=r"^the index holds rows of width 4, the repair gives 3; expected the same\.$"):
        in_front_of(faiss.IndexFlatL2(4), affine)
    with pytest.raises(InputError, match=r"^got a IndexBinaryFlat, expected a faiss index of float vectors\.$"):
        in_front_of(faiss.IndexBinaryFlat(8), affine)


def test_unit_rows_stay_unit_rows_in_an_index_by_inner_product(rows: np.ndarray, tmp_path: Path) -> None:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    for repair, given in ((Whitening().fit(unit), unit), (Whitening(8).fit_unit_rows(rows), rows)):
        index = in_front_of(faiss.IndexFlatIP(repair.map_.columns), repair)
        index.add(given[:300])
        faiss.write_index(index, str(tmp_path / "index"))
        scores, found = faiss.read_index(str(tmp_path / "index")).search(given[300:], 5)
        repaired = repair.transform(given)
        cosines = repaired[300:] @ repaired[:300].T
        assert np.abs(scores).max() <= 1 + 1e-6
        assert_array_equal(found, np.argsort(-cosines, axis=1)[:, :5])
        assert_allclose(scores, -np.sort(-cosines, axis=1)[:, :5], rtol=0, atol=1e-5)
