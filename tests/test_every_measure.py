"""What holds of every registered measure, by its own record: range, invariances, reasons, types, purity."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest
from scipy import stats

import isotrope.measures
from isotrope.errors import InputError, Undefined
from isotrope.measures import GROUPS, MEASURES, Measure, get
from isotrope.measures.drift_correlation import LayerReadings
from isotrope.quantization.cells import Cells
from isotrope.sources.batch import Rows
from isotrope.statistics import Image, Moments, Points, QueriedPoints, TextLengths, prepare_rows
from testkit.statistics_by_need import STATISTICS

Values = np.ndarray
Move = Callable[[Values], Values]

FROM_ROWS = ("moments", "sample", "cells")

#: Statistics of two sets of rows: a space and its image, or documents and queries.
TWO_SETS: dict[str, Any] = {"image": Image, "queries": QueriedPoints}

#: Statistics of rows that were seen before: measures share them, as none may change its input.
MADE: dict[tuple[Any, ...], Any] = {}

#: Every measure; those of cells with few enough of them for the small spaces here.
CHECKED = [get(f"{m.name}_4x16") if m.needs == "cells" else m for m in MEASURES]

every_measure = pytest.mark.parametrize("m", CHECKED, ids=lambda m: m.name)


@pytest.fixture(autouse=True)
def _no_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def known(n: int, types: int = 6, length: int = 7) -> Rows:
    """Rows of sequences of a few tokens, types of unequal frequency."""
    rng = np.random.default_rng(n)
    token = (types * rng.random(n) ** 2).astype(np.int64)
    index = np.arange(n)
    return Rows((index // length).astype(np.uint64), token=token, position=index % length)


def same(values: Values) -> Values:
    return values


def repaired(values: Values) -> Values:
    """Some image of rows that does not keep their neighbours, and turns with them."""
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(lengths > 0, values * np.cos(3.0 * values / lengths), 0.0)


def data(m: Measure, values: Values, rows: Rows | None = None, move: Move = same) -> Any:
    """The statistic that a measure needs, of the given rows after they were moved."""
    if m.needs in TWO_SETS:
        wide = values.astype(np.float64)
        return TWO_SETS[m.needs].of(move(wide), move(repaired(wide)))
    if m.needs == "texts":
        rows = known(len(values)) if rows is None else rows
        number = 7 * rows.sequence + rows.position.astype(np.uint64)  # the same for a row in any order
        points = Points.of(prepare_rows(move(values), Rows(number)))
        return TextLengths.of(points, {int(row): 5 + int(row) % 17 for row in points.sequence})
    if m.needs == "layers":
        step = np.linspace(0.0, 1.0, values.shape[1]) * (np.abs(values).max(initial=0.0) or 1.0)
        layers = [Moments.of(prepare_rows(move(values + k * step))) for k in (0.0, 0.3, 0.1, 0.7, 0.5)]
        drift = np.array([MEASURES.get("drift_norm")(x) for x in layers])
        return LayerReadings(drift, np.array([MEASURES.get("mean_cosine")(x) for x in layers]))
    moved, rows = move(values), known(len(values)) if rows is None else rows
    columns = (moved, rows.sequence, rows.token, rows.position)
    key = (m.needs, *m.parameters.items(), moved.dtype, moved.shape, *(np.asarray(c).tobytes() for c in columns))
    if key not in MADE:
        usable = prepare_rows(moved, rows)
        MADE[key] = cells(m, Points.of(usable)) if m.needs == "cells" else STATISTICS[m.needs].of(usable)
    return MADE[key]


def cells(m: Measure, points: Points) -> Any:
    """The cells that a measure needs, or why there are none."""
    try:
        return Cells.of(points, **m.parameters)
    except Undefined as error:
        return error


def reading(m: Measure, statistic: Any) -> float:
    """The value, NaN only together with a reason."""
    if isinstance(statistic, Undefined):
        assert len(str(statistic)) > 10
        return math.nan
    value, reason = math.nan, ""
    try:
        value = m.value(statistic)
    except Undefined as error:
        reason = str(error)
    assert isinstance(value, float)
    assert math.isnan(value) if reason else math.isfinite(value), f"{m.name} is {value} for the reason {reason!r}"
    assert m(statistic) == value or (reason and math.isnan(m(statistic)))
    return value


def _spaces() -> dict[str, Values]:
    rng = np.random.default_rng(0)
    normal = rng.standard_normal((420, 8))
    return {
        "isotropic": normal,
        "drifted": normal + 3.0,
        "power law": normal / np.arange(1, 9) + 0.2,
        "collapsed": 1e-4 * normal + rng.standard_normal(8),
        "collapsed far away": 1e-3 * normal + 1e3,
        "two dimensions of eight": normal[:, :2] @ rng.standard_normal((2, 8)),
        "rank one": normal[:, :1] * rng.standard_normal(8),
        "half each way": np.sign(normal[:, :1]) * rng.standard_normal(8),
        "heavy tails": stats.t.rvs(1.5, size=(420, 8), random_state=1),
        "one dimension": normal[:, :1] + 0.5,
        "fewer rows than dimensions": rng.standard_normal((5, 30)),
        "as many rows as dimensions": rng.standard_normal((12, 12)) + 1,
        "two rows": rng.standard_normal((2, 4)),
        "three rows": rng.standard_normal((3, 4)),
        "very small": normal * 1e-60,
        "very large": normal * 1e60,
        "signs": np.sign(normal),
    }


SPACES = _spaces()


@every_measure
def test_values_lie_in_the_declared_range(m: Measure) -> None:
    for space, values in SPACES.items():
        value = reading(m, data(m, values))
        low, high = m.bounds(*values.shape)
        assert low <= high, space
        if not math.isnan(value):
            slack = 1e-9 * max(1.0, abs(value))
            assert low - slack <= value <= high + slack, space


DEGENERATE = {
    "no rows": np.empty((0, 4)),
    "one row": np.array([[1.0, 2.0, 3.0]]),
    "one number": np.array([[0.3]]),
    "only zeros": np.zeros((30, 3)),
    "only NaN": np.full((30, 3), np.nan),
    "constant rows": np.full((60, 3), 0.1),
    "constant float32 rows": np.full((60, 3), 0.1, np.float32),
    "constant numbers": np.full((60, 1), -7.3),
    "two equal rows": np.full((2, 5), 1 / 3),
    "opposite rows": np.array([[1.0, 2.0], [-1.0, -2.0]] * 20),
}


@every_measure
def test_a_value_that_is_not_there_is_nan_with_a_reason(m: Measure) -> None:
    for values in DEGENERATE.values():
        for rows in (known(len(values)), known(len(values), types=1, length=1)):
            reading(m, data(m, values, rows))


#: What has no value where rows do not vary, and where there is a single row.
VARIANCE = (
    "eee",
    "eee_gini",
    "isoscore",
    "effective_rank_eigenvalues",
    "within_of_variance",
    "vrm",
    "intrinsic_dimension_twonn",
    "intrinsic_dimension_mle",
)
PAIRS = ("mean_cosine", "token_uniformity", "rbf_distance", "hubness")


@pytest.mark.parametrize("name", VARIANCE)
@pytest.mark.parametrize("space", ["constant rows", "constant float32 rows", "two equal rows", "one row", "no rows"])
def test_shares_of_no_variance_are_undefined(name: str, space: str) -> None:
    m = MEASURES.get(name)
    assert math.isnan(reading(m, data(m, DEGENERATE[space])))


@every_measure
def test_without_rows_nothing_is_defined(m: Measure) -> None:
    if m.needs == "layers":
        assert math.isnan(reading(m, LayerReadings(np.empty(0), np.empty(0))))
    elif m.needs == "texts":
        assert math.isnan(reading(m, TextLengths.of(Points.empty(4), {})))
    elif m.needs in TWO_SETS:
        assert math.isnan(reading(m, TWO_SETS[m.needs](Points.empty(4), Points.empty(4))))
    elif m.needs == "cells":
        assert math.isnan(reading(m, cells(m, Points.empty(4))))
    else:
        assert math.isnan(reading(m, STATISTICS[m.needs].empty(4)))


@pytest.mark.parametrize("name", [*VARIANCE, *PAIRS, "spectral_skewness"])
def test_one_row_has_no_spread_and_no_pairs(name: str) -> None:
    m = MEASURES.get(name)
    assert math.isnan(reading(m, data(m, DEGENERATE["one row"])))


def rotation(d: int) -> Values:
    return stats.ortho_group.rvs(d, random_state=1) if d > 1 else np.array([[-1.0]])


def close(a: float, b: float, tolerance: float = 1e-8) -> bool:
    return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)


NAMES = ("isotropic", "drifted", "power law", "heavy tails", "as many rows as dimensions", "three rows")
GENERIC = {name: SPACES[name] for name in NAMES}


@pytest.mark.parametrize("m", [m for m in CHECKED if "rotation" in m.invariant], ids=lambda m: m.name)
def test_a_rotation_changes_what_it_may(m: Measure) -> None:
    for space, values in GENERIC.items():
        turned = data(m, values, move=lambda v: v @ rotation(v.shape[1]))
        assert close(reading(m, data(m, values)), reading(m, turned)), space


@every_measure
@pytest.mark.parametrize("factor", [1 / 512, 3.7, 1e6])
def test_a_scale_changes_what_it_may(m: Measure, factor: float) -> None:
    for space, values in GENERIC.items():
        before = reading(m, data(m, values))
        after = reading(m, data(m, values, move=lambda v: v * factor))
        if "scale" in m.invariant:
            assert m.degree == 0
            assert close(before, after), space
        elif m.degree:
            assert close(before, after / factor**m.degree), space


@pytest.mark.parametrize("m", [m for m in CHECKED if "shift" in m.invariant], ids=lambda m: m.name)
def test_a_shift_changes_what_it_may(m: Measure) -> None:
    for space, values in GENERIC.items():
        moved = data(m, values, move=lambda v: v + np.linspace(1, 2, v.shape[1]))
        assert close(reading(m, data(m, values)), reading(m, moved)), space


# Cells move under no scale and no shift here; of many rows, rounding sends the training another way.
@pytest.mark.parametrize("m", [m for m in CHECKED if m.needs != "cells"], ids=lambda m: m.name)
def test_what_is_not_declared_invariant_does_change(m: Measure) -> None:
    moves: dict[str, Move] = {
        "rotation": lambda v: v @ rotation(v.shape[1]),
        "scale": lambda v: v * 9.0,
        "shift": lambda v: v + 9.0,
    }
    for name, move in moves.items():
        if name not in m.invariant:
            pairs = [(reading(m, data(m, v)), reading(m, data(m, v, move=move))) for v in GENERIC.values()]
            assert any(not close(a, b) for a, b in pairs), f"{m.name} could declare {name}"


@every_measure
def test_the_order_of_rows_does_not_matter(m: Measure) -> None:
    for space, values in GENERIC.items():
        rows = known(len(values))
        # Sequences as a whole, so that the first token of each stays the first.
        order = np.concatenate([np.flatnonzero(rows.sequence == i) for i in np.unique(rows.sequence)[::-1]])
        assert close(reading(m, data(m, values, rows)), reading(m, data(m, values[order], rows.take(order)))), space


ADDED = [m for m in CHECKED if m.needs in STATISTICS]


@pytest.mark.parametrize("m", ADDED, ids=lambda m: m.name)
def test_merged_statistics_give_the_same_value(m: Measure) -> None:
    for space, values in GENERIC.items():
        rows = known(len(values))
        groups = (rows.sequence == 0, (rows.sequence > 0) & (rows.sequence < 20), rows.sequence >= 20)
        parts = [STATISTICS[m.needs].of(prepare_rows(values[g], rows.take(g))) for g in groups]
        expected = reading(m, data(m, values, rows))
        assert close(reading(m, reduce(lambda a, b: a + b, parts)), expected), space
        if m.needs in FROM_ROWS:
            assert close(m(values), expected), space
            assert close(m(values.tolist()), expected), space


@pytest.mark.parametrize("m", [m for m in CHECKED if m.needs == "cells"], ids=lambda m: m.name)
def test_cells_of_merged_points_give_the_same_value(m: Measure) -> None:
    for space, values in GENERIC.items():
        rows = known(len(values))
        parts = [Points.of(prepare_rows(values[g], rows.take(g))) for g in (rows.sequence >= 20, rows.sequence < 20)]
        expected = reading(m, data(m, values, rows))
        assert close(reading(m, cells(m, parts[0] + parts[1])), expected), space
        assert close(m(values), expected), space


@pytest.mark.parametrize("m", [m for m in MEASURES if m.needs in TWO_SETS], ids=lambda m: m.name)
def test_merged_pairs_give_the_same_value(m: Measure) -> None:
    for space, values in GENERIC.items():
        image = repaired(values)
        expected = reading(m, data(m, values))
        assert close(m(values, image), expected), space
        assert close(m(values.tolist(), image.tolist()), expected), space
        half = len(values) // 2
        kind = TWO_SETS[m.needs]
        parts = (kind.of(values[:half], image[:half]), kind.of(values[half:], image[half:]))
        assert close(reading(m, parts[0] + parts[1]), expected), space


@every_measure
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_any_number_type_gives_what_float64_gives(m: Measure, dtype: type) -> None:
    values = (SPACES["power law"] * 200).astype(dtype)
    tolerance = 1e-8 if dtype is np.int32 else 2e-4
    assert close(reading(m, data(m, values)), reading(m, data(m, values.astype(np.float64))), tolerance)


@every_measure
def test_a_measure_leaves_its_input_alone(m: Measure) -> None:
    if m.needs == "layers":
        readings = data(m, SPACES["drifted"])
        before = [column.copy() for column in readings]
        m(readings)
        for old, now in zip(before, readings, strict=True):
            np.testing.assert_array_equal(old, now)
        return
    statistic = data(m, SPACES["drifted"])
    pairs = {
        "image": lambda s: (s.rows, s.image),
        "queries": lambda s: (s.documents, s.queries),
        "cells": lambda s: (s.points,),
        "texts": lambda s: (),
    }
    whole = pairs.get(m.needs, lambda s: (s,))(statistic)
    before_arrays = [{k: v.copy() for k, v in part.arrays().items()} for part in whole]
    first = [m(statistic, variant=v) for v in ("definition", *m.variants)]
    assert first == [m(statistic, variant=v) for v in ("definition", *m.variants)]
    for part, arrays in zip(whole, before_arrays, strict=True):
        for name, array in part.arrays().items():
            np.testing.assert_array_equal(array, arrays[name], err_msg=name)
    if m.needs in FROM_ROWS or m.needs in TWO_SETS:
        rows = SPACES["drifted"].copy()
        m(rows, *([rows] if m.needs in TWO_SETS else []))
        np.testing.assert_array_equal(rows, SPACES["drifted"])


@every_measure
def test_every_variant_is_a_number_or_has_a_reason(m: Measure) -> None:
    for variant in m.variants:
        for values in (*SPACES.values(), *DEGENERATE.values()):
            reading(replace(m, function=m.variants[variant]), data(m, values))
    with pytest.raises(InputError, match="no variant 'nonsense'"):
        m.value(data(m, SPACES["drifted"]), variant="nonsense")


@every_measure
def test_the_record_says_all_there_is_to_say(m: Measure) -> None:
    for text in (m.name, m.title, m.says, m.formula, m.paper, m.blind, m.__doc__):
        assert isinstance(text, str)
        assert text.strip() == text.strip("\n ")
        assert len(text) > 2
    assert m.name.isidentifier()
    assert m.better in (None, "higher", "lower")
    assert set(m.invariant) <= {"rotation", "scale", "shift"}
    assert m.group in GROUPS if m.needs != "image" else m.group is None
    assert m.estimate or "no interval" in m.blind or m.needs == "layers" or m.name == "kept_dimensions"
    assert not (m.at_n and m.slow_bias)
    assert not m.at_n or "at this n" in m.blind


@pytest.mark.parametrize("m", list(MEASURES), ids=lambda m: m.name)
def test_a_measure_is_found_by_its_name(m: Measure) -> None:
    assert MEASURES.get(m.name) is m
    assert getattr(isotrope.measures, m.name) is m


@every_measure
def test_the_null_lies_in_the_range(m: Measure) -> None:
    if m.null is not None:
        for n, d in ((50, 8), (1000, 64)):
            low, high = m.bounds(n, d)
            assert low <= m.null(n, d) <= high


@every_measure
def test_rows_are_enough_for_some_and_two_spaces_for_others(m: Measure) -> None:
    rows = SPACES["drifted"]
    if m.needs in FROM_ROWS:
        assert math.isfinite(m(rows))
    else:
        with pytest.raises(InputError, match=f"needs {m.needs}"):
            m(rows)
    if m.needs == "image":
        with pytest.raises(InputError, match="give one row for each"):
            m(rows, rows[1:])
    elif m.needs == "queries":
        with pytest.raises(InputError, match="have 8 dimensions and the queries 7"):
            m(rows, rows[:, 1:])
    else:
        with pytest.raises(InputError, match=rf"call it as {m.name}\(X\)"):
            m(rows, rows)


@every_measure
def test_what_there_is_to_know_of_a_value_is_a_sentence_or_nothing(m: Measure) -> None:
    for values in SPACES.values():
        statistic = data(m, values)
        if m.note is not None and math.isfinite(reading(m, statistic)):
            said = m.note(statistic)
            assert said is None or len(said) > 10
    if m.enough is not None:
        assert m.enough(64) >= 100
