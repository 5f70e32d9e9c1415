"""Whether a log-linear model would find all directions equally likely."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Points

_FORMULA = "min_c Z(c)/max_c Z(c), Z(c) = Σ exp(c·x) over rows, c over ± the eigenvectors of XᵀX"

#: Eigenvalues that differ by less than this share of the largest are taken for the same one, or for zero.
_SAME = 1e-10


def _axes(p: Points) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Eigenvalues of XᵀX, ascending, (d,), and its eigenvectors, (d, d)."""
    if p.n < 1:
        raise Undefined("there are no rows")
    found = np.linalg.eigh(p.rows.T @ p.rows)
    return found.eigenvalues, found.eigenvectors


def _log_isotropy(p: Points) -> float:
    along = p.rows @ _axes(p)[1]
    sums = np.concatenate([_log_sums(along), _log_sums(-along)])
    return float(sums.min() - sums.max())


def _log_sums(exponents: NDArray[np.float64]) -> NDArray[np.float64]:
    """log Σ exp of each column, (n, d) -> (d,), relative to its largest exponent."""
    top = exponents.max(axis=0)
    return np.asarray(np.log(np.exp(exponents - top).sum(axis=0)) + top)


def _note(p: Points) -> str | None:
    values = _axes(p)[0]
    filled = values[values > _SAME * values[-1]]
    repeats = int((np.diff(filled) < _SAME * values[-1]).sum())
    return f"{repeats} eigenvalues repeat, and their directions are an arbitrary choice" if repeats else None


_SHARED: dict[str, Any] = {
    "better": "higher",
    "invariant": ("rotation",),
    "estimate": False,
    "note": _note,
    "paper": "Mu and Viswanath 2018 (all-but-the-top), after Arora et al. 2016",
    "blind": (
        "It compares directions at the rows' own scale: long rows give 0 whatever their shape, short ones 1. Of long "
        "rows Z is one row's term, which leaving rows out does not show (70 to 90 of 100 intervals held): it has no "
        "interval. Where eigenvalues repeat, the directions are an arbitrary choice among many."
    ),
    "wrong": (
        "One sign of each eigenvector only: signs are arbitrary. Sums without log-sum-exp: they overflow where rows "
        "are longer than 700."
    ),
}


@measure(
    "sample",
    title="Partition function isotropy I(V)",
    says="How equal the partition function is in all directions: 1 equal, near 0 some directions dominate.",
    range=(0.0, 1.0),
    formula=_FORMULA,
    **_SHARED,
)
def partition_isotropy(p: Points) -> float:
    """Smallest over largest partition function along the rows' own axes, both ways.

    >>> round(partition_isotropy(np.array([[1.0, 0.0], [-1.0, 0.0]])), 4)  # 2 over e + 1/e
    0.6481
    """
    return math.exp(_log_isotropy(p))


@measure(
    "sample",
    title="Partition function isotropy, log I(V)",
    says="The logarithm of I(V), which is 0 to all digits for long rows: 0 equal in all directions, very negative not.",
    range=(-math.inf, 0.0),
    formula=f"log of {_FORMULA}",
    **_SHARED,
)
def log_partition_isotropy(p: Points) -> float:
    """Logarithm of the smallest over the largest partition function."""
    return _log_isotropy(p)
