"""Neighbours of whole sets against scikit-learn, and the recall of an index against exact search."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from isotrope.errors import InputError
from isotrope.search.neighbours import find_neighbours


def _rows(n: int = 1_500, d: int = 24) -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)) * rng.lognormal(0, 0.5, (n, 1)) + 0.3


def _truth(rows: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    return NearestNeighbors(n_neighbors=k, metric="cosine", algorithm="brute").fit(rows).kneighbors()


def test_exact_neighbours_are_those_of_scikit_learn() -> None:
    rows = _rows()
    distance, which = _truth(rows, 7)
    found = find_neighbours(rows, 7)
    assert (found.recall, found.method) == (1.0, "exact")
    np.testing.assert_array_equal(found.which, which)
    np.testing.assert_allclose(found.cosine, 1 - distance, atol=1e-9)


def test_an_index_states_its_recall() -> None:
    pytest.importorskip("faiss")
    rows = _rows()
    distance, which = _truth(rows, 10)
    found = find_neighbours(rows, 10, exact=False)
    assert not (found.which == np.arange(len(rows))[:, None]).any()
    hits = np.array([len({*a} & {*b}) for a, b in zip(found.which.tolist(), which.tolist(), strict=True)]) / 10
    checked = np.sort(np.random.default_rng(0).choice(len(rows), 500, replace=False))
    assert found.recall == pytest.approx(hits[checked].mean(), abs=1e-12)
    assert found.recall > 0.95
    assert found.method.startswith("faiss HNSW, recall 0.9") or found.recall == 1.0
    same = (found.which == which).all(axis=1)
    assert same.mean() > 0.8
    np.testing.assert_allclose(found.cosine[same], 1 - distance[same], atol=1e-5)


@pytest.mark.parametrize("k", [0, 5, 6])
def test_too_many_neighbours_are_refused(k: int) -> None:
    with pytest.raises(InputError, match=f"got k = {k} for 5 rows, expected 1 to 4"):
        find_neighbours(np.eye(5), k)
