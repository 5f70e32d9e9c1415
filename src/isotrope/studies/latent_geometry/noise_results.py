"""What changed models say about geometry and GLUE: correlations, regressions, and what contradicts the paper."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from scipy import stats

from isotrope.studies.latent_geometry.changed_models import OTHERS, ROWS, SMALL, WEIGHTS
from isotrope.studies.latent_geometry.figures import (
    matrix_picture,
    measures_picture,
    noise_picture,
    residuals_picture,
)
from isotrope.studies.latent_geometry.published import MISPRINTS, TABLE_2
from isotrope.studies.latent_geometry.regression import PATCHINESS, guesses, pearson, regressions, residuals
from isotrope.studies.result import Claim, Outcome, Table
from isotrope.studies.runner import Made

if TYPE_CHECKING:
    import pandas as pd

#: Scored noisy models below which a correlation says nothing.
_FEWEST = 6


def of_one_model(model: str, every: pd.DataFrame) -> Made:
    """Medians over seeds by level (Fig. 1), and how measures go with noise on weights and on rows (Appendix B).

    every: a row for each changed model, see `latent_geometry`.
    """
    weights = every[every["kind"] == WEIGHTS]
    numbers = [name for name in (*TABLE_2, "glue") if name in every]
    median = weights.groupby("level")[numbers].median().reset_index()
    tables = [
        Table("models", f"Changed models of {model}: every measure and score", every),
        Table("medians", f"Medians over seeds by share of noise on the weights, {model}", median),
        Table("with_level", f"Rank correlation of each measure with the share of noise, {model}", _with_level(every)),
    ]
    if "glue" not in every:
        return Made(tables)
    rho = _rank(weights, "level", "glue")
    scored = int(weights["glue"].count())
    text = (
        f"the mean score of {model} and the share of noise have a rank correlation of {rho:.2f} over {scored} models; "
        "the paper: it falls."
    )
    if scored < _FEWEST:
        said = Claim("note", f"{text} So few decide nothing.", "Fig. 1", rho, -1.0)
    else:
        said = Claim("agrees" if rho < -0.5 else "contradicts", text, "Fig. 1", rho, -1.0)
    return Made(tables, [said], [noise_picture(every)])


def _with_level(every: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for name in TABLE_2:
        row: dict[str, Any] = {"measure": name}
        for kind in (WEIGHTS, SMALL, ROWS):
            row[kind] = _rank(every[every["kind"] == kind], "level", name)
        rows.append(row)
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def _rank(frame: pd.DataFrame, one: str, two: str) -> float:
    """Spearman's correlation of two columns, NaN where it says nothing."""
    usable = frame.dropna(subset=[one, two])
    if len(usable) < 3 or usable[one].nunique() < 2 or usable[two].nunique() < 2:
        return math.nan
    return float(stats.spearmanr(usable[one], usable[two]).statistic)


def of_all_models(every: pd.DataFrame) -> Made:
    """Tables 1 and 2, Figs. 3 to 8 from our own runs; the architecture is the model that was changed, or is like it."""
    scored = every.dropna(subset=["glue"])
    models = scored[scored["kind"].isin((WEIGHTS, *OTHERS))].copy()
    models["other"] = models["kind"] != WEIGHTS
    noisy = models[~models["other"]]
    if len(noisy) < _FEWEST:
        text = f"{len(noisy)} noisy models were scored; correlations need {_FEWEST}, so that there are none."
        return Made((), [Claim("note", text, "Table 2")])
    correlated, plain = _correlated(noisy), guesses(models)
    fitted = regressions(models, list(TABLE_2)).assign(
        training_mean_mse=plain["training mean"], own_mean_mse=plain["their own mean"]
    )
    tables = [
        Table(
            "correlations", "Pearson's r of each measure with the mean score over noisy models (Table 2)", correlated
        ),
        Table("regressions", "R² on the noisy models and MSE on the non-standard ones, with plain guesses", fitted),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", residuals(models)),
        Table("matrix", "Pearson's r between the measures over noisy models (Fig. 8)", _matrix(noisy)),
    ]
    pictures = [
        measures_picture(models, list(TABLE_2)),
        residuals_picture(tables[2].frame),
        matrix_picture(tables[3].frame),
    ]
    return Made(tables, [*_correlation_claims(correlated), *_skill_claims(fitted, plain, models)], pictures)


def _correlated(noisy: pd.DataFrame) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for model in dict.fromkeys(noisy["model"]):
        for name, (_, printed) in TABLE_2.items():
            found = pearson(noisy[noisy["model"] == model], name)
            row = {"model": model, "measure": name} | found
            rows.append(
                row | {"bert_small_printed": printed.bert_small, "roberta_printed": _true(name, printed.roberta)}
            )
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def _true(name: str, printed: float) -> float:
    """RoBERTa's r; where its sign is misprinted, as the authors' files have it."""
    return -printed if (name, "roberta") in MISPRINTS else printed


def _matrix(noisy: pd.DataFrame) -> pd.DataFrame:
    matrix: pd.DataFrame = noisy[list(TABLE_2)].corr().reset_index(names="measure")
    return matrix


def _correlation_claims(correlated: pd.DataFrame) -> list[Claim]:
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


def _skill_claims(fitted: pd.DataFrame, plain: dict[str, float], models: pd.DataFrame) -> list[Claim]:
    """Whether regressions on noisy models predict those that are changed otherwise."""
    single = fitted[fitted["regression"].isin([f"{name} + architecture" for name in TABLE_2])].dropna(subset=["mse"])
    count = int(models["other"].sum())
    if not len(single) or not count:
        return []
    best = single.iloc[int(single["mse"].to_numpy().argmin())]
    better = int((single["mse"] < plain["training mean"]).sum())
    text = (
        f"on the {count} non-standard models {better} of {len(single)} regressions beat the mean of the noisy ones as "
        f"a guess (MSE {plain['training mean']:.4f}); the best, {best['regression']}, has {best['mse']:.4f}, their own "
        f"mean {plain['their own mean']:.4f}."
    )
    return [Claim("note", text, "Fig. 5", float(best["mse"]), plain["training mean"])]
