"""Three tests of two sets of rows by permutation: mean, covariance and neighbourhoods."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from isotrope.compute.p_values import count_p_value, holm
from isotrope.errors import InputError
from isotrope.two_sample.neighbourhoods import NeighbourLists
from isotrope.two_sample.pair_means import PairMeans, Products, Vector, average_products
from isotrope.two_sample.same_rows import SameRows, find_same_rows
from isotrope.two_sample.two_sets import Draws, Matrix, RowSet, TwoSets

#: What was compared: two sets of different items; the same items before and after; or only what is new or changed.
Design = Literal["independent", "pairs", "new rows"]

#: Permutations, so that the smallest p-value is 1 in 1,000, and resamples for an interval.
PERMUTATIONS, RESAMPLES = 999, 499

#: Rows of each set that take part.
MOST_ROWS = 2_000

#: With fewer rows or sequences of a set there is no test.
FEWEST = 10

#: The chance of a false alarm that "differ" allows.
LEVEL = 0.05

#: Where more than this share of the items did not change, the others are what is compared.
_MOSTLY = 0.5

#: The tests, and what is said of items that both sets have.
TESTS = ("mean_shift", "covariance", "neighbourhoods")
SAME_ITEMS = ("neighbour_overlap", "row_cosine")


@dataclass(frozen=True, slots=True)
class ShiftTest:
    """The result of one test.

    Args:
        test: One of `TESTS`, or of `SAME_ITEMS`, which have no p-value.
        effect: How far the sets are apart, 0 where they are not: "mean_shift" is the distance of the means in standard
            deviations of the first set, "covariance" that of the covariances as a share of the first one's size
            (Frobenius norm), "neighbourhoods" goes from 0, where they are mixed, to 1, where they are separate. For
            items of both sets, "neighbour_overlap" is the share of nearest neighbours that stayed, and "row_cosine"
            the mean cosine of old and new vector.
        low: The lower end of the 95 % interval of the effect.
        high: The upper end.
        p: The p-value of the permutation test.
        corrected: The same, corrected for the three tests (Holm).
    """

    test: str
    effect: float
    low: float
    high: float
    p: float = math.nan
    corrected: float = math.nan

    @property
    def significant(self) -> bool:
        """Whether the corrected p-value is below 0.05."""
        return self.corrected < LEVEL


@dataclass(frozen=True)
class SetComparison:
    """All that is known of two sets of rows.

    Args:
        design: What was compared.
        tests: The three tests; where the sets have items in common, how much these have changed too.
        rows: How many rows of each set took part.
        same: How many items the sets have in common.
        unchanged: For how many of these the vector is the same.
    """

    design: Design
    tests: tuple[ShiftTest, ...]
    rows: tuple[int, int]
    same: int = 0
    unchanged: int = 0


def compare_sets(first: RowSet, second: RowSet, *, seed: int = 0) -> SetComparison:
    """Test whether two sets of rows differ in mean, covariance and neighbourhoods.

    Where both sets hold the same items, old and new vectors change places in pairs. Where most of these did not change,
    only what is new or changed in the second set is compared with the first.

    Args:
        first: The baseline.
        second: Of the same width.
        seed: Of permutations and resamples.

    Examples:
        >>> rng = np.random.default_rng(0)
        >>> before, after = rng.normal(size=(200, 4)), rng.normal(size=(300, 4)) + 1
        >>> found = compare_sets(RowSet.of_rows(before), RowSet.of_rows(after))
        >>> found.design, [(test.test, round(test.effect, 1)) for test in found.tests if test.significant]
        ('independent', [('mean_shift', 1.0), ('neighbourhoods', 0.5)])
    """
    if first.rows.shape[1] != second.rows.shape[1]:
        widths = f"{first.rows.shape[1]} and {second.rows.shape[1]}"
        raise InputError(f"rows of width {widths} cannot be tested against each other; give rows of the same width.")
    first, second = (each.take(np.arange(min(len(each.rows), MOST_ROWS))) for each in (first, second))
    same = find_same_rows(first, second)
    design, before, after = _choose_rows(first, second, same)
    rows = len(before.rows), len(after.rows)
    more = () if same is None else _describe_same(same)
    counts = (0, 0) if same is None else (len(same.first), int(same.unchanged.sum()))
    if design == "new rows" and len(np.unique(after.sequence)) < FEWEST:
        tests = tuple(ShiftTest(name, 0.0, 0.0, 0.0, 1.0, 1.0) for name in TESTS)
        return SetComparison(design, tests + more, rows, *counts)
    for each in (before, after):
        if (count := len(np.unique(each.sequence))) < FEWEST:
            raise InputError(f"a two-sample test needs {FEWEST} rows or sequences of each set, got {count}.")
    tests = compute_tests(TwoSets.join(before, after, paired=design == "pairs"), seed)
    return SetComparison(design, tests + more, rows, *counts)


def _describe_same(same: SameRows) -> tuple[ShiftTest, ...]:
    return tuple(ShiftTest(name, *mean) for name, mean in zip(SAME_ITEMS, (same.overlap, same.cosine), strict=True))


def _choose_rows(first: RowSet, second: RowSet, same: SameRows | None) -> tuple[Design, RowSet, RowSet]:
    """Choose the rows that are tested, and how."""
    if same is None:
        return "independent", first, second
    if same.unchanged.mean() < _MOSTLY:
        return "pairs", first.take(same.first), second.take(same.second)
    changed = np.ones(len(second.rows), bool)
    changed[same.second[same.unchanged]] = False
    after = second.take(changed)
    return "new rows", first.take(~np.isin(first.sequence, after.sequence)), after


def compute_tests(sets: TwoSets, seed: int) -> tuple[ShiftTest, ...]:
    """Compute the three tests from the same permutations and resamples."""
    labels_rng, weights_rng = np.random.default_rng(seed).spawn(2)
    labels = sets.draw_labels(labels_rng, PERMUTATIONS + 1)
    weights = sets.draw_weights(weights_rng, RESAMPLES + 1)
    found = [test(sets, labels, weights) for test in (_test_means, _test_covariances, _test_neighbourhoods)]
    corrected = holm([test.p for test in found])
    return tuple(replace(test, corrected=p) for test, p in zip(found, corrected, strict=True))


def _test_means(sets: TwoSets, labels: Draws, weights: Draws) -> ShiftTest:
    """The distance of the means, in standard deviations of the first set over all coordinates."""
    rows = _scale(sets.rows - sets.rows.mean(axis=0))
    products = Products(sets, rows, power=1)
    resampled = products.average_weighted(weights)
    squares, heavy = np.sum(rows**2, axis=1), weights * ~sets.second[:, None]
    # Without pairs of one unit, `first` estimates the squared length of the mean, and the rest is the variance.
    variance = squares @ heavy / heavy.sum(axis=0, dtype=np.float64) - resampled.first
    return _make_test("mean_shift", products.average(labels).distance, _relate(resampled.distance, variance))


def _test_covariances(sets: TwoSets, labels: Draws, weights: Draws) -> ShiftTest:
    """The distance of the covariances, as a share of the size of the first; each set is centred by its own mean.

    A shift of the mean alone is no change, for which the test is approximate: see `tests/two_sample/test_validity.py`.
    """
    rows = sets.rows.copy()
    for mask in (sets.second, ~sets.second):
        rows[mask] -= rows[mask].mean(axis=0)
    rows = _scale(rows)
    products = Products(sets, rows, power=2)
    # Centred rows have products below zero on average, whose squares are no covariance. With exchanged labels they
    # stand within and between the sets alike, and cancel.
    bias = PairMeans(*(mean**2 for mean in average_products(sets, rows)))
    resampled, statistic = products.average_weighted(weights), products.average(labels).distance
    statistic[0] -= bias.distance[0]
    effects = _relate(resampled.distance - bias.distance, resampled.first - bias.first)
    return _make_test("covariance", statistic, effects)


def _test_neighbourhoods(sets: TwoSets, labels: Draws, weights: Draws) -> ShiftTest:
    """How far neighbourhoods are from a mixture of both sets."""
    lists = NeighbourLists(sets)
    exchanged = lists.count_own(labels)
    squares = lists.count_own(labels[:, :1], weights).compute_squares()
    # Squares of noise add up: with exchanged labels all is noise, and resamples have more of it than the rows.
    noise = exchanged.compute_squares()[1:].mean()
    squares[1:] -= squares[1:].mean() - squares[0]
    effects = np.sqrt(np.maximum(squares - noise, 0.0))
    return _make_test("neighbourhoods", exchanged.compute_statistic(), effects)


def _scale(rows: Matrix) -> Matrix:
    """Rows in units in which their mean squared length is 1."""
    largest = float(np.abs(rows).max(initial=0.0))
    if largest == 0.0:
        raise InputError("the rows of each set are all the same; a two-sample test needs rows that differ.")
    rows = rows / largest
    return np.asarray(rows / math.sqrt(float(np.mean(np.sum(rows**2, axis=1)))))


def _relate(distance: Vector, size: Vector) -> Vector:
    """A squared distance as a share of a squared size, both as they are and not squared."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.sqrt(np.maximum(distance, 0.0) / np.where(size > 0, size, np.nan)))


def _make_test(name: str, statistic: Vector, effects: Vector) -> ShiftTest:
    """A test from the statistic of true and permuted labels, and the effect of all rows and of resamples."""
    low, high = np.nanquantile(effects[1:], [LEVEL / 2, 1 - LEVEL / 2])
    effect = float(effects[0])
    p = count_p_value(float(statistic[0]), statistic[1:])
    return ShiftTest(name, effect, min(float(low), effect), max(float(high), effect), p)
