"""Linear regressions of GLUE averages on measures of a space, and what they are worth on other models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from isotrope.errors import InputError

Vector = NDArray[np.float64]

#: The measure that the paper finds best.
PATCHINESS = "point_patchiness_additive"


@dataclass(frozen=True)
class Fit:
    """An ordinary least-squares fit of GLUE on a design with an intercept.

    Args:
        terms: the terms of the design.
        architectures: all that occur; the others are compared with the first.
        coefficients: (p,).
        n: the number of models.
        r2: the share of the variance that the fit explains.
        deviation: the standard deviation of the residuals, with n − p degrees of freedom.
        inverse: (XᵀX)⁻¹, (p, p).
    """

    terms: tuple[str, ...]
    architectures: tuple[str, ...]
    coefficients: Vector
    n: int
    r2: float
    deviation: float
    inverse: NDArray[np.float64]

    def predict(self, frame: pd.DataFrame) -> Vector:
        """The averages that the fit expects of models."""
        return np.asarray(build_design(frame, self.terms, self.architectures) @ self.coefficients)

    def interval(self, frame: pd.DataFrame, level: float = 0.95) -> tuple[Vector, Vector]:
        """Ends of the prediction interval of one new model each, by Student's t."""
        x = build_design(frame, self.terms, self.architectures)
        spread = self.deviation * np.sqrt(1.0 + np.einsum("ij,jk,ik->i", x, self.inverse, x))
        reach = stats.t.ppf((1 + level) / 2, self.n - len(self.coefficients)) * spread
        middle = x @ self.coefficients
        return middle - reach, middle + reach

    @property
    def p_values(self) -> Vector:
        """Two-sided p-values of the coefficients, (p,), by Student's t."""
        deviations = self.deviation * np.sqrt(np.diag(self.inverse))
        return np.asarray(2 * stats.t.sf(np.abs(self.coefficients) / deviations, self.n - len(self.coefficients)))


def build_design(frame: pd.DataFrame, terms: Sequence[str], architectures: Sequence[str] = ()) -> NDArray[np.float64]:
    """The columns of a regression: 1, and each term: a measure, a power `eee^2`, a product `eee*vrm`, `architecture`.

    A model of an architecture that is not among `architectures` gets the mean over them.

    >>> import pandas as pd
    >>> models = pd.DataFrame({"eee": [2.0, 3.0], "architecture": ["RoBERTa", "BERT"]})
    >>> build_design(models, ["eee", "eee^2", "architecture"], ["BERT", "RoBERTa"]).tolist()
    [[1.0, 2.0, 4.0, 1.0], [1.0, 3.0, 9.0, 0.0]]
    """
    columns = [np.ones(len(frame))]
    for term in terms:
        if term == "architecture":
            unknown = ~frame[term].isin(architectures).to_numpy()
            share = unknown / max(len(architectures), 1)
            columns += [(frame[term] == name).to_numpy(float) + share for name in architectures[1:]]
        elif "^" in term:
            name, _, power = term.partition("^")
            columns.append(frame[name].to_numpy(float) ** int(power))
        else:
            columns.append(np.prod([frame[name].to_numpy(float) for name in term.split("*")], axis=0))
    return np.column_stack(columns)


def fit(frame: pd.DataFrame, terms: Sequence[str]) -> Fit:
    """The least-squares fit of the column `glue` on the terms, over the models that have them all.

    >>> import pandas as pd
    >>> fitted = fit(pd.DataFrame({"eee": [0.0, 1, 2, 3], "glue": [1.0, 3, 5, 7]}), ["eee"])
    >>> fitted.coefficients.round(9).tolist(), round(fitted.r2, 9)
    ([1.0, 2.0], 1.0)
    """
    usable = frame.dropna(subset=["glue", *list_columns(terms)])
    architectures = tuple(dict.fromkeys(usable["architecture"])) if "architecture" in terms else ()
    x, y = build_design(usable, terms, architectures), usable["glue"].to_numpy(float)
    if len(usable) <= x.shape[1]:
        raise InputError(f"a regression on {', '.join(terms)} needs more than {x.shape[1]} models, got {len(usable)}.")
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    residuals = y - x @ coefficients
    centred = y - y.mean()
    deviation = math.sqrt(float(residuals @ residuals) / (len(y) - x.shape[1]))
    varied = float(centred @ centred)
    r2 = 1.0 - float(residuals @ residuals) / varied if varied else math.nan
    return Fit(tuple(terms), architectures, coefficients, len(y), r2, deviation, np.linalg.pinv(x.T @ x))


def list_columns(terms: Sequence[str]) -> list[str]:
    """List the columns that terms use."""
    return list(dict.fromkeys(name for term in terms for name in term.split("^")[0].split("*")))


def correlate(frame: pd.DataFrame, measure: str) -> dict[str, Any]:
    """r of a measure with GLUE over the models that have both, its 95 % interval by Fisher's z, p and n."""
    usable = frame.dropna(subset=["glue", measure])
    if len(usable) < 4 or usable[measure].nunique() < 2:
        return {"r": math.nan, "low": math.nan, "high": math.nan, "p": math.nan, "n": len(usable)}
    found = stats.pearsonr(usable[measure], usable["glue"])
    ends = found.confidence_interval(0.95)
    p = float(found.pvalue)
    return {"r": float(found.statistic), "low": float(ends.low), "high": float(ends.high), "p": p, "n": len(usable)}


def compute_skill(fitted: Fit, others: pd.DataFrame) -> dict[str, float]:
    """MSE on other models, and what their own mean as a guess would give there."""
    usable = others.dropna(subset=["glue", *(name for name in list_columns(fitted.terms) if name != "architecture")])
    if not len(usable):
        return {"mse": math.nan, "variance": math.nan}
    y = usable["glue"].to_numpy(float)
    return {"mse": float(np.mean((y - fitted.predict(usable)) ** 2)), "variance": float(y.var())}


def split_models(models: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The perturbed models that were measured, which regressions are fitted to, and the others."""
    return models[~models["other"]].dropna(subset=["glue", "eee"]), models[models["other"]]


def score_guesses(models: pd.DataFrame) -> dict[str, float]:
    """MSE of plain guesses of the other models: the mean of the perturbed ones, and their own."""
    perturbed, others = split_models(models)
    y = others["glue"].dropna().to_numpy(float)
    if not len(y):
        return {"training mean": math.nan, "their own mean": math.nan}
    mean = float(perturbed["glue"].mean())
    return {"training mean": float(np.mean((y - mean) ** 2)), "their own mean": float(y.var())}


def compute_residuals(models: pd.DataFrame, measure: str = PATCHINESS) -> pd.DataFrame:
    """Residuals of the regressions on one measure without and with the architecture (Fig. 4)."""
    perturbed = split_models(models)[0].dropna(subset=[measure])
    columns: dict[str, Any] = {name: perturbed[name] for name in ("model", "architecture", "glue", measure)}
    for label, terms in (("alone", [measure]), ("architecture", [measure, "architecture"])):
        columns[f"residual_{label}"] = perturbed["glue"].to_numpy(float) - fit(perturbed, terms).predict(perturbed)
    frame: pd.DataFrame = pd.DataFrame(columns).reset_index(drop=True)
    return frame
