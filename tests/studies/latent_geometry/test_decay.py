"""The exponential fall of the score: the authors' BERT-small, made curves, and the verdict over seeds."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from test_published_models import FOLDER

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.decay import compare_curves, compute_errors, fit_decay, fit_line, judge_curves

LEVELS = np.array([0.0, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])


def fall(levels: np.ndarray, c: float, d: float, k: float) -> np.ndarray:
    return c + d * np.exp(-k * levels)


def make_scored(scores: list[np.ndarray]) -> pd.DataFrame:
    parts = [pd.DataFrame({"level": LEVELS, "seed": seed, "glue": glue}) for seed, glue in enumerate(scores)]
    return pd.concat(parts, ignore_index=True)


def test_the_authors_bert_small_falls_exponentially() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"there is no {FOLDER}; set ISOTROPE_DATA to the folder of the data sets.")
    table = pd.read_csv(FOLDER / "bert_small_metrics.csv").dropna(subset=["EEE"])
    x, y = table["alpha"].to_numpy() / 100, table["new_average"].to_numpy()
    theirs, _ = optimize.curve_fit(fall, x, y, p0=[0.4, 0.4, 10.0])
    ours = fit_decay(x, y)
    assert (ours.floor, ours.height, ours.rate) == pytest.approx(tuple(theirs), rel=1e-4)
    assert ours.floor == pytest.approx(0.386, abs=5e-4)
    assert ours.rate == pytest.approx(14.3, abs=0.05)
    assert ours.r2 == pytest.approx(0.987, abs=5e-4)
    assert fit_line(x, y).r2 == pytest.approx(0.465, abs=5e-4)
    seeds = table.iloc[:, 0].str.rpartition("_")[2].astype(int)
    curves = compare_curves(pd.DataFrame({"level": x, "glue": y, "seed": seeds}))
    assert list(curves["seed"]) == ["all", "1", "2", "3"]
    (claim,) = judge_curves("BERT-small", curves)
    assert claim.outcome == "agrees"


def test_errors_on_levels_left_out_by_a_loop() -> None:
    y = fall(LEVELS, 0.4, 0.3, 9.0) + 0.01 * np.cos(np.arange(7))
    squares = []
    for out in range(7):
        kept = np.arange(7) != out
        slope, start = np.polyfit(LEVELS[kept], y[kept], 1)
        squares.append((y[out] - start - slope * LEVELS[out]) ** 2)
    exponential, line = compute_errors(LEVELS, y)
    assert line == pytest.approx(np.sqrt(np.mean(squares)))
    assert exponential < line
    with pytest.raises(InputError, match="5 levels or more, got 4"):
        compute_errors(LEVELS[:4], y[:4])


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([fall(LEVELS, 0.4, 0.3, k) for k in (9.0, 10.0, 11.0)], "agrees"),
        ([0.8 - a * LEVELS + 0.02 * np.cos(9 * LEVELS) for a in (0.30, 0.31, 0.32)], "contradicts"),
        ([fall(LEVELS, 0.4, 0.3, 9.0), 0.8 - 0.3 * LEVELS + 0.02 * np.cos(9 * LEVELS)], "undecided"),
        ([fall(LEVELS, 0.4, 0.3, 9.0)], "undecided"),
    ],
    ids=["exponential", "line", "seeds differ", "one seed"],
)
def test_the_verdict_is_over_seeds(scores: list[np.ndarray], outcome: str) -> None:
    (claim,) = judge_curves("small", compare_curves(make_scored(scores)))
    assert claim.outcome == outcome


def test_few_levels_give_no_claim() -> None:
    few = make_scored([fall(LEVELS, 0.4, 0.3, 9.0)]).head(4)
    assert judge_curves("small", compare_curves(few)) == []
