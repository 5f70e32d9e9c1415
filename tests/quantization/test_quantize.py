"""What holds for every quantizer, whoever computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError, Undefined
from isotrope.quantization import Engine, Kind, Quantized, quantize
from testkit.clustered import clustered

ALL: list[tuple[Kind, Engine]] = [(k, e) for k in ("additive", "product") for e in ("own", "faiss")]
every = pytest.mark.parametrize(("kind", "engine"), ALL)
kinds = pytest.mark.parametrize("kind", ["additive", "product"])

ROWS = clustered(700, 8)


def share(q: Quantized, rows: np.ndarray) -> float:
    """Squared error as a share of the variance."""
    return float((q.errors(rows) ** 2).sum() / np.square(rows - rows.mean(0, dtype=np.float64)).sum())


@every
def test_a_row_is_the_mean_and_one_codeword_of_each_codebook(kind: Kind, engine: Engine) -> None:
    q = quantize(ROWS, kind, codebooks=2, size=16, engine=engine)
    assert q.codes.shape == (700, 2)
    assert q.codebooks.shape == (2, 16, 8)
    assert (q.kind, q.engine, q.seed, len(q)) == (kind, engine, 0, 700)
    by_hand = np.array([q.mean + q.codebooks[0, a] + q.codebooks[1, b] for a, b in q.codes])
    np.testing.assert_allclose(q.reconstruct(), by_hand, rtol=1e-12)
    np.testing.assert_allclose(q.errors(ROWS), np.linalg.norm(ROWS - by_hand, axis=1), rtol=1e-9)
    assert share(q, ROWS) < 0.5
    for m in range(2):
        assert [(q.codes[:, m] == j).sum() for j in range(16)] == q.counts[m].tolist()


@every
def test_a_seed_decides_everything(kind: Kind, engine: Engine) -> None:
    one, again, other = (quantize(ROWS, kind, codebooks=2, size=16, seed=s, engine=engine) for s in (5, 5, 6))
    np.testing.assert_array_equal(one.codes, again.codes)
    np.testing.assert_array_equal(one.codebooks, again.codebooks)
    assert (one.codes != other.codes).any()


@every
def test_a_scale_is_given_back_and_changes_no_code(kind: Kind, engine: Engine) -> None:
    """Powers of two, which change no digit, up to where squares in float32 would overflow or vanish."""
    plain = quantize(ROWS, kind, codebooks=2, size=16, engine=engine)
    for power in (-80, 80):
        rows = ROWS * np.float32(2.0**power)
        q = quantize(rows, kind, codebooks=2, size=16, engine=engine)
        np.testing.assert_array_equal(q.codes, plain.codes)
        np.testing.assert_allclose(q.codebooks / 2.0**power, plain.codebooks, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(q.errors(rows) / 2.0**power, plain.errors(ROWS), rtol=1e-9)


@kinds
def test_float64_keeps_its_range(kind: Kind) -> None:
    plain = quantize(ROWS.astype(np.float64), kind, codebooks=2, size=16)
    rows = ROWS.astype(np.float64) * 2.0**200
    q = quantize(rows, kind, codebooks=2, size=16)
    np.testing.assert_array_equal(q.codes, plain.codes)
    assert share(q, rows) == pytest.approx(share(plain, ROWS))


@kinds
def test_a_common_mean_costs_no_digits(kind: Kind) -> None:
    """A mean a million times the spread: in float32 without centring nothing would be left."""
    rows = ROWS.astype(np.float64)
    far = rows + 1e6
    near = share(quantize(rows, kind, codebooks=2, size=16), rows)
    assert share(quantize(far, kind, codebooks=2, size=16), far) == pytest.approx(near, rel=0.02)


@kinds
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8])
def test_every_real_type_is_taken(kind: Kind, dtype: type) -> None:
    rows = (ROWS * 8).astype(dtype)
    q = quantize(rows, kind, codebooks=2, size=16)
    assert share(q, rows.astype(np.float64)) < 0.5


@kinds
def test_the_input_is_left_alone(kind: Kind) -> None:
    rows = ROWS.copy()
    quantize(rows, kind, codebooks=2, size=16)
    np.testing.assert_array_equal(rows, ROWS)


@every
def test_constant_columns_are_given_back(kind: Kind, engine: Engine) -> None:
    rows = np.hstack([ROWS[:, :4], np.full((700, 4), 7.0, np.float32)])
    q = quantize(rows, kind, codebooks=2, size=16, engine=engine)
    np.testing.assert_allclose(q.reconstruct()[:, 4:], 7.0, rtol=2e-3)
    assert share(q, rows) < 0.5


def test_a_part_without_spread_has_one_cell() -> None:
    rows = np.hstack([ROWS[:, :4], np.full((700, 4), 7.0, np.float32)])
    q = quantize(rows, "product", codebooks=2, size=16)
    assert q.counts[1].tolist() == [700] + [0] * 15
    assert q.empty == 15


def test_one_dimension_is_taken() -> None:
    q = quantize(ROWS[:, :1], codebooks=3, size=4)
    assert share(q, ROWS[:, :1]) < 0.02


def test_one_codebook_is_plain_clustering() -> None:
    """Both kinds are then the same problem, in which each codeword is the mean of its rows."""
    rows = ROWS.astype(np.float64)
    q = quantize(rows, codebooks=1, size=16)
    for j in np.flatnonzero(q.counts[0]):
        np.testing.assert_allclose(q.mean + q.codebooks[0, j], rows[q.codes[:, 0] == j].mean(0), atol=1e-5)
    assert share(q, rows) == pytest.approx(share(quantize(rows, "product", codebooks=1, size=16), rows), rel=0.1)


@every
def test_fewer_different_rows_than_cells_have_no_value(kind: Kind, engine: Engine) -> None:
    with pytest.raises(Undefined, match="15 rows are fewer than the 16 cells"):
        quantize(ROWS[:15], kind, codebooks=2, size=16, engine=engine)
    with pytest.raises(Undefined, match="1 different rows among 700 are fewer"):
        quantize(np.full((700, 8), 3.0), kind, codebooks=2, size=16, engine=engine)
    with pytest.raises(Undefined, match="0 rows"):
        quantize(np.empty((0, 8)), kind, codebooks=2, size=16, engine=engine)
    signs = np.zeros((40, 8))
    signs[::2] = -0.0
    with pytest.raises(Undefined, match="1 different rows"):
        quantize(signs, kind, codebooks=2, size=2, engine=engine)


@every
def test_as_many_different_rows_as_cells_are_given_back(kind: Kind, engine: Engine) -> None:
    rows = np.repeat(ROWS[:16], 5, axis=0)
    assert share(quantize(rows, kind, codebooks=2, size=16, engine=engine), rows) < 0.3


@pytest.mark.parametrize("engine", ["own", "faiss"])
def test_a_width_that_cannot_be_divided_has_no_value(engine: Engine) -> None:
    with pytest.raises(Undefined, match="width 8 cannot be divided among 3 codebooks"):
        quantize(ROWS, "product", codebooks=3, size=16, engine=engine)


@pytest.mark.parametrize(
    ("rows", "options", "message"),
    [
        (np.zeros(5), {}, "shape"),
        (np.zeros((5, 0)), {}, "shape"),
        (np.array([["a"]]), {}, "expected numbers"),
        (np.array([[1.0], [np.nan]]), {}, "NaN"),
        (np.array([[1.0], [-np.inf]]), {}, "NaN, infinity"),
        (np.array([[1.0], [1e200]]), {}, "1e\\+140"),
        (ROWS, {"kind": "residual"}, "no quantizer"),
        (ROWS, {"engine": "scann"}, "no quantizer"),
        (ROWS, {"codebooks": 0}, "at least 1 codebook"),
        (ROWS, {"size": 1}, "at least 2 cells"),
        (ROWS, {"seed": -1}, "seed from 0"),
        (ROWS, {"size": 100, "engine": "faiss"}, "own engine"),
    ],
)
def test_what_cannot_be_used_is_refused(rows: np.ndarray, options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        quantize(rows, **options)


def test_errors_of_other_rows_are_refused() -> None:
    q = quantize(ROWS, "product", codebooks=2, size=16)
    with pytest.raises(InputError, match="rows that were quantized"):
        q.errors(ROWS[:5])
