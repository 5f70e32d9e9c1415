"""What changed models say about geometry and GLUE: correlations, regressions, and what contradicts the paper."""

from __future__ import annotations

from typing import Any

import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.studies.latent_geometry.changed_models import OTHERS, ROWS, SMALL, WEIGHTS
from isotrope.studies.latent_geometry.decay import compare_curves, judge_curves
from isotrope.studies.latent_geometry.figures import list_measure_figures, make_matrix_figure, make_noise_figure
from isotrope.studies.latent_geometry.model_selection import fit_all
from isotrope.studies.latent_geometry.published import MISPRINTS, TABLE_2
from isotrope.studies.latent_geometry.regression import PATCHINESS, compute_residuals, correlate, score_guesses
from isotrope.studies.latent_geometry.regression_figures import (
    make_lines_figure,
    make_named_figure,
    make_residuals_figure,
)
from isotrope.studies.latent_geometry.shapes import judge_shapes, list_shapes
from isotrope.studies.latent_geometry.skill import compare_with_guess, judge_outliers, judge_skill, predict_others
from isotrope.studies.result import Claim, Table, rank_correlation
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_interval, seeds_interval

#: Scored noisy models below which a correlation says nothing.
_FEWEST = 6

_CLUSTER_EEE = "cluster_eee_additive"


def compare_levels(model: str, changed: pd.DataFrame) -> Results:
    """Medians over seeds by level (Fig. 1), shapes, and how measures go with noise on weights and on rows (Appendix B).

    Args:
        model: the name of the model.
        changed: a row for each changed model, with its measures and scores.
    """
    weights = changed[changed["kind"] == WEIGHTS]
    numbers = [name for name in (*TABLE_2, "glue") if name in changed]
    median = weights.groupby("level")[numbers].median().reset_index()
    with_level = pd.DataFrame([_correlate_with_level(changed, name) for name in TABLE_2])
    shapes = list_shapes(weights, list(TABLE_2))
    tables = [
        Table("models", f"Changed models of {model}: every measure and score", changed),
        Table("medians", f"Medians over seeds by share of noise on the weights, {model}", median),
        Table("with_level", f"Rank correlation of each measure with the share of noise, {model}", with_level),
        Table("shapes", f"The shape of each measure as noise grows, {model} (Section 4.2)", shapes),
    ]
    claims = judge_shapes(model, shapes)
    if "glue" not in changed:
        return Results(tables, claims)
    curves = compare_curves(weights)
    tables.append(Table("curves", f"An exponential and a line of the score over the share of noise, {model}", curves))
    claims = [_judge_noise(model, weights), *judge_curves(model, curves), *claims]
    return Results(tables, claims, [make_noise_figure(changed, "kind")])


def _judge_noise(model: str, weights: pd.DataFrame) -> Claim:
    """Whether the mean score falls with the share of noise on the weights, over seeds (Fig. 1)."""
    found = [rank_correlation(group["level"], group["glue"]) for _, group in weights.groupby("seed")]
    by_seed = pd.Series(found, dtype=float).dropna()
    low, high = seeds_interval(by_seed)
    text = (
        f"the mean score of {model} and the share of noise have a rank correlation of {by_seed.mean():.2f} "
        f"(mean over seeds, of which there are {len(by_seed)}); the paper: it falls."
    )
    evidence = f"95 % interval {low:.2f} to {high:.2f}" if len(by_seed) > 1 else "one seed"
    return Claim(judge_interval(-high, -low), text, "Fig. 1", float(by_seed.mean()), evidence=evidence, model=model)


def _correlate_with_level(changed: pd.DataFrame, measure: str) -> dict[str, Any]:
    row: dict[str, Any] = {"measure": measure}
    for kind in (WEIGHTS, SMALL, ROWS):
        of_kind = changed[changed["kind"] == kind]
        row[kind] = rank_correlation(of_kind["level"], of_kind[measure])
    return row


