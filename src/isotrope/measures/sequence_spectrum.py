"""The spectrum of each sequence's token matrix, averaged over sequences."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.measures.spectrum import skewness
from isotrope.statistics import SequenceSpectra

_YAN = "Yan et al. 2022 (SoftDecay)"
_BLIND = (
    "Depends on the length T (rank one gives (T − 2)/√(T − 1)): compare at equal length. "
    "Taken on the sampled sequences."
)
_POOLED = "published: all sequences pooled, divided by the largest of all, the smallest of each dropped"

_WRONG = "A truncated decomposition of T − 1 values, as the paper's code has it, drops the smallest of every sequence."

#: Where the mean cumulative curve is evaluated.
GRID: NDArray[np.float64] = np.linspace(0.0, 1.0, 1001)

Vector = NDArray[np.float64]


class _Normalised(NamedTuple):
    """All sequences' singular values, each divided by its sequence's largest, and where each sequence lies."""

    values: Vector
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def mean(self, values: Vector) -> Vector:
        """Mean of values, one per singular value, over each sequence, (m,)."""
        return np.asarray(np.add.reduceat(values, self.starts) / self.sizes)


def _normalise(s: SequenceSpectra) -> _Normalised:
    if len(s) == 0:
        raise Undefined("no sequence has two tokens or more")
    starts, sizes = s.starts[:-1], np.diff(s.starts)
    return _Normalised(s.values / np.repeat(s.values[starts], sizes), starts, sizes)


def _pool(s: SequenceSpectra) -> Vector:
    """The authors' published way: all values of all sequences but each one's smallest, over the largest."""
    if len(s) == 0:
        raise Undefined("no sequence has two tokens or more")
    kept = np.ones(len(s.values), dtype=bool)
    kept[s.starts[1:] - 1] = False
    if not kept.any():
        raise Undefined("no sequence has a singular value beside its smallest")
    return np.asarray(s.values[kept] / s.values.max())


def mean_cdf(s: SequenceSpectra) -> Vector:
    """Mean over sequences of the share of normalised singular values at or below each point of GRID, (1001,)."""
    x = _normalise(s)
    order = np.argsort(x.values)
    share = np.cumsum(np.repeat(1.0 / (x.sizes * len(s)), x.sizes)[order])
    return np.append(0.0, share)[np.searchsorted(x.values[order], GRID, side="right")]


def find_reach(cdf: Vector, level: float = 0.8) -> float:
    """Where a cumulative curve on GRID reaches a level, with a straight line between grid points."""
    i = int(np.argmax(cdf >= level))
    if i == 0:
        return 0.0
    return float(np.interp(level, cdf[i - 1 : i + 1], GRID[i - 1 : i + 1]))


@measure(
    "spectra",
    title="Sequence spectral skewness",
    says="How far few directions stand out within one sequence's tokens.",
    range=lambda n, d: (-(max(d, 2) ** 0.5), max(d, 2) ** 0.5),
    better="lower",
    formula=f"mean over sequences of the skewness of σ/σ_1 of its T × d matrix; {_POOLED}",
    paper=f"{_YAN}, Figs. 2, 3 and 5",
    blind=_BLIND,
    wrong=_WRONG,
    variants={"published": lambda s: skewness(_pool(s))},
)
def sequence_spectral_skewness(s: SequenceSpectra) -> float:
    """Skewness of each sequence's normalised singular values, averaged."""
    x = _normalise(s)
    centred = x.values - np.repeat(x.mean(x.values), x.sizes)
    second, third = x.mean(centred**2), x.mean(centred**3)
    uneven = second > 1e-20
    if not uneven.any():
        raise Undefined("all singular values of every sequence are equal, so their skewness is undefined")
    return float(np.mean(third[uneven] / second[uneven] ** 1.5))


@measure(
    "spectra",
    title="Sequence spectral median",
    says="Strength of the middle direction within one sequence relative to its strongest.",
    range=(0.0, 1.0),
    better="higher",
    formula=f"mean over sequences of the median of σ/σ_1; {_POOLED}",
    paper=f"{_YAN}, Figs. 2, 3 and 5",
    blind=_BLIND,
    wrong=_WRONG,
    variants={"published": lambda s: float(np.median(_pool(s)))},
)
def sequence_spectral_median(s: SequenceSpectra) -> float:
    """Median of each sequence's normalised singular values, averaged."""
    x = _normalise(s)
    middle = x.values[x.starts + (x.sizes - 1) // 2] + x.values[x.starts + x.sizes // 2]
    return float(np.mean(middle)) / 2.0


@measure(
    "spectra",
    title="Where four fifths of a sequence's spectrum lie below",
    says="The strength below which four fifths of a sequence's directions lie: smaller means more have vanished.",
    range=(0.0, 1.0),
    better="higher",
    formula="x at which the mean cumulative curve of σ/σ_1 reaches 0.8: the paper's ΔL",
    paper=f"{_YAN}, Fig. 8",
    unsure_bias=True,
    blind=_BLIND,
    wrong=_WRONG,
)
def sequence_spectral_reach(s: SequenceSpectra) -> float:
    """Value at which the mean cumulative distribution of normalised singular values reaches 0.8."""
    return find_reach(mean_cdf(s))


@measure(
    "spectra",
    title="Vanished dimensions of a sequence",
    says="How many of a sequence's directions have less than a twentieth of the strongest one's strength, on average.",
    range=(0.0, float("inf")),
    better="lower",
    formula="mean over sequences of the number of σ_i/σ_1 < 0.05",
    paper=f"{_YAN}, section 3.1",
    blind=_BLIND,
)
def sequence_vanished_dimensions(s: SequenceSpectra, threshold: float = 0.05) -> float:
    """Number of singular values of a sequence below a share of the largest, averaged."""
    return float((_normalise(s).values < threshold).sum()) / len(s)
