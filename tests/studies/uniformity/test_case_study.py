"""The case study of Appendix A: the printed bound as printed, the probability by integration and by simulation."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from scipy import integrate, stats

from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.case_study import (
    compute_printed_bound,
    compute_probability,
    judge_case_study,
    simulate_lengths,
    study_bound,
)

CASES = [(10, 3, 0.5), (10, 9, 0.9), (7, 1, 0.3), (64, 32, 0.7)]


@pytest.mark.parametrize(("n", "k", "d"), CASES)
def test_the_bound_is_as_printed(n: int, k: int, d: float) -> None:
    """2 / (k (n − k)) · Γ(n/2) / (Γ((n − k)/2) Γ(k/2)) · d^(2k) (1 − d^(n − k)), the line before the beta function."""
    gammas = math.gamma(n / 2) / math.gamma((n - k) / 2) / math.gamma(k / 2)
    expected = 2 / (k * (n - k)) * gammas * d ** (2 * k) * (1 - d ** (n - k))
    assert compute_printed_bound(n, k, d) == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(("n", "k", "d"), CASES)
def test_the_probability_is_the_integral_over_the_sphere(n: int, k: int, d: float) -> None:
    """The part on k coordinates has length sin θ with density ∝ sin^(k − 1) θ cos^(n − k − 1) θ."""

    def density(angle: float) -> float:
        return math.sin(angle) ** (k - 1) * math.cos(angle) ** (n - k - 1)

    inside, whole = (integrate.quad(density, 0, end)[0] for end in (math.asin(d), math.pi / 2))
    assert compute_probability(n, k, d) == pytest.approx(inside / whole, rel=1e-6)


@pytest.mark.parametrize(("n", "k", "d"), CASES)
def test_random_directions_have_the_probability(n: int, k: int, d: float) -> None:
    lengths = simulate_lengths(n, k, seed=1, draws=20_000)
    hits = int((lengths["euclidean"] <= d).sum())
    assert stats.binomtest(hits, 20_000, compute_probability(n, k, d)).pvalue > 1e-4
    assert (lengths["sum"] >= lengths["euclidean"] - 1e-12).all()


def test_the_example_of_the_documentation() -> None:
    assert compute_printed_bound(10, 3, 0.5) == pytest.approx(0.0120, abs=5e-5)
    assert compute_probability(10, 3, 0.5) == pytest.approx(0.4574, abs=5e-5)
    assert compute_printed_bound(10, 3, 1.0) == 0.0  # where the probability is 1
    assert compute_probability(10, 3, 1.0) == 1.0


def test_the_study_contradicts_the_bound_and_confirms_that_it_falls(tmp_path: object) -> None:
    found = study_bound(StudyOptions(output=str(tmp_path)))
    assert [claim.outcome for claim in found.claims] == ["contradicts", "agrees"]
    frame = found.tables[0].frame
    assert (frame["simulated, euclidean"] - frame["exact"]).abs().max() < 0.02


def test_a_bound_that_holds_would_agree() -> None:
    row = {"n": [10, 10], "k": [3, 5], "d": 0.5, "exact": [0.4, 0.1], "printed bound": 0.5, "simulated, sum": 0.1}
    assert [claim.outcome for claim in judge_case_study(pd.DataFrame(row))] == ["agrees", "agrees"]
    rising = pd.DataFrame(row).assign(exact=[0.1, 0.4])
    assert judge_case_study(rising)[1].outcome == "contradicts"
