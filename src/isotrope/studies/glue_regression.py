"""Linear regressions of GLUE averages on measures of a space, and what they are worth on other models."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isotrope.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

Vector = NDArray[np.float64]

#: What the first architecture is compared with; a dummy each for the others.
ARCHITECTURES = ("BERT-small", "BERT-base", "RoBERTa")


@dataclass(frozen=True)
class Fit:
    """An ordinary least-squares fit of GLUE on a design with an intercept.

    coefficients: (p,). n: models. r2: share of the variance explained. deviation: of the residuals, n − p degrees of
    freedom. inverse: (XᵀX)⁻¹.
    """

    terms: tuple[str, ...]
    coefficients: Vector
    n: int
    r2: float
    deviation: float
    inverse: NDArray[np.float64]

    def predict(self, frame: pd.DataFrame) -> Vector:
        """The averages that the fit expects of models."""
        return np.asarray(design(frame, self.terms) @ self.coefficients)

    def interval(self, frame: pd.DataFrame, level: float = 0.95) -> tuple[Vector, Vector]:
        """Ends of the prediction interval of one new model each, by Student's t."""
        x = design(frame, self.terms)
        spread = self.deviation * np.sqrt(1.0 + np.einsum("ij,jk,ik->i", x, self.inverse, x))
        reach = stats.t.ppf((1 + level) / 2, self.n - len(self.coefficients)) * spread
        middle = x @ self.coefficients
        return middle - reach, middle + reach


def design(frame: pd.DataFrame, terms: Sequence[str]) -> NDArray[np.float64]:
    """The columns of a regression: 1, and each term: a measure, a power `eee^2`, a product `eee*vrm`, `architecture`.

    >>> import pandas as pd
    >>> models = pd.DataFrame({"eee": [2.0, 3.0], "architecture": ["RoBERTa", "BERT-small"]})
    >>> design(models, ["eee", "eee^2", "architecture"]).tolist()
    [[1.0, 2.0, 4.0, 0.0, 1.0], [1.0, 3.0, 9.0, 0.0, 0.0]]
    """
    columns = [np.ones(len(frame))]
    for term in terms:
        if term == "architecture":
            columns += [(frame[term] == name).to_numpy(float) for name in ARCHITECTURES[1:]]
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
    names = {name for term in terms for name in term.split("^")[0].split("*")}
    usable = frame.dropna(subset=["glue", *names])
    x, y = design(usable, terms), usable["glue"].to_numpy(float)
    if len(usable) <= x.shape[1]:
        raise InputError(f"a regression on {', '.join(terms)} needs more than {x.shape[1]} models, got {len(usable)}.")
    coefficients = np.linalg.lstsq(x, y, rcond=None)[0]
    residuals = y - x @ coefficients
    centred = y - y.mean()
    deviation = math.sqrt(float(residuals @ residuals) / (len(y) - x.shape[1]))
    r2 = 1.0 - float(residuals @ residuals) / float(centred @ centred)
    return Fit(tuple(terms), coefficients, len(y), r2, deviation, np.linalg.pinv(x.T @ x))


def pearson(frame: pd.DataFrame, measure: str) -> dict[str, Any]:
    """r of a measure with GLUE over the models that have both, its 95 % interval by Fisher's z, and n."""
    usable = frame.dropna(subset=["glue", measure])
    if len(usable) < 4 or usable[measure].nunique() < 2:
        return {"r": math.nan, "low": math.nan, "high": math.nan, "n": len(usable)}
    found = stats.pearsonr(usable[measure], usable["glue"])
    ends = found.confidence_interval(0.95)
    return {"r": float(found.statistic), "low": float(ends.low), "high": float(ends.high), "n": len(usable)}


def skill(fitted: Fit, others: pd.DataFrame) -> dict[str, float]:
    """MSE on other models, and what plain guesses would give there: the training mean and their own."""
    usable = others.dropna(subset=["glue"])
    y = usable["glue"].to_numpy(float)
    return {"mse": float(np.mean((y - fitted.predict(usable)) ** 2)), "variance": float(y.var())}
