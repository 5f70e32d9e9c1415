"""The shape of a measure as noise grows: monotonic, a hook or a zig-zag (Section 4.2 and Appendix B)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from isotrope.studies.result import Claim
from isotrope.studies.verdict import LEVEL, Outcome

#: Shapes by their number of turning points; more are a zig-zag too.
_SHAPES = ("monotonic", "hook", "zig-zag")

#: The measures whose shapes the paper names.
NAMED = {"eee": "zig-zag", "cluster_eee_additive": "hook"}


@dataclass(frozen=True)
class Course:
    """The course of a measure over the levels of noise.

    Args:
        turns: the levels at which it turns.
        name: monotonic, hook (one turn), zig-zag (two or more), or flat where no two levels differ.
        critical: the least difference of two levels' means that is significant, NaN without several seeds.
    """

    turns: tuple[float, ...]
    name: str
    critical: float


def find_turns(values: NDArray[np.float64], least: float) -> list[int] | None:
    """Where a series turns by more than a least difference; None where it never moves by as much.

    >>> find_turns(np.array([0.0, 2.0, 1.9, 3.0, 0.0, 1.0]), 0.5), find_turns(np.array([0.0, 0.1]), 0.5)
    ([3, 4], None)
    """
    direction, turns, highest, lowest = 0, list[int](), 0, 0
    for at in range(1, len(values)):
        highest = at if values[at] > values[highest] else highest
        lowest = at if values[at] < values[lowest] else lowest
        if direction >= 0 and values[highest] - values[at] > least:
            turns += [highest] if direction else []
            direction, lowest = -1, at
            highest = at
        elif direction <= 0 and values[at] - values[lowest] > least:
            turns += [lowest] if direction else []
            direction, highest = 1, at
            lowest = at
    return turns if direction else None


def find_shape(levels: Sequence[float], values: Sequence[float]) -> Course:
    """Find the shape of a measure over the levels of noise.

    It turns where the mean over seeds goes back by a significant difference: Student's t with the variance within
    levels pooled over them, and Bonferroni's correction for all pairs of levels. Level 0 is one space for all seeds
    and tells nothing of their variance.

    Args:
        levels: the share of noise of each model.
        values: its measure.
    """
    frame = pd.DataFrame({"level": levels, "value": values}, dtype=float).dropna()
    groups = frame.groupby("level")["value"]
    means, counts = groups.mean(), groups.size()
    noisy = frame[frame["level"] > 0]
    freedom = len(noisy) - noisy["level"].nunique()
    if freedom < 1 or len(means) < 3:
        return Course((), "unknown", math.nan)
    within = noisy["value"] - noisy.groupby("level")["value"].transform("mean")
    deviation = math.sqrt(float((within**2).sum()) / freedom)
    pairs = len(means) * (len(means) - 1) / 2
    reach = float(stats.t.ppf(1 - LEVEL / (2 * pairs), freedom))
    critical = reach * deviation * math.sqrt(2 / float(counts.median()))
    turns = find_turns(means.to_numpy(), critical)
    if turns is None:
        return Course((), "flat", critical)
    at = tuple(float(means.index[turn]) for turn in turns)
    return Course(at, _SHAPES[min(len(at), 2)], critical)


def list_shapes(noisy: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """The shape of each measure; noisy: a row for each model with `level` and the measures."""
    rows = []
    for name in measures:
        shape = find_shape(list(noisy["level"]), list(noisy[name]))
        turns = ", ".join(f"{turn:g}" for turn in shape.turns)
        rows.append({"measure": name, "shape": shape.name, "turns": turns, "critical": shape.critical})
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def judge_shapes(model: str, shapes: pd.DataFrame) -> list[Claim]:
    """Whether EEE is a zig-zag and PD_EEE a hook, and how many measures turn."""
    by, claims = shapes.set_index("measure"), []
    for name, expected in NAMED.items():
        found, turns = str(by.loc[name, "shape"]), str(by.loc[name, "turns"])
        where = f", which turns at {turns}" if turns else ""
        what = f"a {found}" if found in _SHAPES[1:] else "of unknown shape" if found == "unknown" else found
        text = f"the curve of {name} of {model} is {what}{where} as noise grows; the paper: a {expected}."
        evidence = "turns by differences that are significant after Bonferroni's correction"
        claims.append(Claim(_judge_shape(found, expected), text, "Section 4.2", evidence=evidence, model=model))
    turning = int(shapes["shape"].isin(_SHAPES[1:]).sum())
    text = f"{turning} of {len(shapes)} measures of {model} turn as noise grows; the paper: several do."
    claims.append(Claim("note", text, "Appendix B", float(turning), model=model))
    return claims


def _judge_shape(found: str, expected: str) -> Outcome:
    """Turns that are missing may be hidden by noise; a turn too many is there."""
    if found == expected:
        return "agrees"
    return "contradicts" if expected == "hook" and found == "zig-zag" else "undecided"
