"""The measured models that Marbut, Chandler and Wheeler published: their Table 2 again, and what regressions say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.claims import NEAR, judge_patchiness, judge_published_skill
from isotrope.studies.latent_geometry.figures import make_matrix_figure, make_measures_figure, make_residuals_figure
from isotrope.studies.latent_geometry.published import ARCHITECTURE_OF, FILES, MISPRINTS, TABLE_2
from isotrope.studies.latent_geometry.regression import (
    compute_residuals,
    compute_skill,
    correlate,
    fit,
    fit_all,
    score_guesses,
    split_models,
)
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results

if TYPE_CHECKING:
    import pandas as pd

_MEASURES = list(TABLE_2)


def read_models(folder: Path) -> pd.DataFrame:
    """One row for each measured model: model, architecture, other (one of the 13), glue, alpha, our measures' names."""
    import pandas as pd

    parts = []
    for name, (architecture, average) in FILES.items():
        path = folder / name
        if not path.is_file():
            raise InputError(
                f"there is no {name} in {str(folder)!r}; name the folder of the authors' files with --data."
            )
        table = pd.read_csv(path)
        model = table.iloc[:, 0].astype(str)
        facts = {
            "model": model,
            "architecture": model.map(ARCHITECTURE_OF) if architecture is None else architecture,
            "other": architecture is None,
            "glue": table[average],
            "alpha": table["alpha"] / 100.0 if "alpha" in table else math.nan,
        }
        parts.append(pd.DataFrame(facts | {ours: table[column] for ours, (column, _) in TABLE_2.items()}))
    every: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return every


def repeat_table_2(models: pd.DataFrame) -> Results:
    """Pearson's r with GLUE, and the MSE on the 13 other models, with the printed numbers."""
    import pandas as pd

    perturbed, others = split_models(models)
    rows, claims, wrong = [], [], 0
    for name, (_, printed) in TABLE_2.items():
        row: dict[str, Any] = {"measure": name}
        for column, architecture in (("bert_small", "BERT-small"), ("roberta", "RoBERTa")):
            found = correlate(perturbed[perturbed["architecture"] == architecture], name)
            row |= {column: found["r"], f"{column}_low": found["low"], f"{column}_high": found["high"]}
            row[f"{column}_printed"] = getattr(printed, column)
        row |= {"mse": compute_skill(fit(perturbed, [name, "architecture"]), others)["mse"], "mse_printed": printed.mse}
        rows.append(row)
        for column in ("bert_small", "roberta", "mse"):
            if abs(row[column] - row[f"{column}_printed"]) > NEAR:
                wrong += (name, column) not in MISPRINTS
                ours, theirs = row[column], row[f"{column}_printed"]
                text = f"{name}, {column}: printed {theirs:.3f}, the authors' files give {ours:.3f}."
                claims.append(Claim("misprint", text, "Table 2", ours, theirs))
    cells = 3 * len(rows)
    text = f"{cells - len(claims)} of the {cells} numbers come out of the authors' files within 0.001."
    claims.insert(0, Claim.judge(not wrong, text, "Table 2"))
    return Results(
        [Table("table_2", "Table 2: r of each measure with GLUE, and MSE on the others", pd.DataFrame(rows))], claims
    )


def repeat_regressions(models: pd.DataFrame) -> Results:
    """R² and MSE of regressions on each measure: alone, with architecture, squared, two together, with interaction."""
    import pandas as pd

    frame, guesses = fit_all(models, _MEASURES), score_guesses(models)
    tables = [
        Table("regressions", "R² on the perturbed models and MSE on the 13 others", frame),
        Table(
            "guesses",
            "MSE of plain guesses of the 13 others",
            pd.DataFrame([{"guess": name, "mse": mse} for name, mse in guesses.items()]),
        ),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", compute_residuals(models)),
    ]
    figures = [make_measures_figure(models, _MEASURES), make_residuals_figure(tables[-1].frame)]
    return Results(tables, [*judge_patchiness(frame), *judge_published_skill(frame, guesses)], figures)


def repeat_correlations(models: pd.DataFrame) -> Results:
    """Fig. 8: Pearson's r between all measures over the perturbed models."""
    perturbed, _ = split_models(models)
    matrix = perturbed[_MEASURES].corr().reset_index(names="measure")
    title = "Pearson's r between the measures (Fig. 8)"
    return Results([Table("correlations", title, matrix)], (), [make_matrix_figure(matrix)])
