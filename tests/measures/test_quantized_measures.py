"""Measures of cells against hand-worked cases, the published formulas written out, scipy and `eee` itself."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.spatial.distance import cdist

import isotrope
from isotrope.errors import InputError, Undefined
from isotrope.measures import MEASURES, eee, get, point_patchiness, select
from isotrope.quantization import Quantized
from isotrope.quantization.cells import Cells
from isotrope.statistics import Points, prepare_rows

QUANTIZED = [m for m in MEASURES if m.needs == "cells"]


def cells(rows: Any, codes: Any, codebooks: Any) -> Cells:
    """Cells of rows by given codes and codebooks."""
    points = Points.of(prepare_rows(np.asarray(rows, dtype=np.float64)))
    q = Quantized(np.asarray(codes), np.asarray(codebooks, dtype=np.float64), np.zeros(points.d), "additive", "own", 0)
    trained = Cells.of(points, "product", codebooks=1, size=2)
    return replace(trained, quantized=q, lengths=q.errors(points.rows))


def counted(*counts: list[int]) -> Cells:
    """Cells of which only the counts matter, one list for each codebook."""
    codes = np.stack([np.repeat(np.arange(len(c)), c) for c in counts], axis=1)
    rows = np.random.default_rng(0).standard_normal((len(codes), 3))
    return cells(rows, codes, np.random.default_rng(1).standard_normal((len(counts), len(counts[0]), 3)))


def real(n: int = 900, d: int = 8, kind: str = "additive") -> Cells:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((12, d))[rng.integers(0, 12, n)] + 0.3 * rng.standard_t(4, (n, d))
    return Cells.of(Points.of(prepare_rows(rows)), kind, codebooks=4, size=16)  # type: ignore[arg-type]


def test_patchiness_of_points_by_hand() -> None:
    # m = 2 and V = (4 + 0 + 0 + 4)/4 = 2, so (2 + 2/2 − 1)/2 = 1; then V = 0, so (2 − 1)/2.
    assert point_patchiness(counted([4, 2, 2, 0])) == pytest.approx(1.0)
    assert point_patchiness(counted([4, 2, 2, 0], [2, 2, 2, 2])) == pytest.approx((1.0 + 0.5) / 2)
    low, high = get("point_patchiness_additive_2x4").bounds(8, 3)
    assert point_patchiness(counted([2, 2, 2, 2])) == pytest.approx(low)
    assert point_patchiness(counted([8, 0, 0, 0])) == pytest.approx(high)


def test_patchiness_is_one_for_points_strewn_at_random() -> None:
    # The expected number of others in a point's own cell, (n − 1)/k, over n/k.
    counts = np.random.default_rng(0).multinomial(2560, np.full(256, 1 / 256), size=400)
    values = [float(point_patchiness(counted(list(c)))) for c in counts[:40]]
    assert np.mean(values) == pytest.approx(1.0, abs=0.01)


def test_published_patchiness_takes_the_mean_count_too_large_and_is_affine_for_a_fixed_n() -> None:
    some = [counted(list(c), list(c)) for c in np.random.default_rng(0).multinomial(60, [0.4, 0.3, 0.2, 0.1], size=5)]
    plain = [point_patchiness(c) for c in some]
    published = [point_patchiness(c, variant="published") for c in some]
    m = 2 * 60 / 4
    by_hand = (m + np.var(some[0].quantized.counts[0]) / m - 1) / m
    assert published[0] == pytest.approx(by_hand)
    assert abs(np.corrcoef(plain, published)[0, 1]) == pytest.approx(1.0)


def test_variance_of_odds_by_hand() -> None:
    variance = get("point_count_variance")
    # Shares 1/2, 1/4, 1/4, 0 of four cells have the odds 3, 1, 1, 0.
    assert variance(counted([4, 2, 2, 0])) == pytest.approx(np.var([3, 1, 1, 0], ddof=1))
    assert variance(counted([4, 2, 2, 0]), variant="published") == pytest.approx(np.var([3, 1, 1, 0]))
    assert variance(counted([2, 2, 2, 2])) == 0.0
    assert variance(counted([8, 0, 0, 0])) == math.inf


def test_divergence_is_that_of_scipy() -> None:
    divergence = get("point_count_kl")
    assert divergence(counted([4, 2, 2, 0])) == pytest.approx(math.log(4) - stats.entropy([0.5, 0.25, 0.25]))
    assert divergence(counted([8, 0, 0, 0])) == pytest.approx(math.log(4))
    c = real()
    uniform = np.full(16, 1 / 16)
    assert divergence(c) == pytest.approx(np.mean([stats.entropy(share, uniform) for share in c.shares]))
    drawn = np.random.default_rng(c.quantized.seed).multinomial(c.n, uniform, size=4)
    by_hand = np.mean([stats.entropy(share, other) for share, other in zip(c.shares, drawn, strict=True)])
    assert divergence(c, variant="published") == pytest.approx(by_hand)
    sparse = counted([2] + [1] * 4 + [0] * 59)
    with pytest.raises(Undefined, match="random histogram is empty"):
        divergence.value(sparse, variant="published")


def test_divergence_of_the_odds_is_that_of_scipy() -> None:
    """The other reading of p(O) in Eq. 14: the odds of Eq. 12 over their sum."""
    divergence, c = get("point_count_kl"), real()
    odds = 15 * c.shares / (1 - c.shares)
    by_hand = np.mean([stats.entropy(of_book, np.ones(16)) for of_book in odds])  # scipy divides by the sums
    assert divergence(c, variant="odds") == pytest.approx(by_hand)
    assert divergence(c, variant="odds") > divergence(c)
    assert divergence(counted([2, 2, 2, 2]), variant="odds") == pytest.approx(0.0)
    assert divergence(counted([8, 0, 0, 0]), variant="odds") == pytest.approx(math.log(4))


@pytest.mark.parametrize("kind", ["additive", "product"])
def test_reconstruction_by_the_codewords(kind: str) -> None:
    c = real(kind=kind)
    q, x = c.quantized, c.points.rows
    back = q.mean + sum(q.codebooks[m, q.codes[:, m]] for m in range(4))
    lengths = np.linalg.norm(x - back, axis=1)
    assert get("reconstruction_error")(c) == pytest.approx((lengths**2).sum() / (x**2).sum())
    assert get("reconstruction_skew")(c) == pytest.approx(stats.skew(lengths, bias=False))
    assert get("reconstruction_skew")(c, variant="published") == pytest.approx(stats.skew(lengths))
    assert get("reconstruction_iqr")(c) == pytest.approx(stats.iqr(lengths / lengths.max()))


def test_what_is_given_back_exactly_has_no_skewness_and_no_quartiles() -> None:
    words = np.array([[[1.0, 0.0], [0.0, 1.0]]])
    exact = cells([[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]], [[0], [1], [0]], words)
    assert get("reconstruction_error")(exact) == 0.0
    for name in ("reconstruction_skew", "reconstruction_iqr"):
        with pytest.raises(Undefined, match="given back"):
            get(name).value(exact)


def test_spacing_of_centres_by_hand() -> None:
    spacing = get("centroid_variance")
    # On a line at 0, 1, 3: nearest at 1, 1, 2. In the second codebook all are 2 apart.
    words = [[[0.0], [1.0], [3.0]], [[0.0], [2.0], [4.0]]]
    c = cells([[1.0], [2.0], [3.0]], np.zeros((3, 2), int), words)
    distances = np.array([1, 1, 2, 2, 2, 2]) / 2
    assert spacing(c) == pytest.approx(np.var(distances, ddof=1))
    assert spacing(c, variant="published") == pytest.approx(np.var(distances**2))
    c = real()
    nearest = [np.sort(cdist(book, book), axis=1)[:, 1] for book in c.quantized.codebooks]
    ratio = np.concatenate(nearest) / np.max(nearest)
    assert spacing(c) == pytest.approx(np.var(ratio, ddof=1))


@pytest.mark.parametrize("n", [900, 200])
def test_within_cells_is_eee_of_the_distinct_rows_of_each(n: int) -> None:
    c = real(n)
    # Some rows twice, which count once.
    c = c.only(np.append(np.arange(n), np.arange(0, n, 7)))
    values, kept = [], 0
    for m in range(4):
        for j in range(16):
            rows = np.unique(c.points.rows[c.quantized.codes[:, m] == j], axis=0)
            if len(rows) > 1:
                values.append(eee(rows))
                kept += 1
    within = get("cluster_eee")
    assert within(c) == pytest.approx(np.mean(values), rel=1e-9)
    assert within.note is not None
    assert f"{64 - kept} cells with fewer than two different rows left out" in str(within.note(c))


def test_leaving_a_group_out_keeps_the_cells_of_the_others() -> None:
    c = real()
    c.points.group[:] = np.arange(c.n) % 20
    left = c.leave_out(3)
    keep = c.points.group != 3
    assert left.n == keep.sum()
    np.testing.assert_array_equal(left.quantized.codes, c.quantized.codes[keep])
    np.testing.assert_array_equal(left.lengths, c.lengths[keep])
    assert left.quantized.codebooks is c.quantized.codebooks


def test_rows_give_what_cells_of_the_same_settings_give() -> None:
    rows = np.random.default_rng(0).standard_normal((300, 8))
    made = Cells.of(Points.of(prepare_rows(rows)), "product", codebooks=2, size=32)
    assert get("point_patchiness_product_2x32")(rows) == point_patchiness(made)
    assert get("point_patchiness_product")(rows, codebooks=2, size=32) == point_patchiness(made)
    found = isotrope.measure(rows, "quantized_2x32")
    assert found["point_patchiness_product_2x32"] == point_patchiness(made)
    assert len(found) == 16


def test_names_carry_the_settings() -> None:
    assert get("cluster_eee_8x64").name == "cluster_eee_8x64"
    assert get("cluster_eee_8x64").parameters == get("cluster_eee_additive_8x64").parameters
    assert isotrope.measures.cluster_eee is get("cluster_eee_additive")
    with pytest.raises(InputError, match="expected at least 1 codebook"):
        get("cluster_eee_0x64")
    with pytest.raises(InputError, match="16,384 cells in all"):
        select("quantized_256x256")
    with pytest.raises(InputError, match="no measure"):
        get("isoscore_4x16")


CASES = {
    "more cells than rows": (np.random.default_rng(0).standard_normal((200, 8)), "200 rows are fewer than the 256"),
    "identical rows": (np.ones((600, 8)), "1 different rows among 600"),
    "two different rows": (np.tile(np.eye(8)[:2], (300, 1)), "2 different rows among 600"),
}


@pytest.mark.parametrize("case", CASES)
def test_where_there_is_no_quantizer_there_is_a_reason(case: str) -> None:
    rows, reason = CASES[case]
    found = isotrope.scan(vectors=rows, measures="quantized")
    for m in QUANTIZED:
        r = found.get(m.name)
        assert math.isnan(r.value)
        assert reason in str(r.reason)


def test_a_width_that_cannot_be_divided_has_no_product_quantizer() -> None:
    rows = np.random.default_rng(0).standard_normal((400, 6))
    found = isotrope.scan(vectors=rows, measures="quantized_4x16")
    assert "the width 6 cannot be divided among 4 codebooks" in str(found.get("point_count_kl_product_4x16").reason)
    assert found.get("point_count_kl_additive_4x16").reason is None


def test_constant_columns_are_no_harm() -> None:
    rows = np.random.default_rng(0).standard_normal((500, 8))
    rows[:, [1, 5]] = 3.0
    found = isotrope.scan(vectors=rows, measures="quantized_2x16")
    assert all(math.isfinite(r.value) for r in found.readings)


def test_a_scan_says_which_quantizer_and_at_which_n() -> None:
    rows = np.random.default_rng(0).standard_normal((1200, 8)) + 1.0
    found = isotrope.scan(vectors=rows, measures="quantized_4x16", sample=1000, seed=5)
    r = found.get("point_patchiness_additive_4x16")
    note = str(r.note)
    assert "additive quantizer, 4 codebooks of 16 cells, " in note
    assert "seed 5, trained on 1,000 rows: compare at equal n" in note
    assert "only 1,000 rows" in note
    assert "on 1,000 sampled rows of 1,200" in note
    assert r.n == 1000
    assert r.low <= r.value <= r.high
    assert math.isfinite(r.null)
    assert found.get("cluster_eee_product_4x16").low < found.get("cluster_eee_product_4x16").high
    assert math.isnan(found.get("centroid_variance_additive_4x16").low)