def compare_models(changed: pd.DataFrame) -> Results:
    """Tables 1 and 2, Figs. 3 to 11 from our own runs; the architecture is the model that was changed or is like it."""
    scored = changed.dropna(subset=["glue"])
    models = scored[scored["kind"].isin((WEIGHTS, *OTHERS))].copy()
    models["other"] = models["kind"] != WEIGHTS
    models.loc[models["other"], "model"] += " " + models["kind"]
    noisy = models[~models["other"]]
    usable = len(noisy.dropna(subset=[PATCHINESS, _CLUSTER_EEE]))
    if usable < _FEWEST:
        text = f"{usable} noisy models were scored and quantized; correlations need {_FEWEST}, so that there are none."
        return Results.note(text, "Table 2")
    correlated, guesses = _correlate_measures(noisy), score_guesses(models)
    fitted = fit_all(models, list(TABLE_2)).assign(
        training_mean_mse=guesses["training mean"], own_mean_mse=guesses["their own mean"]
    )
    matrix = noisy[list(TABLE_2)].corr().reset_index(names="measure")
    compared, expected = compare_with_guess(models, list(TABLE_2)), predict_others(models, PATCHINESS)
    residuals, curved = compute_residuals(models), compute_residuals(models, _CLUSTER_EEE)
    title = "R² on the noisy models and MSE on the non-standard ones, with plain guesses, the least MSE first"
    tables = [
        Table("correlations", "r of each measure with the mean score over noisy models (Table 2)", correlated),
        Table("regressions", title, fitted),
        Table("skill", "Each measure with the architecture against the mean of the noisy models", compared),
        Table("others", "Non-standard models as the regression on point patchiness expects them (Fig. 5)", expected),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", residuals),
        Table("residuals_cluster_eee", "Residuals of the regressions on PD_EEE (Fig. 7)", curved),
        Table("matrix", "Pearson's r between the measures over noisy models (Fig. 8)", matrix),
    ]
    figures = [
        make_lines_figure(models),
        make_residuals_figure(residuals, "residuals", "Residuals of the regressions on point patchiness (Fig. 4)."),
        make_named_figure(models),
        make_residuals_figure(curved, "residuals_cluster_eee", "Residuals of the regressions on PD_EEE (Fig. 7)."),
        *list_measure_figures(models, list(TABLE_2)),
        make_matrix_figure(matrix),
    ]
    claims = [*_judge_correlations(noisy, correlated), *judge_skill(compared, guesses["their own mean"])]
    return Results(tables, [*claims, *judge_outliers(expected)], figures)


def _correlate_measures(noisy: pd.DataFrame) -> pd.DataFrame:
    """r of each measure over all noisy models of each model, its p corrected for all, and the printed ones."""
    rows = []
    for model in dict.fromkeys(noisy["model"]):
        for name, (_, printed) in TABLE_2.items():
            found = correlate(noisy[noisy["model"] == model], name)
            # Where the sign of RoBERTa's r is misprinted, as the authors' files have it.
            roberta = -printed.roberta if (name, "roberta") in MISPRINTS else printed.roberta
            row = {"model": model, "measure": name, **found}
            rows.append(row | {"bert_small_printed": printed.bert_small, "roberta_printed": roberta})
    frame = pd.DataFrame(rows)
    frame["p_corrected"] = holm(list(frame["p"]))
    ordered: pd.DataFrame = frame.sort_values("r", key=abs, ascending=False, ignore_index=True, kind="stable")
    return ordered


def _judge_correlations(noisy: pd.DataFrame, correlated: pd.DataFrame) -> list[Claim]:
    """Whether measures of our noisy models correlate with the mean score as in the paper (Table 2).

    Levels of one seed share their noise, so that r is computed for each seed, and the interval is over seeds.
    """
    claims = []
    for model, of_model in noisy.groupby("model", sort=False):
        by_seed = pd.Series([correlate(group, PATCHINESS)["r"] for _, group in of_model.groupby("seed")]).dropna()
        low, high = seeds_interval(by_seed)
        by = correlated[correlated["model"] == model].set_index("measure")
        text = (
            f"r of {PATCHINESS} with the mean score is {by.loc[PATCHINESS, 'r']:.3f} over {len(of_model)} noisy models "
            f"of {model}; the paper: 0.902 for BERT-small, 0.640 for RoBERTa."
        )
        many = f"mean over {len(by_seed)} seeds: 95 % interval {low:.3f} to {high:.3f}"
        evidence = many if len(by_seed) > 1 else "fewer than two seeds with four levels"
        ours, printed = float(by.loc[PATCHINESS, "r"]), float(by.loc[PATCHINESS, "bert_small_printed"])
        outcome = judge_interval(low, high)
        claims.append(Claim(outcome, text, "Fig. 3", ours, printed, evidence=evidence, model=str(model)))
        known = by[by["p_corrected"] < 0.05]
        same = int((known["r"] * known["bert_small_printed"] > 0).sum())
        strongest = f"; the strongest is {by['r'].abs().idxmax()}" if by["r"].notna().any() else ""
        text = (
            f"{len(known)} of {len(by)} measures of {model} have a significant r with the mean score, {same} of them "
            f"with the sign that BERT-small has{strongest}."
        )
        claims.append(Claim("note", text, "Table 2", float(same), float(len(known)), model=str(model)))
    return claims
