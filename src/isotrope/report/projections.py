"""A layer's principal and singular directions, and its sampled rows in the plane: as they are and repaired."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator, eigsh

from isotrope.drawing.projections import project_tsne
from isotrope.repairs import SoftDecay
from isotrope.repairs.softdecay import soft_decay
from isotrope.repairs.spectrum import compute_principal_directions, compute_singular_directions
from isotrope.statistics import Moments

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Up to this many directions all eigenvectors are computed, beyond it only the two that are drawn.
_FEW = 16
Points = NDArray[np.float32]

#: Rows that t-SNE places, which takes seconds for these and many minutes for all.
MOST_PLACED = 3_000


@dataclass(frozen=True, eq=False)
class Directions:
    """Principal and singular directions of rows.

    Attributes:
        n: How many rows there are.
        mean: Of the rows, (d,).
        variances: Along the principal directions, (r,), descending, over n − 1.
        axes: The principal directions, (d, r).
        singular: Singular values of the uncentred rows, (s,), descending.
        turn: Their right singular vectors, (d, s).
        along: The mean row along these, (s,).

    >>> from isotrope.statistics import prepare_rows
    >>> rows = np.array([[3.0, 1.0], [3.0, -1.0], [5.0, 0.0]])
    >>> found = Directions.of(Moments.of(prepare_rows(rows)))
    >>> bool(np.isclose(np.linalg.norm(found.along), np.linalg.norm(rows.mean(axis=0))))
    True
    """

    n: int
    mean: Vector
    variances: Vector
    axes: Matrix
    singular: Vector
    turn: Matrix
    along: Vector

    @classmethod
    def of(cls, m: Moments) -> Directions:
        values, axes = compute_principal_directions(m)
        strengths, turn = compute_singular_directions(m)
        return cls(m.n, m.mean, values / max(m.n - 1, 1), axes, strengths, turn, turn.T @ m.mean)

    def plane(self) -> tuple[Matrix, Vector]:
        """The plane of most spread: a weight (d, 2) and a shift (2,), so that rows @ weight − shift are the points."""
        weight = _two(self.axes)
        return weight, self.mean @ weight

    def project_whitened(self) -> tuple[Matrix, Vector]:
        """The same plane where every direction is as wide as any other."""
        weight, shift = self.plane()
        scale = np.ones(2)
        scale[: len(self.variances)] = np.sqrt(self.variances[:2])
        return weight / scale, shift / scale

    def softdecay_plane(self, gains: Vector) -> tuple[Matrix, Vector]:
        """The plane of most spread after the singular directions, (s,), are multiplied by gains, (s,).

        Along the singular directions the scatter is a diagonal less the mean's part, so that no matrix is needed.
        """
        strengths, mean = (gains * self.singular) ** 2, gains * self.along

        def scatter(x: Vector) -> Vector:
            flat = np.ravel(x)
            return np.asarray(strengths * flat - self.n * mean * (mean @ flat))

        s = len(strengths)
        if s <= _FEW:
            vectors = np.linalg.eigh(np.diag(strengths) - self.n * np.outer(mean, mean))[1][:, ::-1]
        else:
            operator = LinearOperator((s, s), matvec=scatter, dtype=np.float64)
            found, vectors = eigsh(operator, k=2, v0=np.ones(s), which="LA")
            vectors = vectors[:, np.argsort(-found)]
        weight = (self.turn * gains) @ _two(vectors)
        shift = self.mean @ weight
        # Which way a direction points is chance: the way of the plane before, so that points move as little as can be.
        sign = np.sign(np.einsum("ij,ij->j", weight, self.plane()[0]))
        sign[sign == 0] = 1.0
        return weight * sign, shift * sign


def _two(directions: Matrix) -> Matrix:
    """The first two of the directions, (d, 2); zeros where there are fewer."""
    return np.pad(directions[:, :2], ((0, 0), (0, max(0, 2 - directions.shape[1]))))


def compute_softdecay_gains(singular: Vector) -> Vector:
    """The gains, (s,), that SoftDecay with its defaults gives to singular values, (s,)."""
    repair = SoftDecay()
    values = soft_decay(singular, repair.alpha, repair.form)
    return np.asarray(singular[0] / values[0] * values / singular)


def project_on_planes(found: Directions, rows: NDArray[Any]) -> dict[str, Points]:
    """Project rows, (n, d), on the plane of their widest spread, (n, 2), by what was done to them before."""
    gains = compute_softdecay_gains(found.singular)
    ways = {
        "none": found.plane(),
        "softdecay": found.softdecay_plane(gains),
        "whitening": found.project_whitened(),
    }
    wide = rows.astype(np.float64, copy=False)
    return {name: (wide @ weight - shift).astype(np.float32) for name, (weight, shift) in ways.items()}


def project_by_tsne(found: Directions, rows: NDArray[Any], *, seed: int) -> dict[str, Points]:
    """Project the first rows by t-SNE, (n, 2), by what was done to them: neighbours by cosine stay neighbours."""
    wide = rows[:MOST_PLACED].astype(np.float64)
    decayed = (wide @ found.turn) * compute_softdecay_gains(found.singular)
    whitened = (wide - found.mean) @ (found.axes / np.sqrt(found.variances))
    ways = {"none": wide, "softdecay": decayed, "whitening": whitened}
    return {name: project_tsne(image, seed) for name, image in ways.items()}
