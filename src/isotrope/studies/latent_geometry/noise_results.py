"""What changed models say about geometry and GLUE: correlations, regressions, and what contradicts the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from isotrope.studies.claims import rank_correlation
from isotrope.studies.latent_geometry.changed_models import OTHERS, ROWS, SMALL, WEIGHTS
from isotrope.studies.latent_geometry.claims import FEWEST, judge_correlations, judge_noise, judge_skill
from isotrope.studies.latent_geometry.figures import (
    make_matrix_figure,
    make_measures_figure,
    make_noise_figure,
    make_residuals_figure,
)
from isotrope.studies.latent_geometry.published import MISPRINTS, TABLE_2
from isotrope.studies.latent_geometry.regression import compute_residuals, correlate, fit_all, score_guesses
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results

if TYPE_CHECKING:
    import pandas as pd


def compare_levels(model: str, every: pd.DataFrame) -> Results:
    """Medians over seeds by level (Fig. 1), and how measures go with noise on weights and on rows (Appendix B).

    Args:
        model: the name of the model.
        every: a row for each changed model, with its measures and scores.
    """
    weights = every[every["kind"] == WEIGHTS]
    numbers = [name for name in (*TABLE_2, "glue") if name in every]
    median = weights.groupby("level")[numbers].median().reset_index()
    tables = [
        Table("models", f"Changed models of {model}: every measure and score", every),
        Table("medians", f"Medians over seeds by share of noise on the weights, {model}", median),
        Table(
            "with_level",
            f"Rank correlation of each measure with the share of noise, {model}",
            _correlate_with_level(every),
        ),
    ]
    if "glue" not in every:
        return Results(tables)
    return Results(tables, [judge_noise(model, weights)], [make_noise_figure(every)])


def _correlate_with_level(every: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for name in TABLE_2:
        row: dict[str, Any] = {"measure": name}
        for kind in (WEIGHTS, SMALL, ROWS):
            changed = every[every["kind"] == kind]
            row[kind] = rank_correlation(changed["level"], changed[name])
        rows.append(row)
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def compare_models(every: pd.DataFrame) -> Results:
    """Tables 1 and 2, Figs. 3 to 8 from our own runs; the architecture is the model that was changed, or is like it."""
    scored = every.dropna(subset=["glue"])
    models = scored[scored["kind"].isin((WEIGHTS, *OTHERS))].copy()
    models["other"] = models["kind"] != WEIGHTS
    noisy = models[~models["other"]]
    if len(noisy) < FEWEST:
        text = f"{len(noisy)} noisy models were scored; correlations need {FEWEST}, so that there are none."
        return Results((), [Claim("note", text, "Table 2")])
    correlated, guesses = _correlate_measures(noisy), score_guesses(models)
    fitted = fit_all(models, list(TABLE_2)).assign(
        training_mean_mse=guesses["training mean"], own_mean_mse=guesses["their own mean"]
    )
    tables = [
        Table(
            "correlations", "Pearson's r of each measure with the mean score over noisy models (Table 2)", correlated
        ),
        Table("regressions", "R² on the noisy models and MSE on the non-standard ones, with plain guesses", fitted),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", compute_residuals(models)),
        Table("matrix", "Pearson's r between the measures over noisy models (Fig. 8)", _correlate_pairwise(noisy)),
    ]
    figures = [
        make_measures_figure(models, list(TABLE_2)),
        make_residuals_figure(tables[2].frame),
        make_matrix_figure(tables[3].frame),
    ]
    return Results(tables, [*judge_correlations(correlated), *judge_skill(fitted, guesses, models)], figures)


def _correlate_measures(noisy: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for model in dict.fromkeys(noisy["model"]):
        for name, (_, printed) in TABLE_2.items():
            found = correlate(noisy[noisy["model"] == model], name)
            row = {"model": model, "measure": name} | found
            rows.append(
                row
                | {"bert_small_printed": printed.bert_small, "roberta_printed": _correct_sign(name, printed.roberta)}
            )
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def _correct_sign(name: str, printed: float) -> float:
    """RoBERTa's r; where its sign is misprinted, as the authors' files have it."""
    return -printed if (name, "roberta") in MISPRINTS else printed


def _correlate_pairwise(noisy: pd.DataFrame) -> pd.DataFrame:
    matrix: pd.DataFrame = noisy[list(TABLE_2)].corr().reset_index(names="measure")
    return matrix
