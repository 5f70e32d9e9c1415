"""The rule by which a study says that its result agrees with a paper, contradicts it, or decides nothing.

A verdict about anything measured rests on an interval or on a p-value that is corrected for the number of tests. One
seed, or one reading of a clock, has neither: the claim is then undecided. Results that do not depend on a sample, such
as an identity or a sum of printed numbers, are judged as they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: The result agrees with the claim, contradicts it, or does not decide it; the printed number is wrong; or the sentence
#: compares nothing.
Outcome: TypeAlias = Literal["agrees", "contradicts", "undecided", "misprint", "note"]

#: The order in which claims are shown.
OUTCOMES: tuple[Outcome, ...] = ("contradicts", "misprint", "agrees", "undecided", "note")

#: The level of all tests and intervals.
LEVEL = 0.05

#: Draws of the layers' values, see `depth_interval`.
_DRAWS = 2_000


def judge_interval(low: float, high: float, *, border: float = 0.0) -> Outcome:
    """Judge the claim that a number is above a border by the 95 % interval of the number.

    For a claim that it is below, give the interval of its negative.

    Args:
        low: the lower end of the interval, NaN where there is none.
        high: the upper end of the interval.
        border: what the number is compared with.

    >>> judge_interval(0.1, 0.9), judge_interval(-0.9, -0.1), judge_interval(-0.1, 0.1)
    ('agrees', 'contradicts', 'undecided')
    """
    return "agrees" if low > border else "contradicts" if high < border else "undecided"


def judge_equal(low: float, high: float, *, published: float, tolerance: float = 0.0) -> Outcome:
    """Judge the claim that a number is the published one, up to a tolerance, by the 95 % interval of the number.

    It agrees if the whole interval is within the tolerance, and contradicts if it is outside. An interval without a
    tolerance never agrees: that it holds the published number does not show that the numbers are equal.

    >>> judge_equal(0.69, 0.73, published=0.7, tolerance=0.1), judge_equal(0.9, 1.0, published=0.7, tolerance=0.1)
    ('agrees', 'contradicts')
    """
    if published - tolerance <= low and high <= published + tolerance:
        return "agrees"
    return "contradicts" if low > published + tolerance or high < published - tolerance else "undecided"


def judge_test(effect: float, p: float) -> Outcome:
    """Judge the claim that an effect is positive by a two-sided p-value, corrected for the number of tests.

    >>> judge_test(1.2, 0.01), judge_test(-0.94, 0.065), judge_test(-2.0, 0.001), judge_test(1.0, math.nan)
    ('agrees', 'undecided', 'contradicts', 'undecided')
    """
    if not p < LEVEL or not effect:
        return "undecided"
    return "agrees" if effect > 0 else "contradicts"


def judge_exact(holds: bool) -> Outcome:
    """Judge what no sample decides: an identity, a bound, a closed form, or arithmetic on printed numbers."""
    return "agrees" if holds else "contradicts"


def judge_print(equal: bool) -> Outcome:
    """Judge a printed number by the paper's own data, or by arithmetic on its other numbers."""
    return "agrees" if equal else "misprint"


def judge_all(outcomes: Sequence[Outcome]) -> Outcome:
    """Judge the claim that something holds everywhere by the verdicts on the single layers, sets or models.

    It agrees if all of them agree, and contradicts if one contradicts. The intervals or p-values behind the single
    verdicts must be corrected for their number, see `widen_factor`.

    >>> judge_all(["agrees", "agrees"]), judge_all(["agrees", "undecided"]), judge_all(["agrees", "contradicts"])
    ('agrees', 'undecided', 'contradicts')
    """
    if "contradicts" in outcomes:
        return "contradicts"
    return "agrees" if outcomes and set(outcomes) == {"agrees"} else "undecided"


def judge_most(outcomes: Sequence[Outcome]) -> Outcome:
    """Judge the claim that something holds for most by the verdict on more than half of them.

    >>> judge_most(["agrees", "agrees", "contradicts"]), judge_most(["agrees", "undecided"])
    ('agrees', 'undecided')
    """
    decided: tuple[Outcome, Outcome] = ("agrees", "contradicts")
    return next((one for one in decided if 2 * outcomes.count(one) > len(outcomes)), "undecided")


