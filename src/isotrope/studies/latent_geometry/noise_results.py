"""What changed models say about geometry and GLUE: correlations, regressions, and what contradicts the paper."""

from __future__ import annotations

from functools import partial
from typing import Any

import pandas as pd

from isotrope.studies.figures import make_figure
from isotrope.studies.latent_geometry.changed_models import OTHERS, ROWS, SMALL, WEIGHTS
from isotrope.studies.latent_geometry.figures import (
    draw_noise,
    make_matrix_figure,
    make_measures_figure,
    make_residuals_figure,
)
from isotrope.studies.latent_geometry.published import MISPRINTS, TABLE_2
from isotrope.studies.latent_geometry.regression import (
    PATCHINESS,
    compute_residuals,
    correlate,
    fit_all,
    score_guesses,
    select_single,
)
from isotrope.studies.result import Claim, Outcome, Table, rank_correlation
from isotrope.studies.runner import Results

#: Scored noisy models below which a correlation says nothing.
_FEWEST = 6


def compare_levels(model: str, changed: pd.DataFrame) -> Results:
    """Medians over seeds by level (Fig. 1), and how measures go with noise on weights and on rows (Appendix B).

    Args:
        model: the name of the model.
        changed: a row for each changed model, with its measures and scores.
    """
    weights = changed[changed["kind"] == WEIGHTS]
    numbers = [name for name in (*TABLE_2, "glue") if name in changed]
    median = weights.groupby("level")[numbers].median().reset_index()
    with_level = pd.DataFrame([_correlate_with_level(changed, name) for name in TABLE_2])
    tables = [
        Table("models", f"Changed models of {model}: every measure and score", changed),
        Table("medians", f"Medians over seeds by share of noise on the weights, {model}", median),
        Table("with_level", f"Rank correlation of each measure with the share of noise, {model}", with_level),
    ]
    if "glue" not in changed:
        return Results(tables)
    figure = make_figure("noise", "Mean score by share of noise on the weights (Fig. 1).", partial(draw_noise, changed))
    return Results(tables, [_judge_noise(model, weights)], [figure])


def _judge_noise(model: str, weights: pd.DataFrame) -> Claim:
    """Whether the mean score falls with the share of noise on the weights (Fig. 1)."""
    rho = rank_correlation(weights["level"], weights["glue"])
    scored = int(weights["glue"].count())
    text = (
        f"the mean score of {model} and the share of noise have a rank correlation of {rho:.2f} over {scored} models; "
        "the paper: it falls."
    )
    if scored < _FEWEST:
        return Claim("note", f"{text} So few decide nothing.", "Fig. 1", rho, -1.0)
    return Claim.judge(rho < -0.5, text, "Fig. 1", rho, -1.0)


def _correlate_with_level(changed: pd.DataFrame, measure: str) -> dict[str, Any]:
    row: dict[str, Any] = {"measure": measure}
    for kind in (WEIGHTS, SMALL, ROWS):
        of_kind = changed[changed["kind"] == kind]
        row[kind] = rank_correlation(of_kind["level"], of_kind[measure])
    return row


def compare_models(changed: pd.DataFrame) -> Results:
    """Tables 1 and 2, Figs. 3 to 8 from our own runs; the architecture is the model that was changed, or is like it."""
    scored = changed.dropna(subset=["glue"])
    models = scored[scored["kind"].isin((WEIGHTS, *OTHERS))].copy()
    models["other"] = models["kind"] != WEIGHTS
    noisy = models[~models["other"]]
    if len(noisy) < _FEWEST:
        text = f"{len(noisy)} noisy models were scored; correlations need {_FEWEST}, so that there are none."
        return Results.note(text, "Table 2")
    correlated, guesses = pd.DataFrame(_correlate_measures(noisy)), score_guesses(models)
    fitted = fit_all(models, list(TABLE_2)).assign(
        training_mean_mse=guesses["training mean"], own_mean_mse=guesses["their own mean"]
    )
    matrix = noisy[list(TABLE_2)].corr().reset_index(names="measure")
    title = "Pearson's r of each measure with the mean score over noisy models (Table 2)"
    tables = [
        Table("correlations", title, correlated),
        Table("regressions", "R² on the noisy models and MSE on the non-standard ones, with plain guesses", fitted),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", compute_residuals(models)),
        Table("matrix", "Pearson's r between the measures over noisy models (Fig. 8)", matrix),
    ]
    figures = [
        make_measures_figure(models, list(TABLE_2)),
        make_residuals_figure(tables[2].frame),
        make_matrix_figure(matrix),
    ]
    return Results(tables, [*_judge_correlations(correlated), *_judge_skill(fitted, guesses, models)], figures)


def _correlate_measures(noisy: pd.DataFrame) -> list[dict[str, Any]]:
    rows = []
    for model in dict.fromkeys(noisy["model"]):
        for name, (_, printed) in TABLE_2.items():
            found = correlate(noisy[noisy["model"] == model], name)
            # Where the sign of RoBERTa's r is misprinted, as the authors' files have it.
            roberta = -printed.roberta if (name, "roberta") in MISPRINTS else printed.roberta
            row = {"model": model, "measure": name, **found}
            rows.append(row | {"bert_small_printed": printed.bert_small, "roberta_printed": roberta})
    return rows


def _judge_correlations(correlated: pd.DataFrame) -> list[Claim]:
    """Whether measures of our noisy models correlate with the mean score as in the paper (Table 2)."""
    claims = []
    for model, of_model in correlated.groupby("model", sort=False):
        by = of_model.set_index("measure")
        row = by.loc[PATCHINESS]
        text = (
            f"r of {PATCHINESS} with the mean score is {row['r']:.3f} ({row['low']:.3f} to {row['high']:.3f}) over "
            f"{row['n']:.0f} noisy models of {model}; the paper: 0.902 for BERT-small, 0.640 for RoBERTa. Levels of "
            "one seed share their noise, so that the interval is too narrow."
        )
        ours, printed = float(row["r"]), float(row["bert_small_printed"])
        outside = row["high"] < min(printed, row["roberta_printed"])  # an interval that holds both decides nothing
        outcome: Outcome = "agrees" if row["low"] > 0 else "contradicts" if outside else "note"
        claims.append(Claim(outcome, text, "Fig. 3", ours, printed))
        known = by.dropna(subset=["r"])
        same = int((known["r"] * known["bert_small_printed"] > 0).sum())
        best = known["r"].abs().idxmax() if len(known) else None
        strongest = f"; strongest is {best} with {known.loc[best, 'r']:.3f}" if best else ""
        text = f"{same} of {len(known)} measures of {model} have the sign of r that BERT-small has{strongest}."
        claims.append(Claim("note", text, "Table 2", float(same), float(len(known))))
    return claims


def _judge_skill(fitted: pd.DataFrame, guesses: dict[str, float], models: pd.DataFrame) -> list[Claim]:
    """Whether regressions on noisy models predict those that are changed otherwise."""
    single = select_single(fitted, TABLE_2).dropna(subset=["mse"])
    count = int(models["other"].sum())
    if not len(single) or not count:
        return []
    best = single.iloc[int(single["mse"].to_numpy().argmin())]
    better = int((single["mse"] < guesses["training mean"]).sum())
    text = (
        f"on the {count} non-standard models {better} of {len(single)} regressions beat the mean of the noisy ones as "
        f"a guess (MSE {guesses['training mean']:.4f}); the best, {best['regression']}, has {best['mse']:.4f}, "
        f"their own mean {guesses['their own mean']:.4f}."
    )
    return [Claim("note", text, "Fig. 5", float(best["mse"]), guesses["training mean"])]
