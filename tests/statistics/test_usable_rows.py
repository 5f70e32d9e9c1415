"""Which rows are usable, in which type."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from isotrope.errors import InputError
from isotrope.sources.batch import Rows
from isotrope.statistics import Moments, prepare_rows


def test_zero_nan_and_infinite_rows_are_counted_and_left_out() -> None:
    rows = np.array([[1.0, 2.0], [0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0], [-np.inf, np.nan], [3.0, 4.0]])
    known = Rows(np.arange(6, dtype=np.uint64), token=np.arange(6))
    found = prepare_rows(rows, known)
    assert (len(found), found.zero, found.nonfinite) == (2, 1, 3)
    np.testing.assert_array_equal(found.values, rows[[0, 5]])
    np.testing.assert_array_equal(found.rows.token, [0, 5])
    np.testing.assert_allclose(found.norms, [5**0.5, 5.0])


def test_rows_beyond_float64_count_as_zero_or_not_finite() -> None:
    found = prepare_rows(np.array([[1e200, 1.0], [1e-200, 0.0], [1.0, 1.0]]))
    assert (len(found), found.zero, found.nonfinite) == (1, 1, 1)


@pytest.mark.parametrize("size", [1e-30, 1e-12, 1.0, 1e12, 1e30])
def test_float32_rows_of_any_size_are_measured_without_overflow(size: float) -> None:
    unit = np.random.default_rng(0).standard_normal((50, 4))
    moments = Moments.of(prepare_rows((unit * size).astype(np.float32)))
    expected = np.cov(unit.T, bias=True) * 50
    np.testing.assert_allclose(moments.scatter / size**2, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "kept"),
    [
        (np.float16, np.float32),
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.longdouble, np.float64),
        (np.int8, np.float64),
        (np.uint64, np.float64),
        (bool, np.float64),
    ],
)
def test_every_real_type_is_taken(dtype: type, kept: type) -> None:
    rows = np.array([[1, 0], [1, 1]], dtype=dtype)
    found = prepare_rows(rows)
    assert found.values.dtype == kept
    np.testing.assert_array_equal(found.values, [[1.0, 0.0], [1.0, 1.0]])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32, torch.float64, torch.int64])
def test_torch_rows_give_what_numpy_rows_give(dtype: torch.dtype) -> None:
    rows = (torch.randn(40, 6, generator=torch.Generator().manual_seed(0)) * 8).to(dtype)
    plain = rows.float().numpy() if rows.element_size() < 4 else rows.numpy()
    a, b = Moments.of(prepare_rows(rows)), Moments.of(prepare_rows(plain))
    for name, array in b.arrays().items():
        np.testing.assert_allclose(a.arrays()[name], array, rtol=0, atol=1e-6 * np.abs(array).max(), err_msg=name)


def test_a_torch_tensor_in_a_graph_is_read_and_left_in_it() -> None:
    rows = torch.randn(5, 3, requires_grad=True)
    assert Moments.of(prepare_rows(rows * 2)).n == 5
    assert rows.requires_grad


@pytest.mark.parametrize(
    "rows", [np.zeros(3), np.zeros((2, 3, 4)), np.zeros((3, 0)), np.array([["a", "b"]]), np.ones((2, 2), complex)]
)
def test_what_is_not_rows_of_numbers_is_refused(rows: np.ndarray) -> None:
    with pytest.raises(InputError, match="expected rows"):
        prepare_rows(rows)


def test_knowledge_about_other_rows_is_refused() -> None:
    with pytest.raises(InputError, match="got 3 rows"):
        prepare_rows(np.ones((3, 2)), Rows(np.arange(2, dtype=np.uint64)))
