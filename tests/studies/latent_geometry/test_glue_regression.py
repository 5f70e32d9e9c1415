"""Regressions against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.regression import compute_skill, correlate, fit

RNG = np.random.default_rng(0)
MODELS = pd.DataFrame(
    {"eee": RNG.normal(size=30), "vrm": RNG.normal(size=30), "architecture": ["RoBERTa", "BERT-base"] * 15}
)
MODELS["glue"] = 0.5 + 0.2 * MODELS["eee"] + 0.1 * RNG.normal(size=30)


def test_prediction_interval_of_a_line() -> None:
    x, y, new = MODELS["eee"].to_numpy(), MODELS["glue"].to_numpy(), 1.7
    low, high = fit(MODELS, ["eee"]).interval(pd.DataFrame({"eee": [new]}))
    line = stats.linregress(x, y)
    s = math.sqrt(np.sum((y - line.intercept - line.slope * x) ** 2) / 28)
    reach = stats.t.ppf(0.975, 28) * s * math.sqrt(1 + 1 / 30 + (new - x.mean()) ** 2 / np.sum((x - x.mean()) ** 2))
    assert (low[0], high[0]) == pytest.approx(
        (line.intercept + line.slope * new - reach, line.intercept + line.slope * new + reach)
    )


def test_powers_products_and_missing_values() -> None:
    frame = MODELS.copy()
    frame["glue"] = 1 + frame["eee"] ** 2 - 3 * frame["eee"] * frame["vrm"] + 2 * (frame["architecture"] == "RoBERTa")
    frame.loc[0, "vrm"] = np.nan
    found = fit(frame, ["eee^2", "eee*vrm", "architecture"])
    assert found.n == 29
    assert found.r2 == pytest.approx(1)
    assert found.coefficients[1:3] == pytest.approx([1, -3])
    assert compute_skill(found, frame.dropna())["mse"] == pytest.approx(0, abs=1e-20)


def test_pearson_is_that_of_numpy() -> None:
    found = correlate(MODELS, "eee")
    assert found["r"] == pytest.approx(np.corrcoef(MODELS["eee"], MODELS["glue"])[0, 1])
    assert found["low"] < found["r"] < found["high"]
    assert math.isnan(correlate(MODELS.head(3), "eee")["r"])


def test_too_few_models_are_refused() -> None:
    with pytest.raises(InputError, match="more than 2 models"):
        fit(MODELS.head(2), ["eee"])
