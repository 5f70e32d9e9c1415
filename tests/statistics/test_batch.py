"""What is known of rows, and what a collection does with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.errors import InputError
from isotrope.sources.batch import Batch, Rows
from isotrope.statistics import Collection, Moments, Wanted, prepare_rows
from isotrope.statistics.collection import MOST_GROUPS


def test_taking_rows_takes_every_column() -> None:
    known = Rows(np.arange(3, dtype=np.uint64), token=np.array([5, 6, 7]), group=np.array(["a", "b", "c"]))
    for keep in (np.array([True, False, True]), np.array([0, 2])):
        part = known.take(keep)
        assert part.sequence.tolist() == [0, 2]
        assert part.token is not None
        assert part.token.tolist() == [5, 7]
        assert part.group is not None
        assert part.group.tolist() == ["a", "c"]
        assert part.position is None
        assert part.special is None


def test_starts_are_where_the_sequence_changes() -> None:
    assert Rows(np.array([4, 4, 9, 4], np.uint64)).starts().tolist() == [0, 2, 3]
    assert Rows(np.empty(0, np.uint64)).starts().tolist() == []


def test_a_collection_keeps_what_is_wanted_and_possible() -> None:
    wanted = Wanted(tokens=True, sequences=True, sample=10)
    collection = Collection(wanted)
    collection.update(Batch({0: np.eye(3)}, Rows(np.arange(3, dtype=np.uint64))))
    assert list(collection.layer(0).parts()) == ["moments", "sample", "lengths"]
    known = Rows(np.zeros(3, np.uint64), token=np.arange(3), position=np.arange(3))
    collection = Collection(wanted)
    collection.update(Batch({0: torch.eye(3), "x": np.eye(3)}, known, {"texts": 1}))
    assert list(collection.layer("x").parts()) == ["moments", "tokens", "sequences", "sample", "lengths"]
    assert (collection.batches, collection.counts["texts"]) == (1, 1)


@pytest.mark.parametrize("to", [np.asarray, torch.from_numpy])
def test_groups_are_measured_apart(to: object) -> None:
    values = np.random.default_rng(0).standard_normal((6, 2))
    names = np.array(["b", "a", "b", "a", "a", "b"])
    collection = Collection(Wanted())
    collection.update(Batch({0: to(values)}, Rows(np.arange(6, dtype=np.uint64), group=names)))  # type: ignore[operator]
    for name in ("a", "b"):
        expected = Moments.of(prepare_rows(values[names == name]))
        np.testing.assert_allclose(collection.layer(0, name).moments.scatter, expected.scatter, atol=1e-12)


def test_a_column_of_ids_is_no_group() -> None:
    n = MOST_GROUPS + 1
    known = Rows(np.arange(n, dtype=np.uint64), group=np.arange(n).astype(str))
    with pytest.raises(InputError, match="different values"):
        Collection(Wanted()).update(Batch({0: np.ones((n, 2))}, known))
