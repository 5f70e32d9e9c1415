"""Token statistics against a plain loop over the occurrences of each type."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.batch import Rows
from isotrope.statistics import TokenStatistics, TokenTable, prepare_rows


def known(tokens: np.ndarray) -> Rows:
    return Rows(np.arange(len(tokens), dtype=np.uint64), token=tokens)


def merged(rows: np.ndarray, tokens: np.ndarray, size: int) -> TokenStatistics:
    total = TokenStatistics.empty(rows.shape[1])
    for at in range(0, len(rows), size):
        total += TokenStatistics.of(prepare_rows(rows[at : at + size], known(tokens[at : at + size])))
    return total


def naive(rows: np.ndarray, tokens: np.ndarray) -> dict[str, np.ndarray]:
    """Type by type, in float64."""
    exact = rows.astype(np.float64)
    overall = exact.mean(axis=0)
    columns: dict[str, list[float]] = {k: [] for k in ("types", "n", "q", "m", "v", "b", "unit_squares")}
    for token in sorted(set(tokens.tolist())):
        own = [exact[i] for i in range(len(exact)) if tokens[i] == token]
        mean = sum(own) / len(own)
        unit = sum(x / np.sqrt(sum(v * v for v in x)) for x in own)
        columns["types"].append(token)
        columns["n"].append(len(own))
        columns["q"].append(sum(float(x @ x) for x in own) / len(own))
        columns["m"].append(float(mean @ mean))
        columns["v"].append(sum(float((x - mean) @ (x - mean)) for x in own) / len(own))
        columns["b"].append(float((mean - overall) @ (mean - overall)))
        columns["unit_squares"].append(float(unit @ unit))
    units = (exact / np.linalg.norm(exact, axis=1, keepdims=True)).sum(axis=0)
    whole = {"mean_square": float(overall @ overall), "unit_square": float(units @ units)}
    return {k: np.array(v) for k, v in columns.items()} | {k: np.array(v) for k, v in whole.items()}


def assert_table(found: TokenTable, expected: dict[str, np.ndarray], rtol: float) -> None:
    for name, values in expected.items():
        scale = expected["q"].max() * 1e-14 if name in ("v", "b") else 0.0
        np.testing.assert_allclose(getattr(found, name), values, rtol=rtol, atol=scale, err_msg=name)


@pytest.mark.parametrize("size", [3, 50, 1000])
@pytest.mark.parametrize("offset", [0.0, 5.0])
def test_float64_rows_match_a_loop(size: int, offset: float) -> None:
    rng = np.random.default_rng(0)
    tokens = rng.zipf(1.5, 600) % 40
    rows = rng.standard_normal((600, 8)) + rng.standard_normal((40, 8))[tokens] + offset
    found = merged(rows, tokens, size).table
    assert_table(found, naive(rows, tokens), 1e-9)
    np.testing.assert_allclose(found.q, found.m + found.v, rtol=1e-12)  # Yamagiwa and Shimodaira 2024, Eq. 1


@pytest.mark.parametrize("size", [3, 64, 2000])
def test_float32_rows_keep_a_small_variance(size: int) -> None:
    # V/Q = 8e-4: where Q − M and a float32 running mean lose 1 to 20 %.
    rng = np.random.default_rng(1)
    tokens = rng.zipf(1.3, 2000) % 100
    rows = (rng.standard_normal((100, 16))[tokens] + 0.0283 * rng.standard_normal((2000, 16)) + 0.2).astype(np.float32)
    expected = naive(rows, tokens)
    frequent = expected["n"] >= 10
    assert np.median((expected["v"] / expected["q"])[frequent]) == pytest.approx(8e-4, rel=0.3)
    found = merged(rows, tokens, size).table
    for name in ("n", "q", "m", "v", "b", "unit_squares"):
        np.testing.assert_allclose(getattr(found, name)[frequent], expected[name][frequent], rtol=1e-5, err_msg=name)


def test_the_parts_add_up() -> None:
    rng = np.random.default_rng(2)
    tokens = rng.integers(0, 30, 500)
    rows = rng.standard_normal((500, 6)) + rng.standard_normal((30, 6))[tokens] + 1
    t = merged(rows, tokens, 64).table
    p = t.n / t.n.sum()
    total = ((rows - rows.mean(axis=0)) ** 2).sum() / 500
    assert p @ t.v + p @ t.b == pytest.approx(total, rel=1e-12)
    assert p @ t.q == pytest.approx(t.mean_square + p @ t.v + p @ t.b, rel=1e-12)


def test_leaving_rows_out_is_building_without_them() -> None:
    rng = np.random.default_rng(3)
    tokens = np.where(np.arange(400) < 60, 90 + rng.integers(0, 4, 400), rng.integers(0, 25, 400))
    rows = rng.standard_normal((400, 7)) + 3 * rng.standard_normal((100, 7))[tokens] + 10
    out = rng.random(400) < 0.3
    out[:60] = True  # some types vanish
    whole, part = merged(rows, tokens, 50), merged(rows[out], tokens[out], 40)
    found = whole.table_without(part)
    assert_table(found, naive(rows[~out], tokens[~out]), 1e-9)
    seen = dict(zip(whole.table.types.tolist(), whole.table.n.tolist(), strict=True))
    assert found.seen.tolist() == [seen[t] for t in found.types.tolist()]
    assert_table(whole.table, naive(rows, tokens), 1e-9)  # and the whole is as it was


def test_the_table_of_some_types_is_that_of_their_rows_alone() -> None:
    rng = np.random.default_rng(4)
    tokens = rng.integers(0, 20, 300)
    rows = rng.standard_normal((300, 5)) + 2
    whole = merged(rows, tokens, 64)
    some = np.isin(tokens, whole.types[::2])
    assert_table(whole.table_of(np.isin(whole.types, whole.types[::2])), naive(rows[some], tokens[some]), 1e-9)


def test_types_come_in_order_whatever_came_first() -> None:
    tokens = np.array([9, 2, 9, -5, 700_000, 2])
    found = merged(np.random.default_rng(5).standard_normal((6, 3)), tokens, 1)
    assert found.types.tolist() == [-5, 2, 9, 700_000]
    assert found.n.tolist() == [1, 2, 2, 1]
    assert len(found) == 4


def test_one_occurrence_has_no_variance() -> None:
    table = merged(np.array([[1e3, 1.0], [2.0, 3.0]]), np.array([0, 1]), 2).table
    np.testing.assert_allclose(table.v, 0.0, atol=1e-9)


def test_rows_without_tokens_are_refused() -> None:
    with pytest.raises(InputError, match="no token types"):
        TokenStatistics.of(prepare_rows(np.ones((2, 2))))


def test_a_block_without_usable_rows_is_empty() -> None:
    assert len(TokenStatistics.of(prepare_rows(np.zeros((2, 3)), known(np.array([1, 2]))))) == 0


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_massive_activations_of_float32_cost_no_digits(kind: str) -> None:
    """A few rows thousands of times as long as the rest, as language models have: V against a loop in float64."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(0, 20, 4_000)
    rows = rng.standard_normal((4_000, 16)).astype(np.float32)
    rows[tokens == 3, 5] += 3_000 + 100 * rng.standard_normal((tokens == 3).sum()).astype(np.float32)
    expected, total = naive(rows, tokens), TokenStatistics.empty(16)
    for at in range(0, 4_000, 500):
        part = rows[at : at + 500]
        given = pytest.importorskip("torch").from_numpy(part) if kind == "torch" else part
        total += TokenStatistics.of(prepare_rows(given, known(tokens[at : at + 500])))
    table = total.table
    np.testing.assert_allclose(table.v, expected["v"], rtol=1e-11)
    share = table.n / table.n.sum()
    assert abs(share @ table.q - table.mean_square - share @ table.v - share @ table.b) < 1e-13 * (share @ table.q)
