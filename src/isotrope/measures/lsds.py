"""Whether a repair keeps neighbours together: the local structure discrepancy score."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import compute_squared_lengths
from isotrope.compute.threads import slice_rows
from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Image, Points

Matrix = NDArray[np.float64]
Indices = NDArray[np.int64]

_K, _T = 12, 0.5

#: What the authors add to the diagonal of the local Gram matrix, as a share of its trace.
_RIDGE = 1e-3

#: Numbers gathered at once.
_AT_ONCE = 1 << 20


def _enough(p: Points, least: int) -> None:
    if p.n < least:
        raise Undefined(f"needs at least {least} rows, found {p.n}")


def _kernel(i: Image) -> tuple[Indices, Matrix]:
    """The nearest neighbours of each row in the original space, (n, k), and their closeness."""
    _enough(i.rows, _K + 1)
    found = i.rows.unit.neighbours
    return found.which[:, :_K], np.exp(-(found.distance[:, :_K] ** 2) / _T)


def _compute_offsets(rows: Matrix, index: Indices, weights: Matrix) -> Matrix:
    """‖z_i − Σ_j w_ij z_j‖² of each row, (n,)."""
    found = np.empty(len(rows))
    step = max(1, _AT_ONCE // (index.shape[1] * rows.shape[1]))
    for part in slice_rows(len(rows), step):
        off = rows[part] - np.einsum("ij,ijk->ik", weights[part], rows[index[part]])
        found[part] = compute_squared_lengths(off)
    return found


def compute_discrepancies(i: Image) -> Matrix:
    """Compute how far each repaired row is from the weighted mean of its old neighbours, squared; their mean is LSDS.

    Args:
        i: rows and their image.

    Returns:
        One number for each row, (n,).

    References:
        Yan et al. 2022, Eq. 6.
    """
    index, weights = _kernel(i)
    return _compute_offsets(i.image.unit.rows, index, weights / weights.sum(axis=1, keepdims=True))


def _literal(i: Image) -> float:
    """Eq. 6 to the letter: weights not normalised."""
    return float(_compute_offsets(i.image.unit.rows, *_kernel(i)).mean())


def _barycentre_weights(rows: Matrix, index: Indices) -> Matrix:
    """Weights that sum to 1 and best make each row of its neighbours (Roweis and Saul 2000), (n, k)."""
    weights = np.empty(index.shape)
    k = index.shape[1]
    step = max(1, _AT_ONCE // (k * rows.shape[1]))
    for part in slice_rows(len(rows), step):
        apart = rows[index[part]] - rows[part, None]
        gram = apart @ apart.transpose(0, 2, 1)
        trace = np.trace(gram, axis1=1, axis2=2)
        gram += (_RIDGE * np.where(trace > 0, trace, 1.0))[:, None, None] * np.eye(k)
        weights[part] = np.linalg.solve(gram, np.ones((len(gram), k, 1)))[:, :, 0]
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _compute_published(i: Image) -> float:
    """As the authors ran it: a row is its own first neighbour, barycentre weights, one norm over all rows."""
    _enough(i.rows, _K)
    rows = i.rows.unit
    index = np.hstack([np.arange(rows.n)[:, None], rows.neighbours.which[:, : _K - 1]])
    weights = _barycentre_weights(rows.rows, index)
    return math.sqrt(float(_compute_offsets(i.image.unit.rows, index, weights).sum()))


@measure(
    "image",
    title="Local structure discrepancy score",
    says="How far rows end up from where their old neighbours are after a repair: 0 at their very middle.",
    range=(0.0, 4.0),
    better="lower",
    estimate=False,
    formula=(
        "mean over rows of ‖f(x_i) − Σ_j w_ij f(x_j)‖², j the 12 nearest of x_i before the repair, w_ij ∝ "
        "exp(−‖x_i − x_j‖²/0.5) with sum 1, rows of unit length before and after. literal: weights not normalised. "
        "published: x_i its own neighbour, barycentre weights, Frobenius norm over all rows (grows as √n)"
    ),
    paper="Yan et al. 2022 (SoftDecay), Eq. 6",
    blind=(
        "Neighbours that a repair brings in. It shrinks with n, as neighbours come closer: compare repairs on the same "
        "rows. It has no interval: a scan has no image to read it from."
    ),
    wrong="Eq. 6 to the letter: where Σw is well above 1, as nearly everywhere, it reverses the paper's own ordering.",
    variants={"literal": _literal, "published": _compute_published},
)
def lsds(i: Image) -> float:
    """Mean squared distance of a repaired row from the weighted mean of its old neighbours."""
    return float(compute_discrepancies(i).mean())