def judge_together(outcomes: Sequence[Outcome]) -> Outcome:
    """Judge a claim by several numbers that describe the same thing: only if all give the same outcome is it decided.

    >>> judge_together(["agrees", "agrees"]), judge_together(["agrees", "contradicts"])
    ('agrees', 'undecided')
    """
    return outcomes[0] if len(set(outcomes)) == 1 else "undecided"


def widen_factor(count: int) -> float:
    """The factor by which 95 % intervals are widened so that so many of them hold at once (Bonferroni).

    >>> widen_factor(1), round(widen_factor(12), 3)
    (1.0, 1.462)
    """
    return float(stats.norm.ppf(1 - LEVEL / (2 * max(count, 1))) / stats.norm.ppf(1 - LEVEL / 2))


def format_interval(low: float, high: float) -> str:
    """The interval that decides a claim, in words.

    >>> format_interval(0.1, 0.25), format_interval(math.nan, math.nan)
    ('95 % interval 0.1 to 0.25', 'no interval')
    """
    return "no interval" if math.isnan(low) or math.isnan(high) else f"95 % interval {low:.3g} to {high:.3g}"


def format_p(p: float) -> str:
    """The corrected p-value that decides a claim, in words.

    >>> format_p(0.0123), format_p(1e-300), format_p(math.nan)
    ('p 0.0123, corrected', 'p below 1e-6, corrected', 'no p-value')
    """
    if math.isnan(p):
        return "no p-value"
    return f"p {p:.3g}, corrected" if p >= 1e-6 else "p below 1e-6, corrected"


def format_range(values: Iterable[float], how: str) -> str:
    """The least and the largest of some values, or the one value.

    >>> format_range([0.31, 0.12], ".1f"), format_range([0.31], ".1f")
    ('0.1 to 0.3', '0.3')
    """
    ends = sorted(values)
    low, high = f"{ends[0]:{how}}", f"{ends[-1]:{how}}"
    return low if low == high else f"{low} to {high}"


def seeds_interval(values: ArrayLike) -> tuple[float, float]:
    """The 95 % interval of the mean over seeds by Student's t; NaN for fewer than two seeds.

    >>> [round(end, 3) for end in seeds_interval([1.0, 2.0, 3.0])]
    [-0.484, 4.484]
    """
    seen = np.asarray(values, dtype=np.float64)
    if len(seen) < 2:
        return math.nan, math.nan
    half = float(stats.t.ppf(1 - LEVEL / 2, len(seen) - 1) * seen.std(ddof=1) / math.sqrt(len(seen)))
    return float(seen.mean()) - half, float(seen.mean()) + half


def depth_interval(
    values: Sequence[float], low: Sequence[float], high: Sequence[float], *, seed: int = 0
) -> tuple[float, float]:
    """The 95 % interval of the rank correlation of a measure with depth, over repeated samples of the text.

    The layers of a model are all there are: what varies is the text. So each layer's value is drawn from the normal
    distribution of its interval, independently, and the correlation is computed for each draw. Layers read the same
    text, which makes their true errors alike and the interval rather too wide.

    Args:
        values: one number for each layer.
        low: lower ends of their 95 % intervals.
        high: upper ends.
        seed: of the draws.

    Returns:
        The two ends; NaN for fewer than three layers, or where a layer has no value or no interval.
    """
    centre, ends = np.asarray(values, dtype=np.float64), np.asarray([low, high], dtype=np.float64)
    if len(centre) < 3 or not np.isfinite(centre).all() or not np.isfinite(ends).all():
        return math.nan, math.nan
    deviation = (ends[1] - ends[0]) / (2 * stats.norm.ppf(1 - LEVEL / 2))
    drawn = np.random.default_rng(seed).normal(centre, deviation, size=(_DRAWS, len(centre)))
    ranks: Any = stats.rankdata(drawn, axis=1)
    depth = np.arange(1.0, len(centre) + 1)
    ranks, depth = ranks - ranks.mean(1, keepdims=True), depth - depth.mean()
    with np.errstate(invalid="ignore"):
        rho = ranks @ depth / np.sqrt((ranks**2).sum(1) * (depth**2).sum())
    if not np.isfinite(rho).all():
        return math.nan, math.nan
    # Independent draws shuffle layers whose values are close, which moves all of rho towards 0, past the observed one.
    observed = float(stats.spearmanr(centre, depth).statistic)
    return min(float(np.quantile(rho, LEVEL / 2)), observed), max(float(np.quantile(rho, 1 - LEVEL / 2)), observed)
