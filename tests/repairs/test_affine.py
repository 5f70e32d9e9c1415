"""The affine map: against plain products, with its inverse, composition, pushed moments and saved form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

from isotrope.errors import InputError, StoreError
from isotrope.repairs import Affine, Whitening, load_repair
from isotrope.statistics import Moments, prepare_rows

RNG = np.random.default_rng(0)


def some(d: int = 6, k: int = 6) -> Affine:
    return Affine(RNG.normal(size=d), RNG.normal(size=(d, k)), RNG.normal(size=k))


def test_rows_are_moved_turned_and_moved() -> None:
    f, x = some(6, 4), RNG.normal(size=(20, 6))
    assert_allclose(f(x), np.stack([(row - f.shift) @ f.weight + f.offset for row in x]), rtol=1e-12)


def test_more_rows_than_are_multiplied_at_once_and_none() -> None:
    f, x = some(3, 2), RNG.normal(size=(20_000, 3))
    assert_allclose(f(x)[[0, 8191, 8192, 19_999]], f(x[[0, 8191, 8192, 19_999]]), rtol=1e-12)
    assert f(x[:0]).shape == (0, 2)
    assert f(torch.from_numpy(x[:0])).shape == (0, 2)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_a_float_type_stays_what_it_is(kind: type) -> None:
    f, x = some(6, 4), RNG.normal(size=(9, 6)).astype(kind)
    assert f(x).dtype == kind
    tensor = f(torch.from_numpy(x))
    assert tensor.dtype == torch.from_numpy(x).dtype
    assert_allclose(tensor.numpy(), f(x), rtol=0, atol=20 * np.finfo(kind).eps)


def test_bytes_in_another_order_lose_no_digits() -> None:
    f, x = some(6, 4), RNG.normal(size=(9, 6))
    assert_array_equal(f(x.astype(">f8")), f(x))


def test_whole_numbers_become_float64() -> None:
    assert Affine([1], [[2.0]])(np.array([[3]])).tolist() == [[4.0]]


@pytest.mark.parametrize("moved", [True, False])
def test_float32_keeps_its_digits_beside_a_large_mean(moved: bool) -> None:
    """Mean 1,000, spread 0.1: a plain float32 product is off by more than ten times as much."""
    d = 256
    x = (1_000 + 0.1 * RNG.normal(size=(500, d))).astype(np.float32)
    weight = np.linalg.qr(RNG.normal(size=(d, d)))[0]
    f = Affine(np.full(d, 1_000.0) if moved else np.zeros(d), weight)
    exact = f(x.astype(np.float64))
    # What remains without the shift is the rounding of large outputs to float32, half a unit in the last place.
    allowed = 1e-6 if moved else float(np.spacing(np.abs(exact).max().astype(np.float32)))
    assert np.abs(f(x) - exact).max() < allowed
    assert np.abs(f(torch.from_numpy(x)).numpy() - exact).max() < allowed
    assert np.abs(x @ weight.astype(np.float32) - (f.shift @ weight).astype(np.float32) - exact).max() > 2 * allowed


def test_numbers_whose_sum_is_none_are_still_numbers() -> None:
    x = np.full((50, 2), 3e38, np.float32)
    assert_allclose(Affine([0.0, 0.0], np.diag([0.5, 0.25]))(x), np.tile([1.5e38, 0.75e38], (50, 1)), rtol=1e-6)


def test_gradients_pass_through() -> None:
    f = some(4, 3)
    x = torch.randn(5, 4, dtype=torch.float64, requires_grad=True)
    f(x).sum().backward()
    assert_allclose(x.grad.numpy(), np.tile(f.weight.sum(axis=1), (5, 1)), rtol=1e-12)


def test_the_inverse_brings_rows_back() -> None:
    f, x = some(), RNG.normal(size=(30, 6)) + 100
    assert_allclose(f.inverse()(f(x)), x, rtol=1e-10)
    assert_allclose(f(f.inverse()(x)), x, rtol=1e-10)


def test_there_is_no_inverse_of_a_loss() -> None:
    with pytest.raises(InputError, match="from 6 to 4 columns has no inverse"):
        some(6, 4).inverse()
    direction = np.ones(6) / np.sqrt(6)
    with pytest.raises(InputError, match="takes 1 of 6 directions to zero"):
        Affine(np.zeros(6), np.eye(6) - np.outer(direction, direction)).inverse()
    with pytest.raises(InputError, match="takes 6 of 6"):
        Affine(np.zeros(6), np.zeros((6, 6))).inverse()


def test_one_map_after_another() -> None:
    f, g, x = some(6, 4), some(4, 5), RNG.normal(size=(8, 6))
    assert_allclose(f.then(g)(x), g(f(x)), rtol=1e-10, atol=1e-12)
    lost = Affine(np.zeros(6), np.zeros((6, 4)))
    assert_allclose(lost.then(g)(x), g(lost(x)), rtol=1e-12)
    with pytest.raises(InputError, match="to 4 columns cannot be followed by one from 6"):
        f.then(f)


def test_moments_are_pushed_without_rows() -> None:
    f, x = some(6, 4), RNG.normal(size=(40, 6)) @ np.diag([9, 4, 2, 1, 0.5, 0.1]) + 30
    pushed, direct = f.push(Moments.of(prepare_rows(x))), Moments.of(prepare_rows(f(x)))
    assert (pushed.n, pushed.d) == (40, 4)
    for name in ("mean", "scatter", "energy", "eigenvalues", "singular_values"):
        assert_allclose(getattr(pushed, name), getattr(direct, name), rtol=1e-9, atol=1e-9, err_msg=name)
    assert np.isnan(pushed.unit_mean).all()
    assert np.isnan(pushed.unit_scatter)
    with pytest.raises(InputError, match="width 4, expected 6"):
        f.push(pushed)


def test_torch_linear_does_the_same() -> None:
    f, x = some(6, 4), RNG.normal(size=(8, 6)).astype(np.float32)
    assert_allclose(f.to_torch()(torch.from_numpy(x)).detach().numpy(), f(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (([0.0], np.eye(2)), "shift of shape"),
        (([0.0, 0.0], np.eye(2), [0.0]), "offset of shape"),
        (([0.0, 0.0], [1.0, 2.0]), "weight of shape"),
        (([0.0, np.nan], np.eye(2)), "the shift of an affine map holds NaN"),
    ],
)
def test_parts_that_do_not_fit_are_refused(parts: tuple, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Affine(*parts)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_row_that_is_no_number_spoils_no_other(bad: float, kind: type) -> None:
    x = RNG.normal(size=(5, 6)).astype(kind)
    x[3, 1] = bad
    for rows in (x, torch.from_numpy(x)):
        with pytest.raises(InputError, match="1 of 5 rows hold NaN or inf"):
            some()(rows)


def test_other_widths_and_shapes_are_refused() -> None:
    with pytest.raises(InputError, match="X has 5 features, but this map is expecting 6"):
        some()(np.zeros((2, 5)))
    with pytest.raises(InputError, match=r"shape \(6,\), expected rows"):
        some()(np.zeros(6))


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    f = some(6, 4)
    f.save(tmp_path / "map", fitted_on={"rows": 7})
    again = Affine.load(tmp_path / "map")
    for name, array in f.arrays().items():
        assert_array_equal(again.arrays()[name], array)
    config = json.loads((tmp_path / "map" / "config.json").read_text())
    assert (config["width"], config["columns"], config["fitted_on"]) == (6, 4, {"rows": 7})
    with pytest.raises(InputError, match=r"use Affine\.load"):
        load_repair(tmp_path / "map")
    Whitening().fit(RNG.normal(size=(20, 3))).save(tmp_path / "repair")
    with pytest.raises(InputError, match=r"use isotrope\.repairs\.load"):
        Affine.load(tmp_path / "repair")


def test_an_empty_folder_may_be_filled_and_a_file_not(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    some().save(tmp_path / "empty")
    assert sorted(p.name for p in (tmp_path / "empty").iterdir()) == ["config.json", "repair.safetensors"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(StoreError, match="is a file"):
        some().save(tmp_path / "file", overwrite=True)
    assert (tmp_path / "file").read_text() == "mine"
