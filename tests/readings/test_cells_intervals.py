"""Intervals of measures of cells hold, 90 to 100 times in 100, what as many other points give in the same cells."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from isotrope.measures import MEASURES, Measure
from isotrope.quantization import Kind, Quantized, quantize
from isotrope.quantization.cells import Cells
from isotrope.quantization.search import Search
from isotrope.readings.intervals import Interval, JackknifeGroups, compute_intervals
from isotrope.sources.batch import Rows
from isotrope.statistics import Points, Sample, prepare_rows

#: Of one quantizer's measures, which are functions of cells of either.
ESTIMATES = [m for m in MEASURES if m.needs == "cells" and m.estimate and m.name.endswith("_additive")]

#: As for the other intervals: a hundred draws tell 95 from below 86, hundreds ask for 90.
FEW, LEAST_OF_FEW, LEAST_OF_MANY = 100, 86, 90

D, SIZE = 8, 16


def clustered(sequences: int, length: int, rng: np.random.Generator) -> np.ndarray:
    """Sequences of rows about some of twelve centres, a part of the spread in common."""
    centres = np.random.default_rng(0).standard_normal((12, D)) * 1.5
    shared = 0.4 * rng.standard_normal((sequences, 1, D))
    rows = (
        centres[rng.integers(0, 12, (sequences, length))] + shared + 0.6 * rng.standard_normal((sequences, length, D))
    )
    return rows.reshape(-1, D)


def isotropic(sequences: int, length: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((sequences * length, D))


SPACES = {"clustered": (clustered, 100, 10), "isotropic": (isotropic, 800, 1)}


def sample(space: str, rng: np.random.Generator) -> Sample:
    draw, sequences, length = SPACES[space]
    found = Sample.empty(D, 10**9)
    ids = np.repeat(np.arange(sequences, dtype=np.uint64), length)
    found.add(prepare_rows(draw(sequences, length, rng), Rows(ids)))
    return found


def encoded(trained: Quantized, points: Points) -> Cells:
    """Other points in the cells of a trained quantizer."""
    values = np.float32(points.rows - trained.mean)
    words = np.float32(trained.codebooks)
    if trained.kind == "product":
        width = D // len(words)
        parts = [slice(m * width, (m + 1) * width) for m in range(len(words))]
        apart = [((values[:, None, at] - words[m, :, at]) ** 2).sum(2) for m, at in enumerate(parts)]
        codes = np.stack([a.argmin(1) for a in apart], axis=1)
    else:
        start = np.zeros((len(words), len(values)), dtype=np.int64)
        codes = Search(words).refine(values, start, 8, np.random.default_rng(0)).T
    q = replace(trained, codes=codes)
    return Cells(points, q, q.errors(points.rows), np.arange(points.n))


def coverage(space: str, kind: Kind, times: int, measures: list[Measure] = ESTIMATES) -> dict[str, float]:
    """How many of 100 intervals hold the mean over many draws, by measure."""
    rng = np.random.default_rng(5)
    draw, sequences, length = SPACES[space]
    trained = quantize(draw(8 * sequences, length, rng), kind, codebooks=4, size=SIZE)
    drawn = (encoded(trained, Points.of(sample(space, rng).to_usable_rows())) for _ in range(4 * FEW))
    truth = np.mean([[m(cells) for m in measures] for cells in drawn], axis=0)
    hits = []
    for _ in range(times):
        groups = JackknifeGroups(sample(space, rng), ())
        cells = encoded(trained, groups.points)
        ends: list[Interval] = compute_intervals(measures, [m(cells) for m in measures], groups, "cells", cells)
        hits.append([low <= t <= high for (low, high), t in zip(ends, truth, strict=True)])
    return dict(zip((m.name for m in measures), 100 * np.mean(hits, axis=0), strict=True))


def dishonest(found: dict[str, float], least: float) -> dict[str, float]:
    return {name: share for name, share in found.items() if not least <= share <= 100}


@pytest.mark.long
def test_intervals_hold_what_other_points_give() -> None:
    assert not dishonest(coverage("clustered", "product", FEW), LEAST_OF_FEW)


@pytest.mark.validation
@pytest.mark.parametrize("kind", ["product", "additive"])
@pytest.mark.parametrize("space", SPACES)
def test_intervals_hold_what_other_points_give_many_times(space: str, kind: Kind) -> None:
    assert not dishonest(coverage(space, kind, 200), LEAST_OF_MANY)
