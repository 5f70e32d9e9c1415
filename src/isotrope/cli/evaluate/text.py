"""The words that evaluations have in common: points, and what a repair changes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotrope.evaluation.result import PointDifference


def format_points(value: float, *, sign: bool = False) -> str:
    """Points with two decimals, a dash where there are none."""
    if not math.isfinite(value):
        return "-"
    return f"{value:+.2f}" if sign else f"{value:.2f}"


def format_change(change: PointDifference) -> str:
    """A difference beside a score, with a star where it is significant."""
    return f"({format_points(change.difference, sign=True)}{'*' if change.significant else ''})"


def describe_fit_texts(texts: Iterable[str | None], own: str) -> str:
    """On which texts repairs were fitted, nothing where there is none. own: what the set's own texts are.

    >>> describe_fit_texts([None, "own"], "the documents")
    '; repairs fitted on the documents'
    """
    words = sorted({own if text == "own" else text for text in texts if text is not None})
    return f"; repairs fitted on {', '.join(words)}" if words else ""


def describe_change(change: PointDifference) -> str:
    """What a repair changes, in a sentence."""
    where = "over all sets" if change.set == "mean" else f"on {change.set}"
    if change.reason is not None:
        return f"{change.repair}: no result {where}, because {change.reason}."
    words = "no difference beyond chance"
    if change.significant:
        words = "better than no repair" if change.difference > 0 else "worse than no repair"
    interval = f"{format_points(change.low, sign=True)} to {format_points(change.high, sign=True)}"
    p = f"p {change.p:.2g}, corrected {change.p_corrected:.2g}"
    return f"{change.repair}: {words} {where}: {format_points(change.difference, sign=True)} points ({interval}; {p})."
