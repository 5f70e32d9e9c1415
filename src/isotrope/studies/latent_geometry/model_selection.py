"""Which regression of GLUE on a measure to use: the one with the least error on an architecture left out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.regression import PATCHINESS, compute_skill, fit, list_columns, split_models

#: The measures that are combined in pairs.
_TOGETHER = (PATCHINESS, "cluster_eee_additive", "vrm", "eee")


@dataclass(frozen=True)
class Design:
    """The terms of a regression, with its error in cross-validation.

    Args:
        name: what it is called in tables.
        terms: of `isotrope.studies.latent_geometry.regression.fit`.
        error: the root of the mean squared error over architectures, see `cross_validate`.
    """

    name: str
    terms: tuple[str, ...]
    error: float


def list_designs(measure: str) -> dict[str, tuple[str, ...]]:
    """The terms of the regressions on one measure, by name.

    >>> list(list_designs("eee"))
    ['eee', 'eee + square', 'eee + architecture', 'eee + square + architecture']
    """
    plain, square = (measure,), (measure, f"{measure}^2")
    designs = {measure: plain, f"{measure} + square": square}
    return designs | {f"{name} + architecture": (*terms, "architecture") for name, terms in designs.items()}


def cross_validate(models: pd.DataFrame, terms: Sequence[str]) -> float:
    """The root mean squared error of a regression on architectures that are left out in turn.

    Every architecture counts alike, whatever the number of its models: the error is that for a new one. A regression
    with the architecture as a term uses the mean over the known ones for the one that is left out.

    Args:
        models: perturbed models with the columns `architecture`, `glue` and the measures.
        terms: the terms of the regression; none for the mean of the models as a guess.

    Returns:
        The error; NaN with one architecture alone, or where too few models are left to fit.
    """
    usable = models.dropna(subset=["glue", "architecture", *list_columns(terms)])
    errors = []
    for name in dict.fromkeys(usable["architecture"]):
        left_out = usable["architecture"] == name
        try:
            expected = fit(usable[~left_out], terms).predict(usable[left_out])
        except InputError:
            return math.nan
        errors.append(float(np.mean((usable.loc[left_out, "glue"] - expected) ** 2)))
    return math.sqrt(sum(errors) / len(errors)) if errors else math.nan


def choose_design(models: pd.DataFrame, measure: str) -> Design:
    """The regression on a measure with the least error in cross-validation; the simplest where there is none."""
    designs = [Design(name, terms, cross_validate(models, terms)) for name, terms in list_designs(measure).items()]
    return min(designs, key=lambda design: math.inf if math.isnan(design.error) else design.error)


def fit_all(models: pd.DataFrame, measures: Sequence[str]) -> pd.DataFrame:
    """Fit all regressions: each measure alone, with its square, with the architecture, and some two of them together.

    Args:
        models: noisy and other models, see `split_models`.
        measures: the measures.

    Returns:
        For each regression R² on the noisy models, the error on architectures that are left out, the MSE on the other
        models and the variance of these; the least MSE first. What has too few models is left out.
    """
    perturbed, others = split_models(models)
    plans: dict[str, Sequence[str]] = {}
    for name in measures:
        plans |= list_designs(name)
    for one, two in combinations(_TOGETHER, 2):
        plans[f"{one} + {two} + architecture"] = [one, two, "architecture"]
        plans[f"{one} × {two} + architecture"] = [one, two, f"{one}*{two}", "architecture"]
    rows = []
    for name, terms in plans.items():
        try:
            fitted = fit(perturbed, terms)
        except InputError:
            continue
        row = {"regression": name, "n": fitted.n, "r2": fitted.r2, "cross_error": cross_validate(perturbed, terms)}
        rows.append(row | compute_skill(fitted, others))
    frame = pd.DataFrame(rows, columns=["regression", "n", "r2", "cross_error", "mse", "variance"])
    ordered: pd.DataFrame = frame.sort_values(["mse", "r2"], ascending=[True, False], ignore_index=True)
    return ordered


def select_single(fitted: pd.DataFrame, measures: Iterable[str]) -> pd.DataFrame:
    """Select the regressions on one measure and the architecture; fitted: see `fit_all`."""
    single: pd.DataFrame = fitted[fitted["regression"].isin([f"{name} + architecture" for name in measures])]
    return single
