"""What two-sample tests found, in plain sentences."""

from __future__ import annotations

import math
from collections.abc import Callable

from isotrope.two_sample.shift_tests import FEWEST, SetComparison, ShiftTest

_DEVIATIONS = " standard deviations"


def _format_share(value: float) -> str:
    return f"{100 * value:.3g} %"


def _format_deviations(value: float) -> str:
    return f"{value:.3g}{_DEVIATIONS}"


#: How each test speaks of a difference, of none, and of its effect.
_TESTED: dict[str, tuple[str, str, Callable[[float], str]]] = {
    "mean_shift": ("The means differ by {}", "The means do not differ beyond chance", _format_deviations),
    "covariance": (
        "The covariances differ by {} of the first one's size",
        "The covariances do not differ beyond chance",
        _format_share,
    ),
    "neighbourhoods": (
        "The neighbourhoods differ by {}, where 0 % is a mixture and 100 % are two separate clouds",
        "The neighbourhoods do not differ beyond chance",
        _format_share,
    ),
}

_DESCRIBED: dict[str, tuple[str, Callable[[float], str]]] = {
    "neighbour_overlap": ("Of the nearest neighbours of an item {} stayed the same", _format_share),
    "row_cosine": ("The mean cosine of an item's old and new vector is {}", "{:.4f}".format),
}


def describe_test(test: ShiftTest) -> str:
    """Describe a result in one sentence.

    >>> describe_test(ShiftTest("mean_shift", 0.8, 0.75, 0.86, 0.001, 0.003))
    'The means differ by 0.8 standard deviations (95 %: 0.75 to 0.86; corrected p = 0.003).'
    >>> describe_test(ShiftTest("covariance", 0.01, 0.0, 0.04, 0.4, 0.8))
    'The covariances do not differ beyond chance (corrected p = 0.8); the difference is at most 4 %.'
    """
    if test.test in _DESCRIBED:
        words, form = _DESCRIBED[test.test]
        return f"{words.format(form(test.effect))} (95 %: {form(test.low)} to {form(test.high)})."
    if math.isnan(test.effect):
        return "There is no value."
    differ, equal, show = _TESTED[test.test]
    p = f"corrected p = {test.corrected:.2g}"
    if test.significant:
        low, high = (show(end).removesuffix(_DEVIATIONS) for end in (test.low, test.high))
        return f"{differ.format(show(test.effect))} (95 %: {low} to {high}; {p})."
    most = f"; the difference is at most {show(test.high)}" if test.high > 0 else ""
    return f"{equal} ({p}){most}."


def describe_design(found: SetComparison) -> str:
    """Describe in one sentence which rows were compared, and how."""
    n, m = found.rows
    if found.design == "independent":
        return f"{n:,} and {m:,} sampled rows were compared as two sets of different items."
    if found.design == "pairs":
        return f"The sets hold the same items: {n:,} sampled pairs of an old and a new vector were compared."
    unchanged = f"{found.unchanged:,} of {found.same:,} sampled items of both sets are unchanged"
    if m < FEWEST:
        return f"{unchanged}, and {m:,} are new or changed, which is too few to test."
    return f"{unchanged}; the {m:,} sampled rows that are new or changed were compared with {n:,} of the first set."
