"""The invertible map of a flow: whitening, then steps of a linear map and an affine coupling."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.repairs.row_repair import StoredMap
from isotrope.statistics.saved_arrays import require, require_consistent

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: A coupling multiplies by e^±2 at most, so that its inverse is as exact as itself.
_LIMIT = 2.0


class Step(NamedTuple):
    """One step of a flow, numpy or torch: x -> x @ weight + offset, then the second half by what the first half says.

    weight: (r, r), actnorm's scale and the invertible linear map as one. offset: (r,). log_det: of the weight, (1,).
    first, second, third: the coupling's network, (r // 2, h), (h, h) and (h, 2·(r − r // 2)), each with its bias.
    """

    weight: Any
    offset: Any
    log_det: Any
    first: Any
    first_bias: Any
    second: Any
    second_bias: Any
    third: Any
    third_bias: Any


def _compute_coupling(kept: Any, step: Step, xp: Any) -> tuple[Any, Any]:
    """What one half of the coordinates, (n, r // 2), multiplies the other by, as a logarithm, and adds to it."""
    inner = (kept @ step.first + step.first_bias).clip(min=0.0)
    inner = (inner @ step.second + step.second_bias).clip(min=0.0)
    both = inner @ step.third + step.third_bias
    width = both.shape[1] // 2
    return _LIMIT * xp.tanh(both[:, :width] / _LIMIT), both[:, width:]


def forward(x: Any, steps: Iterable[Step], xp: Any = np) -> tuple[Any, Any]:
    """Rows, (n, r), through all steps, and the log-determinant of the Jacobian at each, (n,). xp: numpy or torch."""
    log_det = 0.0 * x[:, 0]
    for step in steps:
        x = x @ step.weight + step.offset
        kept, other = x[:, : x.shape[1] // 2], x[:, x.shape[1] // 2 :]
        log_scale, shift = _compute_coupling(kept, step, xp)
        x = xp.concatenate([kept, other * xp.exp(log_scale) + shift], axis=1)
        log_det = log_det + log_scale.sum(1) + step.log_det
    return x, log_det


def compute_log_normal(z: Any) -> Any:
    """Log-density of a standard normal at rows, (n, r) -> (n,)."""
    return -0.5 * (z**2).sum(1) - 0.5 * z.shape[1] * float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class FlowMap(StoredMap):
    """x -> steps of the first r columns of (x − mean) @ whiten, the others as they are; (n, d) -> (n, d).

    mean: (d,). whiten: (d, d); its first r columns are directions in which the rows spread. steps: r wide.
    likelihoods: mean log-likelihood of the rows held out, before training (the Gaussian's) and after each epoch.
    """

    mean: Vector
    whiten: Matrix
    rank: int
    steps: tuple[Step, ...]
    likelihoods: Vector

    @property
    def width(self) -> int:
        return len(self.mean)

    def _map_block(self, x: Matrix) -> Matrix:
        return self._forward(x)[0]

    def log_det(self, rows: Any) -> Vector:
        """Log of the absolute determinant of the map's Jacobian at each row, (n,)."""
        found = [self._forward(x)[1] for x in self._iterate_blocks(rows)]
        return np.concatenate([np.empty(0), *found]) + float(self._log_lengths[self.rank :].sum())

    def log_likelihood(self, rows: Any) -> Vector:
        """Log-density of each row within the directions in which the rows fitted on spread, (n,)."""
        images = (self._forward(x) for x in self._iterate_blocks(rows))
        return np.concatenate(
            [np.empty(0), *(compute_log_normal(z[:, : self.rank]) + log_det for z, log_det in images)]
        )

    def _forward(self, x: Matrix) -> tuple[Matrix, Vector]:
        """Images, and log-determinants within the first r columns."""
        white = (x - self.mean) @ self.whiten
        white[:, : self.rank], log_det = forward(white[:, : self.rank], self.steps)
        return white, log_det + self._log_lengths[: self.rank].sum()

    def inverse(self) -> Callable[[Any], Any]:
        return lambda rows: self._map_rows(rows, self._backward)

    def _backward(self, z: Matrix) -> Matrix:
        z = z.copy()
        x = z[:, : self.rank]
        for step, inverse in zip(reversed(self.steps), reversed(self._inverses), strict=True):
            kept, other = x[:, : self.rank // 2], x[:, self.rank // 2 :]
            log_scale, shift = _compute_coupling(kept, step, np)
            x = (np.concatenate([kept, (other - shift) * np.exp(-log_scale)], axis=1) - step.offset) @ inverse
        z[:, : self.rank] = x
        return np.asarray(z @ self._unwhiten + self.mean)

    @cached_property
    def _inverses(self) -> list[Matrix]:
        return [np.linalg.inv(step.weight) for step in self.steps]

    @cached_property
    def _unwhiten(self) -> Matrix:
        # Columns of `whiten` are orthogonal, so that its inverse is exact whatever their lengths.
        return np.asarray((self.whiten / np.square(self.whiten).sum(axis=0)).T)

    @cached_property
    def _log_lengths(self) -> Vector:
        """Of the columns of `whiten`, (d,)."""
        return np.asarray(np.log(np.square(self.whiten).sum(axis=0)) / 2)

    def arrays(self) -> dict[str, NDArray[Any]]:
        steps = {f"{i}.{name}": array for i, s in enumerate(self.steps) for name, array in s._asdict().items()}
        rank = np.array([self.rank], dtype=np.int64)
        return {"mean": self.mean, "whiten": self.whiten, "rank": rank, "likelihoods": self.likelihoods, **steps}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> FlowMap:
        mean = require(arrays, "mean", np.float64, (None,))
        (rank,) = require(arrays, "rank", np.int64, (1,), least=0, most=len(mean)).tolist()
        count = sum(name.endswith(".weight") for name in arrays)
        steps = tuple(_load_step(arrays, f"{i}.", rank) for i in range(count))
        whiten = require(arrays, "whiten", np.float64, 2 * mean.shape)
        require_consistent(len(mean) > 0 and bool(whiten.any(axis=0).all()), "the saved whitening has empty columns")
        return cls(mean, whiten, rank, steps, require(arrays, "likelihoods", np.float64, (None,), finite=False))


def _load_step(arrays: Mapping[str, NDArray[Any]], start: str, rank: int) -> Step:
    """One step from a file, of r = rank columns."""

    def load(name: str, *shape: int | None) -> NDArray[Any]:
        return require(arrays, start + name, (np.float32, np.float64), shape)

    half = rank // 2
    hidden = load("first", half, None).shape[1]
    shapes = {
        "weight": (rank, rank),
        "offset": (rank,),
        "log_det": (1,),
        "first": (half, hidden),
        "first_bias": (hidden,),
        "second": (hidden, hidden),
        "second_bias": (hidden,),
        "third": (hidden, 2 * (rank - half)),
        "third_bias": (2 * (rank - half),),
    }
    return Step(**{name: load(name, *shape) for name, shape in shapes.items()})
