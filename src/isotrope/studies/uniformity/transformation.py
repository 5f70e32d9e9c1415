"""What Yan et al. 2022 say of the function of SoftDecay (Sections 4.2 and 4.3), checked on the function itself.

With a = −α, f(x) = ln(1 − a² + a·x)/a, and the transformed singular value is K·f(x) with K = λ_max/f(λ_max).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from isotrope.drawing.style import COLOURS, GREY, PAGE_WIDTH
from isotrope.softdecay.formula import decay
from isotrope.studies.figures import make_figure
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_exact

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: −α of the paper's search, and the largest and second singular value of the examples.
_STRENGTHS, _LARGEST, _SECOND = (0.2, 0.4, 0.6, 0.8, 1.0), 100.0, 90.0

#: Singular values that the function is evaluated at.
_POINTS = 2_000

_EVIDENCE = "closed form"


def find_turning_point(a: float, largest: float) -> float:
    """The singular value whose increment K·f(x) − x is largest: (K − 1 + a²)/a.

    The increment grows with x below it, and falls above it.

    Args:
        a: −α.
        largest: λ_max.

    Examples:
        >>> round(find_turning_point(0.6, 100.0), 1)
        23.3
    """
    scale = largest / float(decay(largest, a, "paper", np))
    return (scale - 1 + a * a) / a


def study_transformation() -> Results:
    """Sections 4.2 and 4.3: order, concavity and increments of SoftDecay, by α."""
    rows = []
    for a in _STRENGTHS:
        x = np.linspace(a, _LARGEST, _POINTS)
        f = decay(x, a, "paper", np)
        row = {"alpha": -a, "f(100)": f[-1], "least slope": np.diff(f).min() / (x[1] - x[0])}
        row |= {"largest second difference": np.diff(f, 2).max(), "least x - f(x)": (x - f).min()}
        rows.append(row | {"turning point": find_turning_point(a, _LARGEST)})
    frame = pd.DataFrame(rows)
    title = "The function of SoftDecay between a = −α and a largest singular value of 100, by α"
    caption = (
        "Transformed singular values K·f(x) (left) and their increments K·f(x) − x (right), largest value 100, by α; "
        "points: where the increment turns."
    )
    figure = make_figure("transformation", caption, partial(_draw, _STRENGTHS), width=PAGE_WIDTH)
    return Results([Table("transformation", title, frame)], judge_transformation(frame), [figure])


def judge_transformation(frame: pd.DataFrame) -> list[Claim]:
    """The properties that the paper asks for and those that it says follow."""
    increasing, concave = bool((frame["least slope"] > 0).all()), bool((frame["largest second difference"] < 0).all())
    below, overtaken = bool((frame["least x - f(x)"] >= 0).all()), frame["f(100)"] >= _SECOND
    some = frame.iloc[len(frame) // 2]
    turning = float(some["turning point"])
    increments = (
        f"the smaller of two singular values gets the larger increment K·f(x) − x only above (K − 1 + a²)/a, which is "
        f"{turning:.1f} for α = {some['alpha']:g} and a largest value of 100; below, it gets the smaller one."
    )
    largest = (
        f"f(λ_max) ≥ λ_2 does not follow: for α = {some['alpha']:g}, f(100) is {some['f(100)']:.2f}, below a second "
        f"value of {_SECOND:g}."
    )
    claims = [
        (
            increasing,
            "f is increasing, so that the order of singular values above a is kept.",
            "Section 4.2, property 1",
        ),
        (concave, "f is concave.", "Section 4.2, property 2"),
        (bool((frame["turning point"] <= -frame["alpha"]).all()), increments, "Section 4.2, property 2"),
        (below, "f(λ) ≤ λ: x − f(x) is at least a, its value at x = a.", "Section 4.3"),
        (bool(overtaken.all()), largest, "Section 4.3"),
    ]
    return [Claim(judge_exact(holds), text, where, evidence=_EVIDENCE) for holds, text, where in claims]


def _draw(strengths: tuple[float, ...], figure: Figure) -> None:
    values, increments = figure.subplots(1, 2)
    values.plot([0, _LARGEST], [0, _LARGEST], color=GREY, linewidth=0.8, label="as it is")
    increments.axhline(0.0, color=GREY, linewidth=0.8)
    for a, colour in zip(strengths, COLOURS, strict=False):
        x = np.linspace(a, _LARGEST, _POINTS)
        f = decay(x, a, "paper", np)
        bent = f * _LARGEST / f[-1]
        values.plot(x, bent, color=colour, label=f"α = −{a:g}")
        increments.plot(x, bent - x, color=colour)
        turn = find_turning_point(a, _LARGEST)
        increments.plot(turn, np.interp(turn, x, bent - x), "o", color=colour)
    values.set_ylabel("K·f(x)")
    increments.set_ylabel("K·f(x) − x")
    for axes in (values, increments):
        axes.set_xlabel("singular value x")
    figure.legend(loc="outside lower center", ncols=6)
