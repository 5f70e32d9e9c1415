"""Directions that the storage type of the rows cannot resolve are left alone, in every repair that has gains."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from scipy.stats import ortho_group

from isotrope.repairs import Repair, SoftDecay, Whitening, load_repair
from isotrope.repairs.spectrum import LEAST, UNITS, Storage, compute_rounding_variances
from isotrope.statistics import Moments, prepare_rows

Values = np.ndarray


def with_dead_direction(deviation: float, n: int = 2_000, d: int = 24, *, turned: bool = True) -> Values:
    """Unit rows with a falling spectrum, and one direction of a given standard deviation."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(n, d)) * np.geomspace(1, 0.1, d) + 0.5
    rows[:, -1] = 0
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows[:, -1] = deviation * rng.normal(size=n)
    return rows @ ortho_group.rvs(d, random_state=1) if turned else rows


#: Storage types with a deviation that each can resolve and one that it cannot. int8 rows are scaled to its range.
PRECISIONS = {"float64": (1e-9, 1e-17), "float32": (1e-4, 6e-9), "float16": (2e-2, 2e-4), "int8": (2e-2, 1e-3)}

#: Each repair with what it does to the strongest direction.
REPAIRS = [
    SoftDecay(form="paper"),
    SoftDecay(form="clipped"),
    SoftDecay(form="shifted"),
    Whitening(),
    Whitening(strength=0.5, form="zca"),
]


def stored(rows: Values, kind: str) -> Values:
    return np.round(rows * 120 / np.abs(rows).max()).astype(np.int8) if kind == "int8" else rows.astype(kind)


@pytest.mark.parametrize("turned", [True, False], ids=["turned", "a coordinate"])
@pytest.mark.parametrize("kind", ["float32", "float16"])
@pytest.mark.parametrize("repair", REPAIRS, ids=repr)
def test_a_dead_direction_moves_with_the_strongest(repair: Repair, kind: str, turned: bool) -> None:
    rows = stored(with_dead_direction(PRECISIONS[kind][1], turned=turned), kind)
    repair.fit(rows)
    assert repair.fitted_on_["storage"] == kind
    gains = repair.gains_
    # Products in float32 may not know the direction at all: then it is dropped, as the rank tolerance says.
    assert repair.left_alone_ == len(gains) - 23
    assert_allclose(gains[23:], gains[0], rtol=1e-9)
    noise = 1e-6 * np.random.default_rng(1).normal(size=rows.shape)
    moved = np.linalg.norm(repair.map_(rows.astype(np.float64) + noise) - repair.map_(rows.astype(np.float64)), axis=1)
    assert moved.max() < 1e-6 * np.sqrt(24) * 3 * np.abs(gains[:23]).max()


@pytest.mark.parametrize("kind", PRECISIONS)
def test_what_is_resolved_is_bent_and_what_is_not_is_left(kind: str) -> None:
    strong, weak = (stored(with_dead_direction(x), kind) for x in PRECISIONS[kind])
    assert Whitening().fit(strong).left_alone_ == 0
    exact = Moments.of(
        prepare_rows(weak.astype(np.float64))
    )  # float64 products know every direction of the narrow types
    found = Whitening().fit_moments(exact, [{"dtype": kind}])
    assert found.left_alone_ == len(found.gains_) - 23
    assert found.fitted_on_["storage"] == kind


def test_the_bound_is_four_units_in_the_last_place() -> None:
    """A closed form: coordinates of ±1 round by one unit, and one of ±c is resolved from four units on."""
    signs = np.array([[1, 1, 1], [1, -1, -1], [-1, 1, -1], [-1, -1, 1]], dtype=np.float64)
    for kind, unit in UNITS.items():
        for factor, left in ((0.9, 1), (1.1, 0)):
            rows = signs * [1.0, 1.0, factor * LEAST * unit]
            if kind == "float64":
                continue  # the products of float64 cannot tell such a direction from zero
            found = SoftDecay(form="shifted").fit_moments(Moments.of(prepare_rows(rows)), [{"dtype": kind}])
            assert (kind, found.left_alone_) == (kind, left)


def test_rounding_is_as_large_as_measured() -> None:
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(50_000, 4)) * [0.1, 1.0, 30.0, 2.0]
    moments = Moments.of(prepare_rows(rows))
    for kind in (np.float16, np.float32):
        error = (rows.astype(kind).astype(np.float64) - rows).std(axis=0)
        claimed = np.sqrt(compute_rounding_variances(moments, Storage(np.dtype(kind).name)))
        # Of the two coordinates above the median; smaller ones count as that. Rounding is uniform within half a unit,
        # whose size is between half of and all of the number's: from 0.14 to 0.29 of it.
        assert (claimed[2:] / error[2:]).min() > 1 / 0.29
        assert (claimed[2:] / error[2:]).max() < 1 / 0.14
    steps = np.round(rows * 20) - rows * 20
    assert_allclose(np.sqrt(compute_rounding_variances(moments, Storage("int8"))), steps.std(), rtol=0.02)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (with_dead_direction(0.1), "float64"),
        (with_dead_direction(0.1).astype(np.float32), "float32"),
        (with_dead_direction(0.1).astype(np.float32).astype(np.float64), "float32"),
        (with_dead_direction(0.1).astype(np.float16).astype(np.float32), "float16"),
        (stored(with_dead_direction(0.1), "int8"), "int8"),
        (torch.from_numpy(with_dead_direction(0.1)).bfloat16(), "bfloat16"),
        (torch.from_numpy(with_dead_direction(0.1)).half(), "float16"),
    ],
    ids=["float64", "float32", "widened float32", "widened float16", "int8", "bfloat16", "half"],
)
def test_the_storage_type_is_that_of_the_rows(rows: object, expected: str, tmp_path: Path) -> None:
    repair = SoftDecay().fit(rows)
    assert repair.fitted_on_["storage"] == expected
    repair.save(tmp_path / "saved")
    assert load_repair(tmp_path / "saved").fitted_on_["storage"] == expected
    assert repair.partial_fit(with_dead_direction(0.1, n=50)).fitted_on_["storage"] == expected


@pytest.mark.parametrize("kind", ["float64", "float32", "float16", "int8"])
def test_the_storage_type_of_a_file_reaches_the_fit(kind: str, tmp_path: Path) -> None:
    rows = stored(with_dead_direction(0.1), kind)
    np.save(tmp_path / "x.npy", rows)
    assert Whitening().fit(tmp_path / "x.npy").fitted_on_["storage"] == kind


def test_integers_divided_by_their_length_have_smaller_steps() -> None:
    rows = stored(with_dead_direction(2e-2), "int8")
    assert SoftDecay(normalize=True).fit(rows).left_alone_ == Whitening().fit_unit_rows(rows).left_alone_ == 0
