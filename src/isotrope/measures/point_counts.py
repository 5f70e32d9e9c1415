"""How evenly the points fill the cells of a quantizer: patchiness, variance of the odds, divergence from uniform."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import entr, rel_entr

from isotrope.errors import Undefined
from isotrope.measures.record import add_cells_measures
from isotrope.quantization.cells import Cells

_BLIND = (
    "Where the full cells are, and how large. It depends on n and on the training: compare at equal n. "
    "The interval is about its value at this n, given the trained codebooks."
)


def _patchiness(c: Cells) -> float:
    """(m + V/m − 1)/m with m = n/k, per codebook, averaged."""
    k = c.shares.shape[1]
    return float(np.mean(k * (c.shares * (c.n * c.shares - 1.0)).sum(axis=1) / c.n))


def _compute_published_patchiness(c: Cells) -> float:
    """With the mean count taken M times too large, as the authors' code does."""
    codebooks, k = c.shares.shape
    m = codebooks * c.n / k
    return float(np.mean((m + c.quantized.counts.var(axis=1) / m - 1.0) / m))


add_cells_measures(
    "point_patchiness",
    _patchiness,
    title="Point patchiness",
    says="How crowded a point's own cell is, over the average cell: 1 for points strewn at random, higher for patches.",
    range=lambda n, d, size, **_: (1.0 - size / max(n, size), size - size / max(n, size)),
    formula="per codebook (m + V/m − 1)/m, m = n/k, V population variance of the counts; averaged over codebooks",
    paper="Marbut, Chandler and Wheeler (latent geometry), Eq. 3; Wade et al. 2018",
    blind=_BLIND,
    wrong="The authors' code takes m M times too large (variant published): affine in the definition for a fixed n.",
    variants={"published": _compute_published_patchiness},
)


def _odds_variance(c: Cells, ddof: int = 1) -> float:
    """Variance of the odds (k − 1)c/(1 − c), per codebook, averaged."""
    if (c.shares == 1.0).any():
        return math.inf
    odds = (c.shares.shape[1] - 1) * c.shares / (1.0 - c.shares)
    return float(np.mean(odds.var(axis=1, ddof=ddof)))


add_cells_measures(
    "point_count_variance",
    _odds_variance,
    title="Variance of the cells' odds",
    says="How unequally the cells are filled, as variance of their odds: 0 all alike.",
    range=(0.0, math.inf),
    formula="variance (ddof 1) of the odds (k−1)c/(1−c), c the cells' shares; averaged over codebooks",
    paper="Marbut, Chandler and Wheeler (latent geometry), Eq. 13",
    blind=_BLIND + " A single nearly full cell decides it.",
    wrong="The authors' code divides by k, not by k − 1 (variant published).",
    variants={"published": lambda c: _odds_variance(c, ddof=0)},
)


def _divergence(c: Cells) -> float:
    """ln k − H(c), per codebook, averaged."""
    shares = c.shares
    return max(0.0, float(np.mean(math.log(shares.shape[1]) - entr(shares).sum(axis=1))))


def _compute_published_divergence(c: Cells) -> float:
    """Against the histogram of as many points drawn at random, as the authors' code does."""
    shares = c.shares
    codebooks, k = shares.shape
    drawn = np.random.default_rng(c.quantized.seed).multinomial(c.n, np.full(k, 1.0 / k), size=codebooks) / c.n
    if ((drawn == 0) & (shares > 0)).any():
        raise Undefined("a cell of the random histogram is empty, so the published divergence is infinite")
    return float(np.mean(rel_entr(shares, drawn).sum(axis=1)))


def _compute_odds_divergence(c: Cells) -> float:
    """With p(O) read as the odds over their sum, per codebook, averaged; ln k where one cell holds all points."""
    k = c.shares.shape[1]
    full = c.shares == 1.0
    odds = np.where(full.any(axis=1, keepdims=True), full, c.shares / np.where(full, 1.0, 1.0 - c.shares))
    shares = odds / odds.sum(axis=1, keepdims=True)
    return max(0.0, float(np.mean(math.log(k) - entr(shares).sum(axis=1))))


add_cells_measures(
    "point_count_kl",
    _divergence,
    title="Divergence of the cells from uniform",
    says="How far the filling of the cells is from even, in nats: 0 all alike, ln k all points in one cell.",
    range=lambda n, d, size, **_: (0.0, math.log(size)),
    formula="KL(c ‖ uniform) = ln k − H(c), averaged over codebooks",
    paper="Marbut, Chandler and Wheeler (latent geometry), Eq. 14",
    blind=_BLIND,
    wrong=(
        "Eq. 14 is of p(O), the distribution of the odds: here of the cells' shares, as in the authors' code; the "
        "variant odds takes the odds over their sum. Their code compares with a random histogram instead of the "
        "uniform law (variant published)."
    ),
    variants={"published": _compute_published_divergence, "odds": _compute_odds_divergence},
)
