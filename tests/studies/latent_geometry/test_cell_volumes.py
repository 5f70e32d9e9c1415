"""Volumes of quantized cells against closed forms, and what weighting by them leaves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotrope.quantization.cells import Cells
from isotrope.statistics import Points, prepare_rows
from isotrope.studies.latent_geometry.cell_volumes import (
    compute_log_volume,
    judge_volumes,
    list_cells,
    summarize_volumes,
)


def test_volumes_of_balls_by_their_closed_forms() -> None:
    radius = np.array([0.5, 3.0])
    for d, volume in ((1, 2 * radius), (2, math.pi * radius**2), (3, 4 / 3 * math.pi * radius**3)):
        np.testing.assert_allclose(np.exp(compute_log_volume(radius, d)), volume)
    # The volume of the unit ball is greatest in five dimensions, and goes to zero.
    unit = [float(compute_log_volume(np.ones(1), d)[0]) for d in range(1, 400)]
    assert int(np.argmax(unit)) + 1 == 5
    assert unit[383] < -500


@pytest.mark.parametrize("kind", ["additive", "product"])
def test_radius_and_counts_of_each_cell_by_a_loop(kind: str) -> None:
    rows = np.random.default_rng(0).normal(size=(300, 8))
    cells = Cells.of(Points.of(prepare_rows(rows)), kind, codebooks=2, size=8)  # type: ignore[arg-type]
    found = list_cells(cells)
    assert found["count"].sum() == 600
    for row in found.itertuples():
        inside = rows[cells.quantized.codes[:, row.codebook] == row.cell]
        if kind == "product":
            inside = inside[:, 4 * row.codebook : 4 * row.codebook + 4]
        assert found.loc[row.Index, "count"] == len(inside)
        assert row.radius == pytest.approx(np.linalg.norm(inside - inside.mean(0), axis=1).max())


def test_in_many_dimensions_almost_all_densities_vanish() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(800, 384)) * rng.uniform(0.5, 2.0, size=(800, 1))
    wide = summarize_volumes(Cells.of(Points.of(prepare_rows(rows)), "additive", codebooks=2, size=64))
    assert float(wide["divided_near_zero"]) > 0.95
    claim = judge_volumes("wide", wide)
    assert claim.outcome in ("agrees", "undecided")
    flat = summarize_volumes(Cells.of(Points.of(prepare_rows(rows[:, :2])), "additive", codebooks=2, size=64))
    assert float(flat["divided_near_zero"]) < float(wide["divided_near_zero"])


@pytest.mark.parametrize(("share", "outcome"), [(0.99, "agrees"), (0.5, "contradicts"), (0.9, "undecided")])
def test_the_verdict_is_by_the_interval_over_cells(share: float, outcome: str) -> None:
    row = {"quantizer": "additive", "cells": 1000, "d": 384, "divided_near_zero": share, "multiplied_near_zero": share}
    assert judge_volumes("one", row).outcome == outcome  # type: ignore[arg-type]
