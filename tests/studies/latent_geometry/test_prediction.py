"""Predictions: the quantizer of the calibration, bounds, and a regression that cross-validation chooses."""

from __future__ import annotations

import math
import sys

import faiss
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from test_published_models import FOLDER

from isotrope.measures import get
from isotrope.quantization import quantize
from isotrope.quantization.faiss_reference import choose_engine
from isotrope.studies.latent_geometry.measures import compute_measures, prepare_space
from isotrope.studies.latent_geometry.model_selection import choose_design, cross_validate, list_designs
from isotrope.studies.latent_geometry.prediction import predict
from isotrope.studies.latent_geometry.published import TABLE_2, read_models
from isotrope.studies.latent_geometry.regression import split_models
from isotrope.version import __version__
from testkit.clustered import clustered


@pytest.fixture(scope="module")
def models() -> pd.DataFrame:
    if not FOLDER.is_dir():
        pytest.skip(f"there is no {FOLDER}; set ISOTROPE_DATA to the folder of the data sets.")
    return read_models(FOLDER)


def test_measures_are_those_of_the_quantizer_of_faiss() -> None:
    """Reconstruction by faiss itself: the summed squared error, skew and interquartile range of Eqs. 4, 5 and 15."""
    rows = clustered(1200, 16)
    space = prepare_space(rows, seed=3)
    assert space.quantizer == f"faiss {faiss.__version__}"
    found = compute_measures(space)
    direct = faiss.LocalSearchQuantizer(16, 4, 8)
    direct.random_seed = 3
    direct.train(rows)
    decoded = direct.decode(direct.compute_codes(rows)).astype(np.float64)
    error = np.linalg.norm(rows - decoded, axis=1)
    assert found["reconstruction_error_additive"] == pytest.approx((error**2).sum() / (rows**2.0).sum(), rel=1e-4)
    low, high = np.percentile(error / error.max(), [25, 75])
    assert found["reconstruction_iqr_additive"] == pytest.approx(high - low, rel=1e-3)


def test_the_engines_differ_and_scans_keep_our_own() -> None:
    rows = clustered(1200, 16)
    own = quantize(rows, seed=0)
    errors = own.errors(rows)
    ours = (errors**2).sum() / (rows**2.0).sum()
    assert get("reconstruction_error_additive")(rows) == pytest.approx(ours, rel=1e-6)
    assert compute_measures(prepare_space(rows))["reconstruction_error_additive"] != pytest.approx(ours, rel=1e-3)


def test_without_faiss_the_shift_is_stated(models: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    assert choose_engine() == ("own", f"isotrope {__version__}")
    known = split_models(models)[0].iloc[3]
    found = predict("known", None, {n: known[n] for n in TABLE_2}, models, rows=116_667)
    assert found.quantizer == f"isotrope {__version__}"
    assert "0.195 to 0.223 instead of 0.153 to 0.167" in found.warnings[0]


@pytest.mark.parametrize("terms", [(), ("eee",), ("eee", "eee^2"), ("eee", "architecture")])
def test_cross_validation_by_a_loop(models: pd.DataFrame, terms: tuple[str, ...]) -> None:
    perturbed, _ = split_models(models)
    errors = []
    for name in ("BERT-small", "BERT-base", "RoBERTa"):
        seen, new = perturbed[perturbed["architecture"] != name], perturbed[perturbed["architecture"] == name]
        if not terms:
            expected = np.full(len(new), seen["glue"].mean())
        else:
            x, x_new = ([f["eee"] ** (power + 1) for power in range(1 + ("eee^2" in terms))] for f in (seen, new))
            if "architecture" in terms:  # two are left; a new one is half of each
                second = sorted(set(seen["architecture"]))[1]
                x, x_new = [*x, (seen["architecture"] == second) * 1.0], [*x_new, np.full(len(new), 0.5)]
            fitted = LinearRegression().fit(np.column_stack(x), seen["glue"])
            expected = fitted.predict(np.column_stack(x_new))
        errors.append(np.mean((new["glue"].to_numpy() - expected) ** 2))
    assert cross_validate(perturbed, terms) == pytest.approx(math.sqrt(np.mean(errors)))


def test_the_design_that_made_the_data_is_chosen() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"eee": rng.uniform(-1, 1, 90), "architecture": ["a", "b", "c"] * 30})
    noise = 0.01 * rng.normal(size=90)
    curved = frame.assign(glue=0.5 + 0.3 * frame["eee"] ** 2 + noise)
    assert "eee^2" in choose_design(curved, "eee").terms
    # The score follows the measure between architectures, and goes the other way within each.
    shifted = frame.assign(eee=frame["eee"] + frame["architecture"].map({"a": 0.0, "b": 5.0, "c": 10.0}))
    between = shifted.assign(glue=0.03 * shifted["eee"] - 0.1 * frame["eee"] + noise)
    errors = {name: cross_validate(between, terms) for name, terms in list_designs("eee").items()}
    assert choose_design(between, "eee").name == min(errors, key=lambda name: errors[name]) == "eee"
    alone = curved.assign(architecture="a")
    assert math.isnan(cross_validate(alone, ("eee",)))
    assert choose_design(alone, "eee").name == "eee"


def test_a_prediction_is_within_bounds_or_not_there(models: pd.DataFrame) -> None:
    perturbed, _ = split_models(models)
    known = perturbed[perturbed["architecture"] == "RoBERTa"].iloc[3]
    inside = predict("known", "RoBERTa", {n: known[n] for n in TABLE_2}, models, rows=116_667)
    assert all(p.inside for p in inside.predictions)
    assert not inside.warnings
    assert all(0 <= p.low <= p.glue <= p.high <= 1 for p in inside.predictions)
    assert inside.choice == inside.predictions[0]
    errors = [p.cross_error for p in inside.predictions]
    assert errors == sorted(errors)
    assert inside.guess_cross_error == pytest.approx(cross_validate(perturbed, ()))


def test_a_prediction_and_its_interval_are_cut_to_0_and_1(models: pd.DataFrame) -> None:
    perturbed, _ = split_models(models)
    highest = perturbed.loc[perturbed["glue"].idxmax()]
    values = {name: highest[name] for name in TABLE_2}
    for factor, shift in ((1.15, 0.0), (1.0, -0.36)):  # scores of up to 0.95, and from 0 on
        scaled = models.assign(glue=factor * models["glue"] + shift)
        found = predict("edge", "RoBERTa", values, scaled, rows=116_667)
        assert all(0 <= p.low <= p.glue <= p.high <= 1 for p in found.predictions if p.inside)
        ends = [p.high == 1 if factor > 1 else p.low == 0 for p in found.predictions if p.inside]
        assert any(ends)


def test_outside_what_was_seen_there_is_no_number(models: pd.DataFrame) -> None:
    perturbed, _ = split_models(models)
    far = predict("far", None, {n: perturbed[n].max() + 1 for n in TABLE_2}, models, rows=20)
    assert not any(p.inside for p in far.predictions)
    assert all(math.isnan(p.glue) and math.isnan(p.low) and math.isnan(p.high) for p in far.predictions)
    assert far.choice is None
    assert far.to_dict()["predictions"][0]["glue"] is None
    assert "20 tokens" in far.warnings[0]
    assert "none of BERT-small" in far.warnings[1]
