"""Densities of quantized cells weighted by their volumes, which the paper tried and gave up (Section 3.3.2)."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.special import gammaln

from isotrope.quantization.cells import Cells
from isotrope.studies.result import Claim
from isotrope.studies.verdict import judge_interval

#: A density below this share of the largest counts as zero, whatever the unit of length.
_RELATIVE = 1e-3

#: The logarithm of the least positive number in float32: below, a density is stored as zero.
_LEAST = math.log(float(np.finfo(np.float32).smallest_subnormal))

#: The share of the cells that "almost all" begins at.
_ALMOST_ALL = 0.9


def compute_log_volume(radius: NDArray[np.float64], d: int) -> NDArray[np.float64]:
    """The logarithm of the volume of balls in d dimensions.

    >>> float(np.exp(compute_log_volume(np.array([2.0]), 3))[0])
    33.510...
    """
    with np.errstate(divide="ignore"):
        return np.asarray(d / 2 * math.log(math.pi) - gammaln(d / 2 + 1) + d * np.log(radius))


def list_cells(cells: Cells) -> pd.DataFrame:
    """The points, radius and logarithm of the volume of each cell that is not empty.

    The radius is the distance of the furthest point to the mean of the cell's points; for a product quantizer in the
    coordinates of the codebook.
    """
    codebooks, size, d = cells.quantized.codebooks.shape
    product = cells.quantized.kind == "product"
    width = d // codebooks if product else d
    rows = []
    for book, codes in enumerate(cells.quantized.codes.T):
        part = cells.points.rows[:, book * width : (book + 1) * width] if product else cells.points.rows
        for cell in range(size):
            inside = part[codes == cell]
            if len(inside):
                radius = float(np.sqrt(((inside - inside.mean(axis=0)) ** 2).sum(axis=1).max()))
                rows.append({"codebook": book, "cell": cell, "count": len(inside), "radius": radius})
    frame = pd.DataFrame(rows)
    found: pd.DataFrame = frame.assign(log_volume=compute_log_volume(frame["radius"].to_numpy(), width), d=width)
    return found


def summarize_volumes(cells: Cells) -> dict[str, float | str]:
    """How many densities are zero once they are weighted by the volumes, in both readings of "weighting"."""
    found = list_cells(cells)
    counts, volumes = np.log(found["count"].to_numpy()), found["log_volume"].to_numpy()
    row: dict[str, float | str] = {"quantizer": cells.quantized.kind, "cells": len(found), "d": int(found["d"].iloc[0])}
    row |= {"radius": float(found["radius"].median()), "log10_volume": float(np.median(volumes)) / math.log(10)}
    sized = np.isfinite(volumes)  # a cell of one point has neither volume nor density
    for name, densities in (("divided", (counts - volumes)[sized]), ("multiplied", counts + volumes)):
        row[f"{name}_zero"] = float(np.mean(densities < _LEAST))
        row[f"{name}_near_zero"] = float(np.mean(densities < densities.max() + math.log(_RELATIVE)))
    return row


def judge_volumes(model: str, row: dict[str, float | str]) -> Claim:
    """Whether almost all densities over volumes vanish beside the largest, by Wilson's interval over the cells."""
    share, n = float(row["divided_near_zero"]), int(row["cells"])
    ends = stats.binomtest(round(share * n), n).proportion_ci(method="wilson")
    text = (
        f"divided by the volumes of their cells, {100 * share:.0f} % of the densities of {model} ({row['quantizer']} "
        f"quantizer, {row['d']} dimensions) are below a thousandth of the largest; multiplied by them "
        f"{100 * float(row['multiplied_near_zero']):.0f} %. The paper: almost all become zero."
    )
    evidence = f"95 % interval {ends.low:.3f} to {ends.high:.3f}, compared with {_ALMOST_ALL}"
    outcome = judge_interval(float(ends.low), float(ends.high), border=_ALMOST_ALL)
    return Claim(outcome, text, "Section 3.3.2", share, evidence=evidence, model=model)
