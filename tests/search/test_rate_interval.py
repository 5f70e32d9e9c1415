"""Intervals of a share against scipy's exact test."""

from __future__ import annotations

import pytest
from scipy import stats

from isotrope.search.rate_interval import compute_lower_bound, compute_rate_interval, widen_to_new_sample


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (3, 50), (20, 20), (117, 1200)])
def test_the_interval_is_that_of_clopper_and_pearson(hits: int, n: int) -> None:
    known = stats.binomtest(hits, n).proportion_ci(0.95, method="exact")
    assert compute_rate_interval(hits / n, n) == pytest.approx((known.low, known.high))
    one_sided = stats.binomtest(hits, n, alternative="greater").proportion_ci(0.95, method="exact")
    assert compute_lower_bound(hits / n, n) == pytest.approx(one_sided.low)


@pytest.mark.parametrize(("share", "n"), [(0.02, 500), (0.9, 300), (0.5, 40)])
def test_another_sample_lies_in_the_wider_interval(share: float, n: int) -> None:
    """By the exact chances of both samples, 95 of 100."""
    first = stats.binom(n, share)
    chance = 0.0
    for hits in range(n + 1):
        low, high = widen_to_new_sample(hits / n, n)
        inside = first.cdf(int(high * n + 1e-9)) - first.cdf(-(-low * n // 1) - 1 if low * n % 1 else low * n - 1)
        chance += first.pmf(hits) * inside
    assert chance >= 0.95
