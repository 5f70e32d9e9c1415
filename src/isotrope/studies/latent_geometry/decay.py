"""How the score falls with the share of noise: exponentially, as the paper says, or along a line (Fig. 1)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from isotrope.errors import InputError
from isotrope.studies.result import Claim
from isotrope.studies.verdict import judge_interval, seeds_interval

Vector = NDArray[np.float64]

#: Levels that a comparison of both curves needs, one more than an exponential through all but one would pass through.
FEWEST_LEVELS = 5

#: Rates that are tried, and how many of them before the best is refined.
_RATES, _STEPS = (1e-2, 1e4), 200


@dataclass(frozen=True)
class Decay:
    """An exponential fall floor + height · exp(−rate · level), or a line where the rate is 0.

    Args:
        floor: what is left at full noise; for a line its value at level 0.
        height: what is lost; for a line its slope.
        rate: how fast; 0 for a line.
        r2: the share of the variance that the fit explains.
    """

    floor: float
    height: float
    rate: float
    r2: float

    def predict(self, levels: ArrayLike) -> Vector:
        """The expected scores."""
        x = np.asarray(levels, dtype=np.float64)
        return np.asarray(self.floor + self.height * (np.exp(-self.rate * x) if self.rate else x))


def fit_decay(levels: ArrayLike, scores: ArrayLike) -> Decay:
    """Fit an exponential fall by least squares; floor and height have a closed form for each rate.

    >>> x = np.array([0.0, 0.1, 0.2, 0.5, 1.0])
    >>> found = fit_decay(x, 0.4 + 0.3 * np.exp(-12 * x))
    >>> round(found.floor, 4), round(found.height, 4), round(found.rate, 3)
    (0.4, 0.3, 12.0)
    """
    x, y = np.asarray(levels, dtype=np.float64), np.asarray(scores, dtype=np.float64)

    def lose(log_rate: float) -> float:
        return -_fit_straight(np.exp(-math.exp(log_rate) * x), y)[2]

    grid = np.linspace(math.log(_RATES[0]), math.log(_RATES[1]), _STEPS)
    falls = np.exp(-np.exp(grid)[:, None] * x)
    falls -= falls.mean(axis=1, keepdims=True)
    shares = (falls @ (y - y.mean())) ** 2 / np.maximum((falls**2).sum(axis=1), np.finfo(np.float64).tiny)
    best, step = grid[int(np.argmax(shares))], grid[1] - grid[0]
    found = optimize.minimize_scalar(lose, bounds=(best - step, best + step), method="bounded", options={"xatol": 1e-9})
    rate = math.exp(float(found.x))
    floor, height, r2 = _fit_straight(np.exp(-rate * x), y)
    return Decay(floor, height, rate, r2)


def fit_line(levels: ArrayLike, scores: ArrayLike) -> Decay:
    """Fit a line by least squares."""
    start, slope, r2 = _fit_straight(np.asarray(levels, dtype=np.float64), np.asarray(scores, dtype=np.float64))
    return Decay(start, slope, 0.0, r2)


def _fit_straight(x: Vector, y: Vector) -> tuple[float, float, float]:
    """Intercept, slope and R² of a line."""
    dx, dy = x - x.mean(), y - y.mean()
    xx, yy, xy = float(dx @ dx), float(dy @ dy), float(dx @ dy)
    if not xx or not yy:
        return float(y.mean()), 0.0, 0.0
    return float(y.mean() - xy / xx * x.mean()), xy / xx, xy * xy / (xx * yy)


def compute_errors(levels: ArrayLike, scores: ArrayLike) -> tuple[float, float]:
    """Root mean squared errors of the exponential and of the line on levels that are left out in turn."""
    x, y = np.asarray(levels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if len(np.unique(x)) < FEWEST_LEVELS:
        raise InputError(f"both curves are compared on {FEWEST_LEVELS} levels or more, got {len(np.unique(x))}.")
    residuals = np.empty((2, len(x)))
    for level in np.unique(x):
        out = x == level
        for row, fit in enumerate((fit_decay, fit_line)):
            residuals[row, out] = y[out] - fit(x[~out], y[~out]).predict(x[out])
    exponential, line = np.sqrt(np.mean(residuals**2, axis=1))
    return float(exponential), float(line)


def compare_curves(scored: pd.DataFrame) -> pd.DataFrame:
    """Both curves for all models together and for each seed; empty for too few levels.

    Args:
        scored: a row for each noisy model, with the columns `level`, `seed` and `glue`.
    """
    usable = scored.dropna(subset=["level", "glue"])
    groups: dict[str, pd.DataFrame] = {"all": usable}
    groups |= {f"{seed:g}": group for seed, group in usable.groupby("seed")}
    rows = []
    for name, group in groups.items():
        if group["level"].nunique() < FEWEST_LEVELS:
            continue
        x, y = group["level"].to_numpy(float), group["glue"].to_numpy(float)
        curve, line, errors = fit_decay(x, y), fit_line(x, y), compute_errors(x, y)
        row: dict[str, Any] = {"seed": name, "n": len(x), "floor": curve.floor, "height": curve.height}
        row |= {"rate": curve.rate, "r2": curve.r2, "line_r2": line.r2, "error": errors[0], "line_error": errors[1]}
        rows.append(row)
    columns = ["seed", "n", "floor", "height", "rate", "r2", "line_r2", "error", "line_error"]
    frame: pd.DataFrame = pd.DataFrame(rows, columns=columns)
    return frame


def judge_curves(model: str, curves: pd.DataFrame) -> list[Claim]:
    """Whether the exponential predicts levels that are left out better than the line, over seeds.

    Args:
        model: the name of the model.
        curves: see `compare_curves`.
    """
    if curves.empty:
        return []
    whole, seeds = curves.iloc[0], curves.iloc[1:]
    gains = seeds["line_error"] - seeds["error"]
    low, high = seeds_interval(gains)
    text = (
        f"the mean score of {model} falls as {whole['floor']:.3f} + {whole['height']:.3f} exp(−{whole['rate']:.1f} α), "
        f"R² {whole['r2']:.3f}, a line has {whole['line_r2']:.3f}; on levels that are left out the exponential is off "
        f"by {100 * whole['error']:.1f} points, the line by {100 * whole['line_error']:.1f}. The paper: it falls "
        "exponentially."
    )
    evidence = (
        f"error of the line minus that of the exponential, {len(seeds)} seeds: 95 % interval {low:.3f} to {high:.3f}"
        if len(seeds) > 1
        else "one seed"
    )
    return [
        Claim(judge_interval(low, high), text, "Fig. 1", float(whole["r2"]), math.nan, evidence=evidence, model=model)
    ]
