"""What regressions on noisy models are worth on other models: better or worse than a plain guess."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import pandas as pd
from scipy import stats

from isotrope.compute.p_values import holm
from isotrope.errors import InputError
from isotrope.studies.latent_geometry.regression import PATCHINESS, fit, split_models
from isotrope.studies.result import Claim
from isotrope.studies.verdict import judge_test, seeds_interval


def predict_others(models: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The scores of the other models as the regression on a measure and the architecture expects them (Fig. 5).

    Args:
        models: see `isotrope.studies.latent_geometry.published.read_models`.
        measure: the measure of the regression.

    Returns:
        A row for each other model: its score, the expected one with the 95 % prediction interval, and the residual.
    """
    perturbed, others = split_models(models)
    usable = others.dropna(subset=["glue", measure])
    fitted = fit(perturbed, [measure, "architecture"])
    low, high = fitted.interval(usable)
    frame = usable[["model", "architecture", measure, "glue"]].reset_index(drop=True)
    frame = frame.assign(expected=fitted.predict(usable), low=low, high=high)
    outlier = (frame["glue"] < frame["low"]) | (frame["glue"] > frame["high"])
    found: pd.DataFrame = frame.assign(residual=frame["glue"] - frame["expected"], outlier=outlier)
    return found


def compare_with_guess(models: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Whether each regression with the architecture beats the mean of the noisy models on the other models.

    The squared errors of both are compared model by model, by Student's t; p-values are corrected by Holm's method for
    the number of measures. The rows are in the order of the error.
    """
    perturbed, others = split_models(models)
    guess, rows = float(perturbed["glue"].mean()), []
    for name in measures:
        usable = others.dropna(subset=["glue", name])
        try:
            expected = fit(perturbed, [name, "architecture"]).predict(usable)
        except InputError:
            continue
        if usable.empty:
            continue
        y = usable["glue"].to_numpy(float)
        ours, theirs = (y - expected) ** 2, (y - guess) ** 2
        low, high = seeds_interval(theirs - ours)
        p = float(stats.ttest_rel(theirs, ours).pvalue) if len(y) > 1 else math.nan
        row: dict[str, Any] = {"measure": name, "n": len(y), "mse": ours.mean(), "guess_mse": theirs.mean()}
        rows.append(row | {"gain": float((theirs - ours).mean()), "low": low, "high": high, "p": p})
    frame = pd.DataFrame(rows, columns=["measure", "n", "mse", "guess_mse", "gain", "low", "high", "p"])
    corrected: pd.DataFrame = frame.assign(p_corrected=holm(list(frame["p"]))).sort_values("mse", ignore_index=True)
    return corrected


def judge_skill(compared: pd.DataFrame, own_mean_mse: float) -> list[Claim]:
    """Whether the regression on point patchiness predicts the other models; compared: see `compare_with_guess`."""
    if PATCHINESS not in set(compared["measure"]):
        return []
    row, best = compared.set_index("measure").loc[PATCHINESS], compared.iloc[0]
    better, worse = (int(((compared["p_corrected"] < 0.05) & (side > 0)).sum()) for side in _sides(compared))
    text = (
        f"on the {row['n']:.0f} other models {PATCHINESS} + architecture has an MSE of {row['mse']:.3f}, the mean of "
        f"the noisy models {row['guess_mse']:.3f}; of {len(compared)} measures {better} are significantly better than "
        f"that guess and {worse} worse. The best, {best['measure']}, has {best['mse']:.3f}; the others' own mean "
        f"{own_mean_mse:.3f}. The paper: the measure predicts many of them."
    )
    evidence = (
        f"gain {row['gain']:.3f}, 95 % interval {row['low']:.3f} to {row['high']:.3f}, corrected p "
        f"{row['p_corrected']:.2g}"
    )
    outcome = judge_test(float(row["gain"]), float(row["p_corrected"]))
    return [Claim(outcome, text, "Fig. 5", float(row["mse"]), float(row["guess_mse"]), evidence=evidence)]


def _sides(compared: pd.DataFrame) -> tuple[pd.Series[float], pd.Series[float]]:
    return compared["gain"], -compared["gain"]


def judge_outliers(expected: pd.DataFrame) -> list[Claim]:
    """Whether more other models are outside the regression's 95 % interval than chance puts there (Fig. 5)."""
    count, n = int(expected["outlier"].sum()), len(expected)
    if not n:
        return []
    p = float(stats.binomtest(count, n, 0.05).pvalue)
    names = ", ".join(expected.loc[expected["outlier"], "model"]) or "none"
    text = (
        f"{count} of {n} other models are outside the 95 % prediction interval of the regression on {PATCHINESS} and "
        f"the architecture: {names}. The paper: a few are clear outliers."
    )
    evidence = f"binomial test against 5 %: p {p:.2g}"
    return [Claim(judge_test(count - 0.05 * n, p), text, "Fig. 5", float(count), evidence=evidence)]
