"""What GLUE scores: accuracy, F1, Matthews' correlation, and Pearson's and Spearman's of numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from isotrope.evaluation.metrics import CORRELATIONS, Correlation, Mean

Vector = NDArray[np.float64]


def accuracy(said: Vector, labels: Vector) -> float:
    """The share of rows whose label is said."""
    return Mean(np.equal(said, labels)).value


def f1(said: Vector, labels: Vector) -> float:
    """The harmonic mean of precision and recall of class 1; 0 where neither said nor true labels hold it.

    >>> f1(np.array([1, 1, 0]), np.array([1, 0, 1]))
    0.5
    """
    hits = np.count_nonzero((said == 1) & (labels == 1))
    named = np.count_nonzero(said == 1) + np.count_nonzero(labels == 1)
    return float(2 * hits / named) if named else 0.0


def matthews(said: Vector, labels: Vector) -> float:
    """The correlation of said and true labels 0 and 1; 0 where one of them is always the same (Matthews 1975).

    >>> matthews(np.array([1, 1, 0, 0]), np.array([1, 1, 0, 1])).__round__(4)
    0.5774
    """
    if np.ptp(said) == 0 or np.ptp(labels) == 0:
        return 0.0
    return float(np.corrcoef(said, labels)[0, 1])


_OF_CLASSES = {"accuracy": accuracy, "f1": f1, "matthews": matthews}


def score(metric: str, said: Vector, labels: Sequence[float]) -> float:
    """A score by name, (n,) and (n,) -> a number; NaN where a correlation is undefined."""
    gold = np.asarray(labels, dtype=np.float64)
    if metric in CORRELATIONS:
        return Correlation(said, gold, metric).value
    return _OF_CLASSES[metric](said, gold)


def task_score(scores: Sequence[float]) -> float:
    """One number for a task with several scores: their mean, as GLUE averages them; −inf where one is undefined."""
    found = float(np.mean(scores))
    return found if math.isfinite(found) else -math.inf
