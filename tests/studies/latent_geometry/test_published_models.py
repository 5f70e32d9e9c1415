"""The authors' measured models give their Table 2, but for three misprints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.prediction import predict
from isotrope.studies.latent_geometry.published import (
    MISPRINTS,
    TABLE_2,
    read_models,
    repeat_regressions,
    repeat_table_2,
)
from isotrope.studies.latent_geometry.regression import split_models
from testkit.paths import SHARED_DATA

DATA = SHARED_DATA
FOLDER = DATA / "latent_geometry"


@pytest.fixture(scope="module")
def models() -> pd.DataFrame:
    if not FOLDER.is_dir():
        pytest.skip(f"there is no {FOLDER}; set ISOTROPE_DATA to the folder of the data sets.")
    return read_models(FOLDER)


def test_168_models_and_13_others(models: pd.DataFrame) -> None:
    perturbed, others = split_models(models)
    assert perturbed["architecture"].value_counts().to_dict() == {"BERT-small": 125, "RoBERTa": 36, "BERT-base": 7}
    assert len(others) == 13
    assert perturbed["alpha"].between(0, 1).all()


def test_table_2_within_a_thousandth_but_for_three_misprints(models: pd.DataFrame) -> None:
    (table,), claims, _ = repeat_table_2(models)
    rows = table.frame.set_index("measure")
    for name, (_, printed) in TABLE_2.items():
        for column in ("bert_small", "roberta", "mse"):
            near = abs(rows.loc[name, column] - getattr(printed, column)) <= 0.0010001
            assert near == ((name, column) not in MISPRINTS), (name, column)
    assert rows.loc["reconstruction_skew_additive", "roberta"] == pytest.approx(0.574, abs=0.001)
    assert rows.loc["point_count_kl_product", "roberta"] == pytest.approx(-0.496, abs=0.001)
    assert rows.loc["eee", "mse"] == pytest.approx(0.023, abs=0.001)
    assert [claim.outcome for claim in claims] == ["agrees", "misprint", "misprint", "misprint"]


def test_regressions_are_those_of_scikit_learn(models: pd.DataFrame) -> None:
    tables, claims, _ = repeat_regressions(models)
    ours = tables[0].frame.set_index("regression")
    perturbed, others = split_models(models)
    name = "point_patchiness_additive"
    kinds = pd.get_dummies(pd.concat([perturbed, others])["architecture"]).to_numpy(float)
    plain, others_plain = perturbed[[name]].to_numpy(), others[[name]].to_numpy()
    both = np.hstack([plain, kinds[: len(perturbed)]]), np.hstack([others_plain, kinds[len(perturbed) :]])
    for label, (x, new) in {name: (plain, others_plain), f"{name} + architecture": both}.items():
        theirs = LinearRegression().fit(x, perturbed["glue"])
        assert ours.loc[label, "r2"] == pytest.approx(theirs.score(x, perturbed["glue"]), abs=1e-9)
        assert ours.loc[label, "mse"] == pytest.approx(np.mean((theirs.predict(new) - others["glue"]) ** 2), abs=1e-9)
    assert ours.loc[name, "r2"] == pytest.approx(0.317, abs=0.001)
    assert ours.loc[f"{name} + architecture", "r2"] == pytest.approx(0.506, abs=0.001)
    assert {claim.outcome for claim in claims if claim.where == "Fig. 4"} == {"agrees"}


def test_no_measure_predicts_the_others(models: pd.DataFrame) -> None:
    tables, claims, _ = repeat_regressions(models)
    guesses = tables[1].frame.set_index("guess")["mse"]
    single = tables[0].frame[tables[0].frame["regression"].isin([f"{name} + architecture" for name in TABLE_2])]
    assert (single["mse"] > guesses["their own mean"]).all()
    # Point patchiness is worse than the training mean only with the architecture, the paper's regression.
    by = tables[0].frame.set_index("regression")["mse"]
    name = "point_patchiness_additive"
    assert by[f"{name} + architecture"] == pytest.approx(0.0885, abs=5e-5)
    assert by[name] == pytest.approx(0.0325, abs=5e-5)
    assert by[f"{name} + square + architecture"] == pytest.approx(0.0265, abs=5e-5)
    assert guesses["training mean"] == pytest.approx(0.0456, abs=5e-5)
    (claim,) = (claim for claim in claims if claim.where == "Table 2")
    assert "alone it has 0.032, with its square and the architecture 0.026" in claim.text


def test_a_prediction_warns_outside_what_it_has_seen(models: pd.DataFrame) -> None:
    perturbed, _ = split_models(models)
    known = perturbed[perturbed["architecture"] == "RoBERTa"].iloc[3]
    inside = predict("known", "RoBERTa", {n: known[n] for n in TABLE_2}, models, rows=116_667)
    assert all(p.inside for p in inside.predictions)
    assert not inside.warnings
    assert all(p.low < p.glue < p.high for p in inside.predictions)
    far = predict("far", None, {n: perturbed[n].max() + 1 for n in TABLE_2}, models, rows=20)
    assert not any(p.inside for p in far.predictions)
    assert "none of BERT-small" in " ".join(far.warnings)
    assert "20 tokens" in far.warnings[0]


def test_other_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="bert_small_metrics"):
        read_models(tmp_path)
