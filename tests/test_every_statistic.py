"""Laws that every statistic obeys on its whole state: identity, commutativity, associativity, refusal, saving."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from safetensors.numpy import load, save

from isotrope.errors import InputError, MergeError
from isotrope.sources.batch import Batch, Rows
from isotrope.statistics import (
    Collection,
    Duplicates,
    Moments,
    Points,
    RowLengths,
    Sample,
    SequenceSpectra,
    SequenceStatistics,
    Summary,
    TokenStatistics,
    Wanted,
    prepare_rows,
)
from isotrope.statistics import collection as collection_module

_SIZE = 7
_WANTED = Wanted(tokens=True, sequences=True, sample=_SIZE, seed=3, duplicates=True)


@dataclass(frozen=True)
class Texts:
    """Some sequences of rows: what a source could yield, cut anywhere between sequences."""

    values: np.ndarray
    known: Rows

    @property
    def ids(self) -> np.ndarray:
        return self.known.sequence[self.known.starts()]

    def take(self, ids: Any) -> Texts:
        at = np.concatenate([np.flatnonzero(self.known.sequence == i) for i in ids] or [np.empty(0, int)]).astype(int)
        return Texts(self.values[at], self.known.take(at))


def texts(seed: int, lengths: list[int], d: int, dtype: Any = np.float64, offset: float = 0.0) -> Texts:
    rng = np.random.default_rng(seed)
    n = sum(lengths)
    values = (rng.standard_normal((n, d)) + offset).astype(dtype)
    ids = rng.choice(10_000, len(lengths), replace=False).astype(np.uint64)
    known = Rows(
        np.repeat(ids, lengths),
        token=rng.integers(0, 4, n),
        position=np.concatenate([np.arange(k) for k in lengths]),
        special=rng.random(n) < 0.2,
        group=np.repeat(np.where(ids % 2 == 0, "even", "odd"), lengths),
    )
    return Texts(values, known)


# One way to build, to make an empty one and to see the whole state, for each statistic.


def _sample(t: Texts) -> Sample:
    sample = Sample.empty(t.values.shape[1], _SIZE, 3)
    sample.add(prepare_rows(t.values, t.known))
    return sample


def _summary(t: Texts) -> Summary:
    summary = _WANTED.empty(t.values.shape[1], t.known)
    summary.update(t.values, t.known)
    return summary


def _collection(t: Texts) -> Collection:
    collection = Collection(_WANTED)
    if len(t.values):
        layers = {0: t.values, "1.before_norm": t.values * 2 + 1}
        collection.update(Batch(layers, t.known, {"texts": len(t.ids), "truncated": 0}))
    return collection


BUILD: dict[str, Any] = {
    "Moments": lambda t: Moments.of(prepare_rows(t.values, t.known)),
    "TokenStatistics": lambda t: TokenStatistics.of(prepare_rows(t.values, t.known)),
    "SequenceStatistics": lambda t: SequenceStatistics.of(prepare_rows(t.values, t.known)),
    "SequenceSpectra": lambda t: SequenceSpectra.of(prepare_rows(t.values, t.known)),
    "Points": lambda t: Points.of(prepare_rows(t.values, t.known)),
    "RowLengths": lambda t: RowLengths.of(prepare_rows(t.values, t.known)),
    "Duplicates": lambda t: Duplicates.of(prepare_rows(t.values, t.known)),
    "Sample": _sample,
    "Summary": _summary,
    "Collection": _collection,
}
EMPTY: dict[str, Any] = {
    "Moments": lambda d, known: Moments.empty(d),
    "TokenStatistics": lambda d, known: TokenStatistics.empty(d),
    "SequenceStatistics": lambda d, known: SequenceStatistics.empty(d),
    "SequenceSpectra": lambda d, known: SequenceSpectra.empty(d),
    "Points": lambda d, known: Points.empty(d),
    "RowLengths": lambda d, known: RowLengths.empty(d),
    "Duplicates": lambda d, known: Duplicates.empty(d),
    "Sample": lambda d, known: Sample.empty(d, _SIZE, 3),
    "Summary": lambda d, known: _WANTED.empty(d, known),
    "Collection": lambda d, known: Collection(_WANTED),
}
SAVED = [kind for kind in BUILD if kind != "Collection"]
every_statistic = pytest.mark.parametrize("kind", BUILD)


def state(statistic: Any) -> dict[str, np.ndarray]:
    """The whole state as arrays of its own, so that later changes would show."""
    if not isinstance(statistic, Collection):
        return {name: np.array(array) for name, array in statistic.arrays().items()}
    found = {f"{key}.{k}": v for key, s in statistic.summaries.items() for k, v in state(s).items()}
    counts = {f"counts.{k}": np.array(v) for k, v in statistic.counts.items()}
    return found | counts | {"batches": np.array(statistic.batches)}


def assert_same(a: Any, b: Any, tolerance: float = 0.0, leave_out: tuple[str, ...] = ()) -> None:
    left, right = (x if isinstance(x, dict) else state(x) for x in (a, b))
    assert left.keys() == right.keys()
    for name in left.keys() - set(leave_out):
        if tolerance and left[name].dtype.kind == "f":
            size = max(1.0, float(np.abs(right[name]).max(initial=0.0)))
            assert_allclose(left[name], right[name], rtol=0, atol=tolerance * size, err_msg=name)
        else:
            assert_array_equal(left[name], right[name], err_msg=name)


def tree(parts: list[Any], choose: Any) -> Any:
    """Add neighbours, in an order that `choose` picks, until one is left."""
    parts = list(parts)
    while len(parts) > 1:
        i = choose(len(parts) - 1)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
    return parts[0]


shapes = st.tuples(
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 6), min_size=1, max_size=9),
    st.integers(1, 5),
    st.sampled_from([np.float64, np.float32]),
    st.sampled_from([0.0, 3.0, 100.0]),
)


@every_statistic
@given(shape=shapes, data=st.data())
def test_any_split_order_and_tree_gives_the_same_state(kind: str, shape: Any, data: st.DataObject) -> None:
    whole = texts(*shape)
    tolerance = 1e-9 if whole.values.dtype == np.float64 else 1e-6
    cuts = data.draw(st.lists(st.integers(0, 3), min_size=len(whole.ids), max_size=len(whole.ids)))
    order = data.draw(st.permutations(range(4)))
    parts = [BUILD[kind](whole.take(whole.ids[np.array(cuts) == k])) for k in order]
    merged = tree(parts, lambda n: data.draw(st.integers(0, n - 1)) if n > 1 else 0)
    assert_same(merged, BUILD[kind](whole), tolerance, leave_out=("batches",))
    folded = parts[order.index(0)]
    for k in (1, 2, 3):
        folded = folded + parts[order.index(k)]
    assert_same(merged, folded, tolerance)


@every_statistic
@given(shape=shapes)
def test_the_empty_element_changes_nothing(kind: str, shape: Any) -> None:
    whole = texts(*shape)
    statistic = BUILD[kind](whole)
    nothing = EMPTY[kind](whole.values.shape[1], whole.known)
    assert_same(statistic + nothing, statistic)
    assert_same(nothing + statistic, statistic)
    assert_same(nothing + nothing, nothing)
    added = EMPTY[kind](whole.values.shape[1], whole.known)
    added += statistic
    assert_same(added, statistic)


@every_statistic
@given(shape=shapes)
def test_addition_commutes_and_leaves_both_sides_alone(kind: str, shape: Any) -> None:
    whole = texts(*shape)
    half = len(whole.ids) // 2
    a, b = BUILD[kind](whole.take(whole.ids[:half])), BUILD[kind](whole.take(whole.ids[half:]))
    before = state(a), state(b)
    total = a + b
    assert_same(total, b + a, 1e-9 if whole.values.dtype == np.float64 else 1e-6)
    # Nothing is shared: what happens to the sum later does not reach its parts.
    total += b
    total += total
    more = texts(1, [3, 2], whole.values.shape[1])
    if isinstance(total, Summary):
        total.update(more.values, more.known)
    if isinstance(total, Collection):
        total.update(Batch({0: more.values, "1.before_norm": more.values}, more.known))
    assert_same(a, before[0])
    assert_same(b, before[1])


@every_statistic
def test_adding_in_place_gives_the_sum(kind: str) -> None:
    whole = texts(5, [3, 1, 4, 2], 4)
    a, b = BUILD[kind](whole.take(whole.ids[:2])), BUILD[kind](whole.take(whole.ids[2:]))
    before, expected = state(b), state(a + b)
    a += b
    assert_same(a, expected)
    assert_same(b, before)


@pytest.mark.parametrize("kind", SAVED)
@given(shape=shapes)
def test_saving_and_loading_keeps_every_bit(kind: str, shape: Any) -> None:
    whole = texts(*shape)
    cls = type(BUILD[kind](whole))
    for statistic in (BUILD[kind](whole), EMPTY[kind](whole.values.shape[1], whole.known)):
        expected = state(statistic)
        assert_same(cls.from_arrays(statistic.arrays()), expected)
        bytes_ = save({name: np.ascontiguousarray(array) for name, array in statistic.arrays().items()})
        loaded = cls.from_arrays(load(bytes_))
        assert_same(loaded, expected)
        # What was loaded can go on.
        twice = state(statistic + BUILD[kind](whole))
        loaded += BUILD[kind](whole)
        assert_same(loaded, twice)


def _refused(a: Any, b: Any) -> None:
    before = state(a), state(b)
    for left, right in ((a, b), (b, a)):
        with pytest.raises(MergeError):
            left + right
        with pytest.raises(MergeError):
            left += right
    assert_same(a, before[0])
    assert_same(b, before[1])


@every_statistic
def test_rows_of_another_width_are_refused_before_anything_changes(kind: str) -> None:
    a, b = texts(1, [2, 3], 4), texts(2, [3, 3], 5)
    _refused(BUILD[kind](a), BUILD[kind](b))
    if kind != "Collection":  # an empty collection has no width yet
        _refused(BUILD[kind](a), EMPTY[kind](5, b.known))


@pytest.mark.parametrize(("size", "seed"), [(_SIZE + 1, 3), (_SIZE, 4)])
def test_samples_of_another_size_or_seed_are_refused(size: int, seed: int) -> None:
    t = texts(1, [2, 3], 4)
    other = Sample.empty(4, size, seed)
    other.add(prepare_rows(t.values, t.known))
    _refused(_sample(t), other)
    mine, theirs = _summary(t), _summary(t)
    theirs.sample = other
    _refused(mine, theirs)


def test_samples_that_know_different_things_of_their_rows_are_refused() -> None:
    t = texts(1, [2, 3], 4)
    other = Sample.empty(4, _SIZE, 3)
    other.add(prepare_rows(t.values, Rows(t.known.sequence)))
    _refused(_sample(t), other)


def test_summaries_and_collections_of_different_statistics_are_refused() -> None:
    t = texts(1, [2, 3], 4)
    a, b = _summary(t), _summary(t)
    b.tokens = None
    _refused(a, b)
    other = Collection(_WANTED._replace(seed=9))
    other.update(Batch({0: t.values}, t.known))
    _refused(_collection(t), other)


def test_a_collection_refuses_one_bad_layer_before_it_changes_the_others() -> None:
    t, wide = texts(1, [2, 3], 4), texts(1, [2, 3], 5)
    a, b = Collection(_WANTED), Collection(_WANTED)
    a.update(Batch({0: t.values, 1: t.values}, t.known))
    b.update(Batch({0: t.values, 1: wide.values}, t.known))
    _refused(a, b)


def test_too_many_groups_are_refused_in_a_batch_and_in_a_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection_module, "MOST_GROUPS", 5)
    t = texts(1, [2, 3], 4)

    def of(*names: str) -> Collection:
        found = Collection(_WANTED)
        for name in names:
            known = replace(t.known, group=np.full(len(t.known), name))
            found.update(Batch({0: t.values, 1: t.values}, known))
        return found

    a, b = of("a", "b", "c"), of("c", "d", "e")
    assert len((a + b).groups()) == 5
    before = state(a)
    for add in (lambda: a + of("d", "e", "f"), lambda: a.__iadd__(of("d", "e", "f")), lambda: of(*"abcdef")):
        with pytest.raises(InputError, match="the group column has more than 5 different values; name a column"):
            add()
    assert_same(a, before)


@every_statistic
def test_inputs_stay_as_they_are(kind: str) -> None:
    t = texts(7, [3, 1, 5], 4, np.float32)
    t.values[1] = 0
    t.values[2, 0] = np.nan
    values, known = t.values.copy(), t.known.take(np.arange(len(t.values)))
    statistic = BUILD[kind](t)
    statistic += BUILD[kind](t)
    assert_array_equal(t.values, values)
    for name in ("sequence", "token", "position", "special", "group"):
        assert_array_equal(getattr(t.known, name), getattr(known, name))
    # Nor does a statistic look at the rows again once it has seen them.
    before = state(statistic)
    t.values[:] = 9.0
    assert_same(statistic, before)


def test_a_summary_that_refuses_rows_has_not_changed() -> None:
    t = texts(1, [2, 3], 4)
    summary = _summary(t)
    before = state(summary)
    for values, known in ((texts(1, [2, 3], 5).values, t.known), (t.values, Rows(t.known.sequence))):
        with pytest.raises(Exception, match=r"width|token types"):
            summary.update(values, known)
        assert_same(summary, before)


def test_counts_of_zero_survive_merging() -> None:
    t = texts(1, [2, 3], 4)
    assert (_collection(t) + _collection(t)).counts == {"texts": 4, "truncated": 0}
    assert "truncated" in (_collection(t) + _collection(t)).counts


def test_a_layer_of_all_groups_is_the_sum_of_its_groups() -> None:
    t = texts(4, [2, 3, 4, 1, 2], 4)
    collection = _collection(t)
    assert collection.groups() == ["even", "odd"]
    before = state(collection)
    total = collection.layer(0)
    assert_same(total, _summary(t), 1e-9)
    total.update(t.values, t.known)
    assert_same(collection, before)
