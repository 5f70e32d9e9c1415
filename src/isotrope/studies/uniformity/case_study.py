"""The case study of Appendix A of Yan et al. 2022: the printed bound of a probability, and the probability itself.

A row of left singular vectors, u in R^n, is uniform on the unit sphere. The paper bounds the probability that its part
on k coordinates is at most d. The squared length of that part has the distribution Beta(k/2, (n − k)/2), so that the
probability is known in closed form. The paper writes the part as Σ √(u_j²), the sum of absolute values, and integrates
over the Euclidean length; the table has both readings.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import special

from isotrope.drawing.style import BLUE, GREEN, ORANGE
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Dimensions n, shares k/n and radii d of the table.
_DIMENSIONS, _SHARES, _RADII = (10, 64, 768), (0.1, 0.3, 0.5, 0.7, 0.9), (0.25, 0.5, 0.75, 0.95)

#: Random directions of a simulation, and the n and d of the figure.
_DRAWS, _DRAWN_N, _DRAWN_D = 10_000, 10, 0.5

_WHERE = "Appendix A, Eq. 8"


def compute_printed_bound(n: int, k: int, d: float) -> float:
    """The bound of Eq. 8: 2 / (k (n − k) B(k/2, (n − k)/2)) · d^(2k) · (1 − d^(n − k)).

    Args:
        n: the dimension of the sphere's space.
        k: coordinates of small singular values, 1 to n − 1.
        d: the radius, 0 to 1.

    References:
        Yan et al. 2022, Appendix A, Eq. 8.

    Examples:
        >>> round(compute_printed_bound(10, 3, 0.5), 4)
        0.012
    """
    factor = math.log(2 / (k * (n - k))) - special.betaln(k / 2, (n - k) / 2)
    return float(np.exp(factor + special.xlogy(2 * k, d) + special.xlog1py(1.0, -(d ** (n - k)))))


def compute_probability(n: int, k: int, d: float) -> float:
    """The probability that k coordinates of a uniform direction in R^n have a Euclidean length of at most d.

    Args:
        n: the dimension.
        k: the number of coordinates, 1 to n − 1.
        d: the radius, 0 to 1.

    Examples:
        >>> round(compute_probability(10, 3, 0.5), 4)
        0.4574
    """
    return float(special.betainc(k / 2, (n - k) / 2, d * d))


def simulate_lengths(n: int, k: int, seed: int, draws: int = _DRAWS) -> dict[str, Any]:
    """Lengths of k coordinates of random directions in R^n, `euclidean` and as the `sum` of absolute values, (draws,).

    Args:
        n: the dimension.
        k: the number of coordinates.
        seed: of the directions.
        draws: the number of directions.
    """
    rng = np.random.default_rng(seed)
    part, rest = rng.normal(size=(draws, k)), rng.chisquare(n - k, draws)  # the other coordinates, squared and summed
    part /= np.sqrt((part**2).sum(axis=1) + rest)[:, None]
    return {"euclidean": np.linalg.norm(part, axis=1), "sum": np.abs(part).sum(axis=1)}


def study_bound(options: StudyOptions) -> Results:
    """The printed bound of Eq. 8, the exact probability and a simulation by both readings."""
    rows = []
    for n in _DIMENSIONS:
        for k in dict.fromkeys(max(1, round(share * n)) for share in _SHARES):
            lengths = simulate_lengths(n, k, options.seed)
            for d in _RADII:
                row = {"n": n, "k": k, "d": d}
                row |= {"printed bound": compute_printed_bound(n, k, d), "exact": compute_probability(n, k, d)}
                rows.append(row | {f"simulated, {name}": float((of <= d).mean()) for name, of in lengths.items()})
    frame = pd.DataFrame(rows)
    title = "Probability that k of n coordinates of a uniform direction are at most d long: printed bound and exact"
    caption = (
        "The printed bound, the exact probability of the Euclidean length and the simulated one of the sum of "
        f"absolute values, over k, n = {_DRAWN_N}, d = {_DRAWN_D:g}."
    )
    figure = make_figure("case_study", caption, partial(_draw_bound, options.seed))
    return Results([Table("case_study", title, frame)], judge_case_study(frame), [figure])


def judge_case_study(frame: pd.DataFrame) -> list[Claim]:
    """Whether the printed bound is one, and whether the probability falls with k."""
    above = frame["exact"] > frame["printed bound"]
    worst = frame.iloc[int((frame["exact"] - frame["printed bound"]).argmax())]
    sums = int((frame["simulated, sum"] > frame["printed bound"]).sum())
    text = (
        f"the probability is above its printed bound in {above.sum()} of {len(frame)} cases, as for "
        f"n = {worst['n']:g}, k = {worst['k']:g}, d = {worst['d']:g}: {worst['exact']:.4f} against "
        f"{worst['printed bound']:.4f}; at d = 1 the bound is 0 and the probability 1. By the sum of "
        f"absolute values, simulated, it is above the bound in {sums} cases."
    )
    ours, printed = float(worst["exact"]), float(worst["printed bound"])
    exceeded = Claim(judge_exact(not above.any()), text, _WHERE, ours, printed, evidence="closed form")
    falls = all(rows["exact"].is_monotonic_decreasing for _, rows in frame.groupby(["n", "d"]))
    text = "the exact probability falls with the number k of small singular values for every n and d of the table."
    return [exceeded, Claim(judge_exact(falls), text, _WHERE, evidence="closed form")]


def _draw_bound(seed: int, figure: Figure) -> None:
    axes, over = figure.subplots(), range(1, _DRAWN_N)
    sums = [float((simulate_lengths(_DRAWN_N, k, seed)["sum"] <= _DRAWN_D).mean()) for k in over]
    exact = [compute_probability(_DRAWN_N, k, _DRAWN_D) for k in over]
    bound = [compute_printed_bound(_DRAWN_N, k, _DRAWN_D) for k in over]
    for values, colour, marker, label in (
        (exact, BLUE, "o", "exact, Euclidean"),
        (sums, GREEN, "^", "simulated, sum"),
        (bound, ORANGE, "s", "printed bound"),
    ):
        axes.plot(over, [value or np.nan for value in values], color=colour, marker=marker, label=label)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("k of 10 coordinates")
    axes.set_ylabel("probability")
    axes.legend()
