"""Whether layers that drift further from the origin are also the less isotropic ones."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures.record import measure

Vector = NDArray[np.float64]

#: Up to this many layers all orders are tried; beyond, a fixed number of seeded random ones.
_ALL_ORDERS_UP_TO = 8
_RANDOM_ORDERS = 20_000


class LayerReadings(NamedTuple):
    """Drift norm and mean cosine of each layer of one model, (layers,) each."""

    drift_norm: Vector
    mean_cosine: Vector


def _check_layers(r: LayerReadings) -> LayerReadings:
    keep = np.isfinite(r.drift_norm) & np.isfinite(r.mean_cosine)
    drift, cosine = np.asarray(r.drift_norm)[keep], np.asarray(r.mean_cosine)[keep]
    if len(drift) < 3:
        raise Undefined(f"a correlation over layers needs at least three layers, found {len(drift)}")
    if any(np.ptp(values) <= 1e-12 * np.abs(values).max() for values in (drift, cosine)):
        raise Undefined("all layers have the same value, so their correlation is undefined")
    return LayerReadings(drift, cosine)


def _coefficient(x: Vector, y: Vector) -> float:
    dx, dy = x - x.mean(), y - y.mean()
    return float(dx @ dy / math.sqrt(float(dx @ dx) * float(dy @ dy)))


def _permutation_p(x: Vector, y: Vector) -> float:
    """Two-sided: the share of orders of y whose correlation with x is at least as strong."""
    dx = (x - x.mean()) / np.linalg.norm(x - x.mean())
    dy = (y - y.mean()) / np.linalg.norm(y - y.mean())
    observed = abs(float(dx @ dy)) - 1e-12
    if len(x) <= _ALL_ORDERS_UP_TO:
        orders = np.array(list(permutations(range(len(x)))))
        return float(np.mean(np.abs(dy[orders] @ dx) >= observed))
    rng = np.random.default_rng(0)
    orders = rng.permuted(np.tile(np.arange(len(x)), (_RANDOM_ORDERS, 1)), axis=1)
    hits = int((np.abs(dy[orders] @ dx) >= observed).sum())
    return (hits + 1) / (_RANDOM_ORDERS + 1)  # the observed order is one of the orders


def _ranks(r: LayerReadings) -> LayerReadings:
    r = _check_layers(r)
    return LayerReadings(stats.rankdata(r.drift_norm), stats.rankdata(r.mean_cosine))


_FORMULA = "correlation over layers of drift_norm with mean_cosine; p: share of orders of the layers as strong"
_COEFFICIENT = "How closely mean cosine follows drift over the layers: 1 rises with it, −1 falls, 0 neither."
_P = "How often layers in random order would agree as strongly; describes, does not prove."
_P_ASYMPTOTIC = "The same p by the usual formula, which is wrong for few layers."


def _add_family(
    name: str, title: str, layers: Callable[[LayerReadings], LayerReadings], test: Callable[..., Any], wrong: str
) -> None:
    """Register a correlation, its p over orders of the layers, and its p by the usual formula.

    Args:
        name: Of the correlation.
        title: What it is called.
        layers: What is correlated: the values of the layers, or their ranks.
        test: The function of scipy with the usual formula.
        wrong: What is wrong with that.
    """

    def add(
        suffix: str, titled: str, says: str, low: float, function: Callable[[LayerReadings], float], wrong: str = ""
    ) -> None:
        measure(
            "layers",
            name=f"drift_correlation_{name}{suffix}",
            title=f"Drift and cosine, {title}{titled}",
            says=says,
            range=(low, 1.0),
            estimate=False,
            across=LayerReadings._fields,
            formula=_FORMULA,
            paper="Godey et al. 2023 (anisotropy), Figs. 5 and 11",
            blind=(
                "Layers are not exchangeable: independent random walks of 13 layers look significant 36 times in 100, "
                "so p describes and proves nothing."
            ),
            wrong=wrong,
        )(function)

    add("", "", _COEFFICIENT, -1.0, lambda r: _coefficient(*layers(r)))
    add("_p", ", permutation p", _P, 0.0, lambda r: _permutation_p(*layers(r)))
    add("_p_asymptotic", ", asymptotic p", _P_ASYMPTOTIC, 0.0, lambda r: float(test(*_check_layers(r))[1]), wrong)


_add_family(
    "spearman",
    "rank correlation",
    _ranks,
    stats.spearmanr,
    "Itself: for the perfect ranks of seven layers it is 0, where the permutation p is 4e-4.",
)
_add_family("pearson", "linear correlation", _check_layers, stats.pearsonr, "")
