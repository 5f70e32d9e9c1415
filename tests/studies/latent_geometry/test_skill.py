"""What regressions are worth on other models: paired comparison with a guess, and outliers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LinearRegression

from isotrope.studies.latent_geometry.regression import PATCHINESS
from isotrope.studies.latent_geometry.skill import compare_with_guess, judge_outliers, judge_skill, predict_others


def make_models(others: int, slope: float, *, seed: int = 0) -> pd.DataFrame:
    """Twenty noisy models whose score rises with patchiness, and others whose score follows it with another slope."""
    rng = np.random.default_rng(seed)
    noisy = pd.DataFrame({PATCHINESS: rng.uniform(0, 1, 20), "other": False, "level": 0.1})
    noisy["glue"] = 0.3 + 0.5 * noisy[PATCHINESS] + 0.02 * rng.normal(size=20)
    new = pd.DataFrame({PATCHINESS: rng.uniform(0, 1, others), "other": True})
    new["glue"] = 0.55 + slope * (new[PATCHINESS] - 0.5) + 0.02 * rng.normal(size=others)
    both = pd.concat([noisy, new], ignore_index=True)
    return both.assign(model=[f"m{i}" for i in range(len(both))], architecture="one", eee=0.5)


def test_errors_and_p_by_scikit_learn_and_scipy() -> None:
    models = make_models(9, 0.2)
    row = compare_with_guess(models, [PATCHINESS]).iloc[0]
    noisy, others = models[~models["other"]], models[models["other"]]
    fitted = LinearRegression().fit(noisy[[PATCHINESS]].to_numpy(), noisy["glue"])
    ours = (others["glue"] - fitted.predict(others[[PATCHINESS]].to_numpy())) ** 2
    theirs = (others["glue"] - noisy["glue"].mean()) ** 2
    assert (row["mse"], row["guess_mse"]) == pytest.approx((ours.mean(), theirs.mean()))
    test = stats.ttest_1samp(theirs - ours, 0.0)
    ends = test.confidence_interval(0.95)
    assert (row["p"], row["low"], row["high"]) == pytest.approx((test.pvalue, ends.low, ends.high))
    expected = predict_others(models, PATCHINESS)
    np.testing.assert_allclose(expected["residual"] ** 2, ours)


@pytest.mark.parametrize(
    ("others", "slope", "outcome"),
    [(40, 0.5, "agrees"), (40, -0.5, "contradicts"), (40, 0.25, "undecided"), (2, 0.5, "undecided")],
    ids=["predicts", "misleads", "neither", "few"],
)
def test_a_regression_is_judged_against_the_guess(others: int, slope: float, outcome: str) -> None:
    (claim,) = judge_skill(compare_with_guess(make_models(others, slope), [PATCHINESS]), 0.01)
    assert claim.outcome == outcome


def test_p_values_are_corrected_for_the_number_of_measures() -> None:
    models = make_models(12, 0.4).assign(vrm=np.random.default_rng(1).normal(size=32))
    found = compare_with_guess(models, [PATCHINESS, "vrm"]).set_index("measure")
    least = found["p"].idxmin()
    assert found.loc[least, "p_corrected"] == pytest.approx(min(1.0, 2 * found.loc[least, "p"]))


def test_without_other_models_there_is_no_claim() -> None:
    compared = compare_with_guess(make_models(0, 0.5), [PATCHINESS])
    assert compared.empty
    assert judge_skill(compared, 0.01) == []


@pytest.mark.parametrize(
    ("count", "n", "outcome"), [(7, 13, "agrees"), (1, 13, "undecided"), (0, 200, "contradicts"), (0, 0, None)]
)
def test_outliers_are_more_than_chance_puts_there(count: int, n: int, outcome: str | None) -> None:
    expected = pd.DataFrame({"model": [f"m{i}" for i in range(n)], "outlier": [i < count for i in range(n)]})
    assert [claim.outcome for claim in judge_outliers(expected)] == ([] if outcome is None else [outcome])
