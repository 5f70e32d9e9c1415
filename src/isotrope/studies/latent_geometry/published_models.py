"""The measured models that Marbut, Chandler and Wheeler published: their Table 2 again, and what regressions say."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.figures import matrix_picture, measures_picture, residuals_picture
from isotrope.studies.latent_geometry.published import ARCHITECTURE_OF, FILES, MISPRINTS, PATCHINESS_R2, TABLE_2
from isotrope.studies.latent_geometry.regression import (
    PATCHINESS,
    fit,
    guesses,
    pearson,
    perturbed_and_others,
    regressions,
    residuals,
    skill,
)
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Made

if TYPE_CHECKING:
    import pandas as pd

#: How near ours must be to the printed numbers, which have three digits.
NEAR = 0.001 + 1e-9

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


def table_2(models: pd.DataFrame) -> Made:
    """Pearson's r with GLUE, and the MSE on the 13 other models, beside what is printed."""
    import pandas as pd

    perturbed, others = perturbed_and_others(models)
    rows, claims, wrong = [], [], 0
    for name, (_, printed) in TABLE_2.items():
        row: dict[str, Any] = {"measure": name}
        for column, architecture in (("bert_small", "BERT-small"), ("roberta", "RoBERTa")):
            found = pearson(perturbed[perturbed["architecture"] == architecture], name)
            row |= {column: found["r"], f"{column}_low": found["low"], f"{column}_high": found["high"]}
            row[f"{column}_printed"] = getattr(printed, column)
        row |= {"mse": skill(fit(perturbed, [name, "architecture"]), others)["mse"], "mse_printed": printed.mse}
        rows.append(row)
        for column in ("bert_small", "roberta", "mse"):
            if abs(row[column] - row[f"{column}_printed"]) > NEAR:
                wrong += (name, column) not in MISPRINTS
                ours, theirs = row[column], row[f"{column}_printed"]
                text = f"{name}, {column}: printed {theirs:.3f}, the authors' files give {ours:.3f}."
                claims.append(Claim("misprint", text, "Table 2", ours, theirs))
    cells = 3 * len(rows)
    text = f"{cells - len(claims)} of the {cells} numbers come out of the authors' files within 0.001."
    claims.insert(0, Claim("contradicts" if wrong else "agrees", text, "Table 2"))
    return Made(
        [Table("table_2", "Table 2: r of each measure with GLUE, and MSE on the others", pd.DataFrame(rows))], claims
    )


def published_regressions(models: pd.DataFrame) -> Made:
    """R² and MSE of regressions on each measure: alone, with architecture, squared, two together, with interaction."""
    import pandas as pd

    frame, plain = regressions(models, _MEASURES), guesses(models)
    tables = [
        Table("regressions", "R² on the perturbed models and MSE on the 13 others", frame),
        Table(
            "guesses",
            "MSE of plain guesses of the 13 others",
            pd.DataFrame([{"guess": name, "mse": mse} for name, mse in plain.items()]),
        ),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", residuals(models)),
    ]
    pictures = [measures_picture(models, _MEASURES), residuals_picture(tables[-1].frame)]
    return Made(tables, [*_r2_claims(frame), *_skill_claims(frame, plain)], pictures)


def _r2_claims(frame: pd.DataFrame) -> list[Claim]:
    by = frame.set_index("regression")["r2"]
    claims = []
    for name, expected, printed in zip(
        (PATCHINESS, f"{PATCHINESS} + architecture"), PATCHINESS_R2, ("0.3", "0.5"), strict=True
    ):
        ours = float(by[name])
        text = f"R² of the regression on {name} is {ours:.3f}; printed {printed}."
        claims.append(
            Claim("agrees" if abs(ours - expected) <= NEAR else "contradicts", text, "Fig. 4", ours, expected)
        )
    return claims


def _skill_claims(frame: pd.DataFrame, plain: dict[str, float]) -> list[Claim]:
    """The sober fact about the other models."""
    single = frame[frame["regression"].isin([f"{name} + architecture" for name in _MEASURES])]
    best = single.iloc[int(single["mse"].to_numpy().argmin())]
    patchiness = float(single.set_index("regression")["mse"][f"{PATCHINESS} + architecture"])
    worse = int((single["mse"] > plain["training mean"]).sum())
    text = (
        f"on the 13 other models {PATCHINESS} has an MSE of {patchiness:.3f}, worse than the training mean "
        f"({plain['training mean']:.3f}), as {worse} of {len(single)} measures are; the best, {best['regression']}, "
        f"has {best['mse']:.3f}, worse than their own mean ({plain['their own mean']:.3f})."
    )
    return [Claim("contradicts", f"{text} No measure predicts them.", "Table 2", patchiness, plain["training mean"])]


def correlations(models: pd.DataFrame) -> Made:
    """Fig. 8: Pearson's r between all measures over the perturbed models."""
    perturbed, _ = perturbed_and_others(models)
    matrix = perturbed[_MEASURES].corr().reset_index(names="measure")
    title = "Pearson's r between the measures (Fig. 8)"
    return Made([Table("correlations", title, matrix)], (), [matrix_picture(matrix)])
