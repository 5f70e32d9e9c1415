"""The shape of the singular values of the uncentred rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Moments

_YAN = "Yan et al. 2022 (SoftDecay)"


def singular_values(m: Moments) -> NDArray[np.float64]:
    """Singular values of the uncentred rows, (min(n, d),); undefined without rows."""
    if m.n < 1:
        raise Undefined("there are no rows")
    return m.singular_values


def skewness(values: NDArray[np.float64]) -> float:
    """Third standardised moment of values, (k,); undefined where they are all equal."""
    if len(values) < 2:
        raise Undefined("skewness needs at least two singular values")
    values = values / values.max()
    centred = values - values.mean()
    spread = float(np.mean(centred**2))
    if spread <= 1e-20:
        raise Undefined("all singular values are equal, so their skewness is undefined")
    return float(np.mean(centred**3) / spread**1.5)


@measure(
    "moments",
    name="explained_variance_1",
    title="Explained variance, top 1",
    says="Share of the rows' squared length that lies in the strongest direction (or the k strongest).",
    range=lambda n, d, k: (min(1.0, k / max(min(n, d), 1)), 1.0),
    better="lower",
    formula="EV_k = Σ_{i≤k} σ_i² / Σ σ_i², σ of the uncentred X",
    paper=f"{_YAN}, Eq. 5",
    slow_bias=True,
    blind="How the rest is spread; the mean counts as a direction.",
    wrong="The code of the paper's figures divides by the sum of the bottom k instead of all.",
    parameters={"k": 1},
    headline=6,
)
def explained_variance(m: Moments, k: int = 1) -> float:
    """Share of the squared Frobenius norm in the top k singular directions.

    >>> explained_variance(np.array([[2.0, 0.0], [0.0, 1.0]]))
    0.8
    """
    squares = singular_values(m) ** 2
    return float(squares[:k].sum() / squares.sum())


@measure(
    "moments",
    title="Spectral skewness",
    says="How far few strong directions stand out of many weak ones: large when a few carry nearly all.",
    range=lambda n, d: (-(float(max(min(n, d), 2)) ** 0.5), float(max(min(n, d), 2)) ** 0.5),
    better="lower",
    estimate=False,
    formula="third standardised moment of σ_i/σ_1",
    paper=f"{_YAN}, Fig. 2",
    wrong="The second moment, as the figure's caption says: what it shows is the third.",
    blind=(
        "Depends on how many singular values there are: compare at equal n and d. Of a nearly flat spectrum it shows "
        "the chance of the sample and not the space, so it has no interval."
    ),
    fine_spectrum=True,
)
def spectral_skewness(m: Moments) -> float:
    """Skewness of the normalised singular values."""
    return skewness(singular_values(m))


@measure(
    "moments",
    title="Spectral median",
    says="Strength of the middle direction relative to the strongest: near 0 when most directions have vanished.",
    range=(0.0, 1.0),
    better="higher",
    estimate=False,
    formula="median of σ_i/σ_1",
    paper=f"{_YAN}, Fig. 2",
    blind=(
        "All but two numbers of the spectrum. One eigenvalue among many moves by leaps, which leaving rows out does "
        "not show (true values were in 20 to 90 of 100 intervals), so it has no interval."
    ),
    fine_spectrum=True,
)
def spectral_median(m: Moments) -> float:
    """Median of the normalised singular values."""
    values = singular_values(m)
    return float(np.median(values) / values[0])


def _count_vanished(m: Moments, threshold: float) -> int:
    values = singular_values(m)
    return int((values < threshold * values[0]).sum())


@measure(
    "moments",
    title="Vanished dimensions",
    says="How many directions have less than a twentieth of the strongest one's strength.",
    range=lambda n, d: (0.0, float(d)),
    better="lower",
    estimate=False,
    formula="number of σ_i/σ_1 < C, C = 0.05: the paper's m − k",
    paper=f"{_YAN}, section 3.1",
    blind="A count with a sharp threshold: it has no interval, and with few rows weak directions look weaker.",
)
def vanished_dimensions(m: Moments, threshold: float = 0.05) -> float:
    """Number of singular values below a share of the largest."""
    return _count_vanished(m, threshold)


@measure(
    "moments",
    title="Kept dimensions",
    says="How many directions have at least a twentieth of the strongest one's strength.",
    range=lambda n, d: (1.0, float(min(n, d))),
    better="higher",
    estimate=False,
    formula="k = ⌈m·P(σ_i/σ_1 ≥ C)⌉, C = 0.05, m = min(n, d)",
    paper=f"{_YAN}, section 3.1",
    blind="As vanished_dimensions.",
)
def kept_dimensions(m: Moments, threshold: float = 0.05) -> float:
    """Number of singular values at or above a share of the largest."""
    return len(singular_values(m)) - _count_vanished(m, threshold)
