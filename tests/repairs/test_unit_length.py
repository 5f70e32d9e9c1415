"""Rows of length 1 stay rows of length 1: an index by inner product stays an index by cosine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from isotrope.errors import InputError
from isotrope.repairs import (
    AllButTheTop,
    Centering,
    ClusterIsotropy,
    Flow,
    Repair,
    SoftDecay,
    Whitening,
    apply_to_file,
    load_repair,
)
from isotrope.sources.vectors.source import ArraySource

RNG = np.random.default_rng(0)
RAW = RNG.normal(size=(800, 16)) * np.geomspace(2, 0.2, 16) + 0.5
UNIT = RAW / np.linalg.norm(RAW, axis=1, keepdims=True)

KINDS: list[Repair] = [
    SoftDecay(),
    SoftDecay(form="paper"),
    Whitening(),
    Whitening(5),
    AllButTheTop(),
    Centering(),
    ClusterIsotropy(3, 1),
    Flow(steps=1, hidden=4, epochs=1),
]
every_kind = pytest.mark.parametrize("repair", KINDS, ids=repr)


def lengths(rows: np.ndarray) -> np.ndarray:
    found: np.ndarray = np.linalg.norm(rows, axis=1)
    return found


def top_ten(queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
    order: np.ndarray = np.argsort(-(queries @ rows.T), axis=1, kind="stable")[:, :10]
    return order


@every_kind
def test_inner_products_of_repaired_unit_rows_are_cosines(repair: Repair, tmp_path: Path) -> None:
    repair.fit(UNIT)
    assert repair.normalizes_ == "output"
    repair.save(tmp_path / "saved")
    for fitted in (repair, load_repair(tmp_path / "saved")):
        out = fitted.transform(UNIT)
        assert_allclose(lengths(out), 1.0, rtol=1e-12)
        bare = fitted.map_(UNIT)
        assert np.ptp(lengths(bare)) > 0.1  # the bare map changes lengths
        directions = bare / lengths(bare)[:, None]
        assert_array_equal(top_ten(out[:50], out), top_ten(directions[:50], directions))
    assert_allclose(repair.transform(torch.from_numpy(UNIT)).numpy(), out, rtol=0, atol=1e-9)


@every_kind
def test_rows_of_other_lengths_keep_those_that_the_map_gives(repair: Repair) -> None:
    repair.fit(RAW)
    assert repair.normalizes_ == "none"
    assert_array_equal(repair.transform(RAW), repair.map_(RAW))


@pytest.mark.parametrize("repair", [SoftDecay(), Whitening(), Whitening(form="zca"), Centering()], ids=repr)
def test_unit_rows_come_back_as_unit_rows(repair: Repair) -> None:
    repair.fit(UNIT)
    assert_allclose(repair.inverse_transform(repair.transform(UNIT)), UNIT, rtol=0, atol=1e-9)


@every_kind
def test_fitted_on_unit_rows_it_divides_rows_itself(repair: Repair, tmp_path: Path) -> None:
    repair.fit_unit_rows(RAW)
    assert repair.normalizes_ == "both"
    repair.save(tmp_path / "saved")
    again = load_repair(tmp_path / "saved")
    assert_allclose(again.transform(7 * RAW), again.transform(UNIT), rtol=0, atol=1e-9)
    assert_allclose(lengths(again.transform(RAW)), 1.0, rtol=1e-12)
    assert again.find_mismatch(RAW) is None


def test_it_is_the_fit_on_unit_rows() -> None:
    for repair in (SoftDecay(), Whitening(), AllButTheTop(2)):
        expected = repair.fit(UNIT).transform(UNIT)
        assert_allclose(repair.fit_unit_rows(RAW).transform(RAW), expected, rtol=0, atol=1e-9)
        assert_allclose(
            type(repair)(**repair.get_params()).fit_unit_rows(RAW[:400]).partial_fit(RAW[400:]).transform(RAW),
            expected,
            rtol=0,
            atol=1e-9,
        )


def test_lengths_can_be_chosen(tmp_path: Path) -> None:
    repair = SoftDecay().fit(UNIT)
    bare = repair.map_(UNIT)
    repair.normalizes_ = "none"
    assert_array_equal(repair.transform(UNIT), bare)
    with pytest.raises(InputError, match="expected one of none, input, output, both"):
        repair.normalizes_ = "twice"
    repair.normalizes_ = "output"
    source = ArraySource(UNIT)
    for way, expected in (
        (None, bare / lengths(bare)[:, None]),
        ("none", bare),
        ("input", bare / lengths(bare)[:, None]),
    ):
        apply_to_file(repair, source, tmp_path / f"{way}.npy", normalize=way)
        assert_allclose(np.load(tmp_path / f"{way}.npy"), expected, rtol=0, atol=1e-12)
    apply_to_file(repair, ArraySource(9 * UNIT), tmp_path / "nine.npy", normalize="input")
    assert_allclose(np.load(tmp_path / "nine.npy"), bare / lengths(bare)[:, None], rtol=0, atol=1e-9)
