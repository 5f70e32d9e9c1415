"""Saved statistics are checked before anything is computed from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from isotrope.errors import StoreError
from isotrope.runs.retention import compact_arrays, count_kept_rows
from isotrope.sources.batch import Rows
from isotrope.statistics import (
    Collection,
    Moments,
    Points,
    Sample,
    SequenceSpectra,
    SequenceStatistics,
    Summary,
    TokenStatistics,
    TokenTables,
    Wanted,
    prepare_rows,
)
from isotrope.statistics.saved_arrays import ABSOLUTE, RELATIVE, decode_rows, encode_rows
from isotrope.statistics.tridiagonal import eigenvalues, spectra

OPTIONAL = {"token", "position", "special", "norms"}
D = 5


def _rows(seed: int = 0, n: int = 60) -> tuple[np.ndarray, Rows]:
    rng = np.random.default_rng(seed)
    values = (rng.normal(size=(n, D)) + 2).astype(np.float32)
    known = Rows(
        np.repeat(np.arange(n // 4, dtype=np.uint64), 4),
        token=rng.integers(0, 3, n),
        position=np.tile(np.arange(4), n // 4),
        special=np.zeros(n, bool),
    )
    return values, known


def _summary() -> Summary:
    values, known = _rows()
    summary = Wanted(tokens=True, sequences=True, sample=30).empty(D, known)
    summary.update(values, known)
    return summary


def _saved() -> dict[str, tuple[Any, dict[str, np.ndarray]]]:
    rows, summary = prepare_rows(*_rows()), _summary()
    assert summary.sample is not None
    assert isinstance(summary.tokens, TokenStatistics)
    sample = summary.sample
    return {
        "moments": (Moments, summary.moments.arrays()),
        "compact moments": (Moments, summary.moments.compact_arrays()),
        "tokens": (TokenStatistics, summary.tokens.arrays()),
        "token tables": (TokenTables, TokenTables.of(summary.tokens).arrays()),
        "sequences": (SequenceStatistics, SequenceStatistics.of(rows).arrays()),
        "spectra": (SequenceSpectra, SequenceSpectra.of(rows).arrays()),
        "points": (Points, Points.of(rows).arrays()),
        "sample": (Sample, sample.arrays()),
        "compact sample": (Sample, sample.compact_arrays(12, summary.moments.mean)),
    }


every_kind = pytest.mark.parametrize("kind", _saved())


def _refused(kind: str, arrays: dict[str, Any]) -> None:
    with pytest.raises(StoreError) as refused:
        _saved()[kind][0].from_arrays(arrays)
    text = str(refused.value)
    assert "\n" not in text
    assert text.endswith("so make it again.")


@every_kind
def test_whole_arrays_are_read(kind: str) -> None:
    of, arrays = _saved()[kind]
    again = of.from_arrays({name: array.copy() for name, array in arrays.items()})
    assert again.d == D


@every_kind
@pytest.mark.parametrize("change", ["int8", "float16", "deeper", "shorter", "missing"])
def test_another_type_or_shape(kind: str, change: str) -> None:
    arrays = _saved()[kind][1]
    for name, array in arrays.items():
        if change == str(array.dtype) or (kind, name, change) == ("sequences", "units", "shorter"):
            continue
        changed = {
            "int8": lambda a: a.astype(np.int8),
            "float16": lambda a: a.astype(np.float16),
            "deeper": lambda a: a[None],
            "shorter": lambda a: a.ravel()[:-1],
        }
        others = {key: value for key, value in arrays.items() if key != name}
        if change == "missing" and name in OPTIONAL:
            continue
        _refused(kind, others if change == "missing" else others | {name: changed[change](array)})


@every_kind
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e308, -1e308])
def test_numbers_that_no_scan_lets_in(kind: str, value: float) -> None:
    arrays = _saved()[kind][1]
    floats = [name for name, array in arrays.items() if array.dtype.kind == "f"]
    for name in floats:
        changed = arrays[name].copy()
        with np.errstate(over="ignore"):
            changed.flat[-1] = value
        _refused(kind, arrays | {name: changed})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("moments", "counts"),
        ("compact moments", "counts"),
        ("tokens", "n"),
        ("token tables", "n"),
        ("sequences", "counts"),
        ("sequences", "lengths"),
        ("spectra", "starts"),
        ("sample", "facts"),
        ("compact sample", "facts"),
    ],
)
@pytest.mark.parametrize("value", [-1, 2**62, -(2**63)])
def test_counts_that_cannot_be(kind: str, name: str, value: int) -> None:
    arrays = _saved()[kind][1]
    for at in range(arrays[name].size):
        changed = arrays[name].copy()
        changed[at] = value
        _refused(kind, arrays | {name: changed})


def test_counts_that_contradict_each_other() -> None:
    arrays = _saved()["sequences"][1]
    _refused("sequences", arrays | {"counts": arrays["counts"] + 1})
    tokens = _saved()["tokens"][1]
    _refused("tokens", tokens | {"types": tokens["types"][::-1].copy()})
    sample = _saved()["sample"][1]
    _refused("sample", sample | {"facts": np.array([D, 30, 0, 2])})


def test_parts_of_different_widths() -> None:
    narrow = prepare_rows(np.random.default_rng(0).normal(size=(9, 3)))
    mixed = _summary().arrays() | {f"moments.{k}": v for k, v in Moments.of(narrow).arrays().items()}
    with pytest.raises(StoreError, match="rows of different widths"):
        Summary.from_arrays(mixed)


def test_moments_through_a_map_have_no_unit_rows_and_are_read() -> None:
    arrays = _saved()["moments"][1]
    numbers = arrays["numbers"].copy()
    numbers[0] = np.nan
    moments = Moments.from_arrays(arrays | {"numbers": numbers, "unit_mean": np.full(D, np.nan)})
    assert np.isnan(moments.unit_mean).all()


class TestRawPointers:
    """Nothing reaches LAPACK but contiguous finite float64 numbers of a square matrix."""

    def test_narrow_numbers_are_widened(self) -> None:
        found = spectra(np.diag([1, 3]).astype(np.int8), 2, np.array([0.0, 1.0]))
        assert_allclose(found, [[3, 1], [5, 1]], atol=1e-12)

    @pytest.mark.parametrize(
        "matrix",
        [
            np.ones((3, 3), np.int8),
            np.ones((3, 3), np.float32),
            np.ones((6, 6))[::2, ::2],
            np.ones((3, 4)),
            np.ones(3),
            np.empty((0, 0)),
        ],
    )
    def test_other_arrays_are_refused(self, matrix: np.ndarray) -> None:
        with pytest.raises(ValueError, match="got"):
            eigenvalues(matrix)

    def test_a_mean_of_another_width(self) -> None:
        with pytest.raises(ValueError, match="shape"):
            spectra(np.eye(3), 2, np.ones(4))

    def test_a_matrix_that_cannot_be_written(self) -> None:
        matrix = np.eye(3)
        matrix.flags.writeable = False
        with pytest.raises(ValueError, match="writable"):
            eigenvalues(matrix)


class TestCompact:
    def test_moments_lose_no_digit(self) -> None:
        moments = _summary().moments
        again = Moments.from_arrays(moments.compact_arrays())
        for name, array in moments.arrays().items():
            assert_array_equal(again.arrays()[name], array, err_msg=name)
        assert len(moments.compact_arrays()["upper"]) == D * (D + 1) // 2

    def test_token_tables_are_exact(self) -> None:
        tokens = _summary().tokens
        assert isinstance(tokens, TokenStatistics)
        again = TokenTables.from_arrays(TokenTables.of(tokens).arrays())
        for name, column in tokens.table._asdict().items():
            assert_array_equal(getattr(again.table, name), column, err_msg=name)
        window = tokens.table_of(tokens.n >= 10)
        assert len(window.n)
        for name, column in window._asdict().items():
            assert_array_equal(getattr(again.window, name), column, err_msg=name)
        assert_allclose(again.means_of(window.types), tokens.means_of(window.types), rtol=2e-3)
        assert again.means_of(window.types[:0]).shape == (0, D)

    @pytest.mark.parametrize("rows", [1, 10, 12, 29, 1000])
    def test_a_smaller_sample_is_the_sample_of_that_size(self, rows: int) -> None:
        values, known = _rows()
        large, small = Sample.empty(D, 30), Sample.empty(D, min(rows, 30))
        for sample in (large, small):
            sample.add(prepare_rows(values, known))
        again = Sample.from_arrays(large.compact_arrays(rows, values.mean(axis=0)))
        assert (again.size, again.sequences, again.n) == (small.size, small.sequences, small.n)
        for name in ("sequence", "token", "position", "special"):
            assert_array_equal(getattr(again.rows, name), getattr(small.rows, name), err_msg=name)
        assert again.values.dtype == small.values.dtype
        assert_allclose(again.values, small.values, rtol=0, atol=RELATIVE * np.abs(values - 2).max() * 1.01)

    def test_groups_are_added_up(self) -> None:
        from dataclasses import replace

        from isotrope.sources.batch import Batch

        values, known = _rows()
        grouped = replace(known, group=np.where(known.sequence % 2 == 0, "even", "odd"))
        whole, parts = (Collection(Wanted(tokens=True, sequences=True, sample=30)) for _ in range(2))
        whole.update(Batch({"a": values}, known))
        parts.update(Batch({"a": values}, grouped))
        one, other = (Summary.from_arrays(compact_arrays(c)["layer_a"]) for c in (whole, parts))
        assert_allclose(one.moments.scatter, other.moments.scatter, rtol=1e-6, atol=1e-5)
        assert one.tokens is not None
        assert other.tokens is not None
        assert_allclose(one.tokens.table.b, other.tokens.table.b, rtol=1e-9)
        assert one.sample is not None
        assert other.sample is not None
        assert_array_equal(one.sample.rows.sequence, other.sample.rows.sequence)

    def test_never_fewer_rows_than_a_report_draws(self) -> None:
        assert count_kept_rows(20_000, layers=33, d=4096) == 1_500
        assert count_kept_rows(100, layers=33, d=4096) == 100
        assert count_kept_rows(0, layers=1, d=8) == 0


class TestHalfRows:
    @pytest.mark.parametrize("dtype", [np.float32, np.float64])
    @pytest.mark.parametrize("mean", [0.0, 3.0, 1e3])
    @pytest.mark.parametrize("length", [1e-15, 1e-6, 1.0, 1e6, 1e15])
    def test_the_error_is_bounded_by_the_row_and_by_its_offset(self, dtype: Any, mean: float, length: float) -> None:
        rng = np.random.default_rng(1)
        centre = np.full(50, mean)
        rows = (rng.normal(size=(40, 50)) * 10.0 ** rng.uniform(-6, 0, size=50)).astype(dtype) + centre.astype(dtype)
        rows[::2] = rng.normal(size=(20, 50)) * length
        error = np.abs(decode_rows(encode_rows(rows, centre)).astype(np.float64) - rows)
        stored = np.minimum(np.abs(rows).max(axis=1), np.abs(rows - centre).max(axis=1))[:, None]
        rounding = np.finfo(dtype).eps * np.abs(rows)  # of the type that the rows came in
        assert (error <= RELATIVE * stored + ABSOLUTE * stored + 2 * rounding).all()

    def test_every_number_keeps_three_digits_beside_massive_ones(self) -> None:
        rows = np.array([[1e4, 1.0, -1e-3], [5.0, 2.5e-4, 1e-8]], np.float32)
        assert_allclose(decode_rows(encode_rows(rows, np.zeros(3))), rows, rtol=RELATIVE)

    def test_equal_rows_stay_equal_and_zeros_stay_zero(self) -> None:
        rows = np.repeat(np.random.default_rng(0).normal(size=(3, 4)), 2, axis=0)
        rows[4:] = 0.0
        found = decode_rows(encode_rows(rows, rows.mean(axis=0)))
        assert_array_equal(found[::2], found[1::2])
        assert_array_equal(found[4:], 0.0)
