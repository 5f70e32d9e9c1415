"""The figures and claims of the latent-geometry paper again, from the measurements that its authors published."""

from __future__ import annotations

import pandas as pd

from isotrope.studies.latent_geometry.decay import compare_curves, judge_curves
from isotrope.studies.latent_geometry.figures import list_measure_figures, make_matrix_figure, make_noise_figure
from isotrope.studies.latent_geometry.model_selection import fit_all
from isotrope.studies.latent_geometry.published import TABLE_2
from isotrope.studies.latent_geometry.regression import (
    PATCHINESS,
    compute_residuals,
    fit,
    score_guesses,
    split_models,
)
from isotrope.studies.latent_geometry.regression_figures import (
    make_lines_figure,
    make_named_figure,
    make_residuals_figure,
)
from isotrope.studies.latent_geometry.shapes import judge_shapes, list_shapes
from isotrope.studies.latent_geometry.skill import compare_with_guess, judge_outliers, judge_skill, predict_others
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_exact, judge_print, judge_test

#: The measure of Fig. 7, PD_EEE.
CLUSTER_EEE = "cluster_eee_additive"

#: R² of the regression of GLUE on point patchiness, without and with the architecture (Fig. 4), to one digit.
PATCHINESS_R2 = {PATCHINESS: 0.3, f"{PATCHINESS} + architecture": 0.5}

#: BERT-small models with at most a tenth of noise (Section 3.1).
_FEW_NOISE = 70


def repeat_noise(models: pd.DataFrame) -> Results:
    """Fig. 1 and the shapes of Section 4.2: how scores and measures of BERT-small move as noise grows."""
    perturbed, _ = split_models(models)
    small = perturbed[perturbed["architecture"] == "BERT-small"]
    curves, shapes = compare_curves(small), list_shapes(small, list(TABLE_2))
    tables = [
        Table("curves", "An exponential and a line of the score over the share of noise, BERT-small (Fig. 1)", curves),
        Table("shapes", "The shape of each measure as noise grows, BERT-small (Section 4.2)", shapes),
    ]
    count = int((small["level"] <= 0.1).sum())
    text = f"{count} of the {len(small)} BERT-small models in the authors' files have α ≤ 0.1; printed {_FEW_NOISE}."
    claims = [Claim(judge_print(count == _FEW_NOISE), text, "Section 3.1", float(count), float(_FEW_NOISE))]
    claims += [*judge_curves("BERT-small", curves), *judge_shapes("BERT-small", shapes)]
    return Results(tables, claims, [make_noise_figure(perturbed, "architecture")])


def repeat_regressions(models: pd.DataFrame) -> Results:
    """Figs. 3 to 7 and 9 to 11: regressions on each measure, alone, with squares, architecture and interactions."""
    measures = list(TABLE_2)
    frame, guesses, compared = fit_all(models, measures), score_guesses(models), compare_with_guess(models, measures)
    plain = pd.DataFrame({"guess": guesses.keys(), "mse": guesses.values()})
    expected, residuals = predict_others(models, PATCHINESS), compute_residuals(models)
    curved = compute_residuals(models, CLUSTER_EEE)
    tables = [
        Table("regressions", "R² on the perturbed models and MSE on the 13 others, the least MSE first", frame),
        Table("guesses", "MSE of plain guesses of the 13 others", plain),
        Table("skill", "Each measure with the architecture against the mean of the perturbed models", compared),
        Table("others", "The 13 other models as the regression on point patchiness expects them (Fig. 5)", expected),
        Table("residuals", "Residuals of the regressions on point patchiness (Fig. 4)", residuals),
        Table("residuals_cluster_eee", "Residuals of the regressions on PD_EEE (Fig. 7)", curved),
    ]
    figures = [
        make_lines_figure(models),
        make_residuals_figure(residuals, "residuals", "Residuals of the regressions on point patchiness (Fig. 4)."),
        make_named_figure(models),
        make_residuals_figure(curved, "residuals_cluster_eee", "Residuals of the regressions on PD_EEE (Fig. 7)."),
        *list_measure_figures(models, measures),
    ]
    claims = [*_judge_patchiness(frame), *judge_skill(compared, guesses["their own mean"]), *judge_outliers(expected)]
    return Results(tables, [*claims, _judge_cluster_eee(compared), judge_curvature(models)], figures)


def repeat_correlations(models: pd.DataFrame) -> Results:
    """Fig. 8: Pearson's r between all measures over the perturbed models."""
    perturbed, _ = split_models(models)
    matrix = perturbed[list(TABLE_2)].corr().reset_index(names="measure")
    title = "Pearson's r between the measures (Fig. 8)"
    return Results([Table("correlations", title, matrix)], (), [make_matrix_figure(matrix)])


def _judge_patchiness(frame: pd.DataFrame) -> list[Claim]:
    """R² of the regressions on point patchiness (Fig. 4), which are arithmetic on the authors' files."""
    by, claims = frame.set_index("regression")["r2"], []
    for name, printed in PATCHINESS_R2.items():
        ours = float(by[name])
        text = f"R² of the regression on {name} is {ours:.3f}; printed {printed:g}."
        claims.append(Claim(judge_exact(round(ours, 1) == printed), text, "Fig. 4", ours, printed))
    return claims


def _judge_cluster_eee(compared: pd.DataFrame) -> Claim:
    """Whether PD_EEE has the least MSE of all measures on the 13 others, as Table 1 says of five of them."""
    best, row = compared.iloc[0], compared.set_index("measure").loc[CLUSTER_EEE]
    text = (
        f"PD_EEE has an MSE of {row['mse']:.3f} on the 13 others; the least of all 19 measures is that of "
        f"{best['measure']}, {best['mse']:.3f}. The paper: PD_EEE has the least, which holds for the five of Table 1."
    )
    return Claim("note", text, "Table 1", float(row["mse"]), 0.017)


def judge_curvature(models: pd.DataFrame) -> Claim:
    """Whether the residuals of the regression on PD_EEE are curved (Fig. 7): the t-test of its square."""
    terms = [CLUSTER_EEE, f"{CLUSTER_EEE}^2", "architecture"]
    fitted = fit(split_models(models)[0], terms)
    square, p = float(fitted.coefficients[2]), float(fitted.p_values[2])
    text = f"the square of PD_EEE has a coefficient of {square:.2f} beside PD_EEE and the architecture; the paper: the "
    text += "residuals are curved."
    return Claim(judge_test(abs(square), p), text, "Fig. 7", square, evidence=f"Student's t-test: p {p:.2g}")
