"""The noise study: changed models measured, fine-tuned, correlated; and that a stopped one goes on."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import faiss
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_published_models import FOLDER

from isotrope.errors import InputError
from isotrope.finetuning import task_training as glue_training
from isotrope.finetuning.glue import evaluate_glue
from isotrope.sources.models.load import load
from isotrope.studies.latent_geometry import latent_geometry
from isotrope.studies.latent_geometry.changed_models import add_weight_noise, list_cases, sort_levels
from isotrope.studies.latent_geometry.initialisation import SCALES
from isotrope.studies.latent_geometry.measures import compute_measures, prepare_space
from isotrope.studies.latent_geometry.noise_results import compare_levels, compare_models
from isotrope.studies.latent_geometry.published import TABLE_2
from testkit.models import save_model, texts
from testkit.small_glue import write_task

SENTENCES = [text for text in texts(120, longest=12, seed=1) if len(text.split()) > 2]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not FOLDER.is_dir():
        pytest.skip(f"there is no {FOLDER}; set ISOTROPE_DATA to the folder of the data sets.")
    folder = tmp_path_factory.mktemp("data")
    (folder / "latent_geometry").symlink_to(FOLDER)
    for name in ("cola", "rte"):
        write_task(folder, name)
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "small", "bert"))


def asked(model: str, data: Path) -> dict[str, Any]:
    how = {"epochs": 1, "train_rows": 16, "learning_rate": 1e-3, "max_length": 24, "device": "cpu"}
    return {"models": [model], "text": SENTENCES, "data": data, "levels": [0.0, 0.2, 1.0], "seeds": 2, **how}


@pytest.mark.long
def test_the_whole_study_goes_on_where_it_stopped(
    model: str, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, trained = glue_training.train, list[tuple[str, str]]()

    def stopping(loaded: Any, task: Any, *rest: Any) -> Any:
        if len(trained) == 5:
            raise KeyboardInterrupt
        trained.append((loaded.name.removeprefix(model), task.task.name))
        return original(loaded, task, *rest)

    monkeypatch.setattr(glue_training, "train", stopping)
    with pytest.raises(KeyboardInterrupt):
        latent_geometry(output=tmp_path / "s", **asked(model, data))
    before = set(trained)
    trained.clear()
    monkeypatch.setattr(glue_training, "train", lambda *a: trained.append((a[0].name, a[1].task.name)) or original(*a))
    study = latent_geometry(output=tmp_path / "s", **asked(model, data), resume=True)
    scored = 2 * 3 + 2 + 2 + 3  # noise, shuffled and untrained, small noise, one block each
    assert len(before) == 5
    assert len(trained) == 2 * scored - 5
    every = study.table("small noise", "models")
    assert len(every) == scored + 2
    assert every["glue"].notna().sum() == scored
    assert set(every["kind"]) == {
        "weights", "weights, small noise", "one block", "rows", "shuffled embeddings", "untrained"
    }  # fmt: skip
    plain = every[(every["kind"] == "weights") & (every["level"] == 0)]
    assert plain["seed"].tolist() == [0, 1]
    assert plain["eee"].nunique() == 1
    assert np.allclose(every["glue"].dropna(), every[["score_cola", "score_rte"]].mean(axis=1).dropna())
    again = evaluate_glue(
        model=add_weight_noise(load(model, device="cpu"), 0.2, 1),
        data=data,
        tasks=["rte"],
        methods=[],
        seeds=1,
        seed=1,
        **{k: v for k, v in asked(model, data).items() if k in ("epochs", "train_rows", "learning_rate", "max_length")},
    )
    here = every[(every["kind"] == "weights") & (every["level"] == 0.2) & (every["seed"] == 1)]
    assert here["score_rte"].item() == again.runs[0].scores["accuracy"]
    found = study.table("own models", "correlations").set_index("measure")
    weights = every[every["kind"] == "weights"]
    for name in ("isoscore", "eee"):
        r = np.corrcoef(weights[name].astype(float), weights["glue"].astype(float))[0, 1]
        assert found.loc[name, "r"] == pytest.approx(r)
    assert set(study.table("own models", "matrix")["measure"]) == set(TABLE_2)
    assert len(study.table("own models", "residuals")) == len(weights)
    assert any(claim.where == "Fig. 5" for claim in study.claims)


@pytest.mark.long
def test_a_quick_study_without_tasks_only_measures(model: str, data: Path, tmp_path: Path) -> None:
    given = asked(model, data) | {"tasks": [], "quick": True, "sweep": ["2x16"], "initialisation": True}
    study = latent_geometry(output=tmp_path / "s", **given)
    swept = study.table("small sweep", "sweep")
    assert set(swept["quantizer"]) == {"additive", "product"}
    assert (swept["codebooks"] == 2).all()
    assert (study.table("small initialisation", "scales")["weights"] == "fresh").sum() == len(SCALES)
    volumes = study.table("small weights 0 seed 0", "volumes")
    assert list(volumes["quantizer"]) == ["additive", "product"]
    assert study.settings["quantizer"] == f"faiss {faiss.__version__}"
    every = study.table("small noise", "models")
    assert "glue" not in every
    assert every["n"].nunique() == 1
    assert len(study.table("sample", "sample")) == 10
    assert any("no model was fine-tuned" in claim.text for claim in study.claims)
    level = study.table("small noise", "with_level").set_index("measure")
    rows = every[every["kind"] == "weights"]
    assert level.loc["eee", "weights"] == pytest.approx(stats.spearmanr(rows["level"], rows["eee"]).statistic)


def test_the_time_is_told_before(model: str, data: Path, tmp_path: Path) -> None:
    said: list[str] = []

    def stop(text: str) -> None:
        said.append(text)
        if "fine-tuning" in text:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        latent_geometry(output=tmp_path / "s", **asked(model, data), say=stop)
    assert said[-1].startswith("fine-tuning on cola, rte will take about ")


@pytest.mark.long
def test_embeddings_of_another_model_are_tried(model: str, data: Path, tmp_path: Path) -> None:
    other = save_model(tmp_path / "other", "bert", seed=5)
    given = asked(model, data) | {"foreign": other, "levels": [0.0], "seeds": 1, "tasks": ["rte"]}
    study = latent_geometry(output=tmp_path / "s", **given, others=[f"{other}/"])
    every = study.table("small noise", "models")
    assert every["kind"].tolist() == ["weights", "shuffled embeddings", "foreign embeddings", "untrained"]
    assert every["glue"].notna().all()
    assert every["eee"].nunique() == 4
    assert set(every["quantizer"]) == {f"faiss {faiss.__version__}"}
    assert not any(str(tmp_path) in claim.text for claim in study.claims)
    checkpoint = study.table("other checkpoint seed 0", "measured")
    assert checkpoint["eee"].item() not in every["eee"].tolist()
    assert study.table("other checkpoint seed 0 glue", "scores")["glue"].notna().all()


def test_regressions_know_the_model_that_noise_was_added_to() -> None:
    """Two models, of which one scores 0.3 more at the same measures: with the architecture the fit is exact."""
    rng = np.random.default_rng(0)
    rows = []
    for model, more in (("one", 0.0), ("two", 0.3)):
        for number in range(8):
            kind = "weights" if number < 6 else "untrained"
            values = {name: rng.normal() for name in TABLE_2}
            glue = 0.4 + more + 0.1 * values["vrm"]
            rows.append(
                {"model": model, "architecture": model, "kind": kind, "level": 0.1, "seed": number, "glue": glue}
                | values
            )
    tables, *_ = compare_models(pd.DataFrame(rows))
    by = {table.name: table.frame for table in tables}
    fitted = by["regressions"].set_index("regression")
    assert fitted.loc["vrm + architecture", "r2"] == pytest.approx(1)
    assert fitted.loc["vrm + architecture", "mse"] == pytest.approx(0, abs=1e-20)
    assert fitted.loc["vrm", "r2"] < 0.9
    others = [row["glue"] for row in rows if row["kind"] == "untrained"]
    noise = [row["glue"] for row in rows if row["kind"] == "weights"]
    guess = np.mean((np.array(others) - np.mean(noise)) ** 2)
    assert fitted["training_mean_mse"].iloc[0] == pytest.approx(guess)
    few = compare_models(pd.DataFrame(rows[:4]))
    assert not few.tables
    assert "4 noisy models were scored" in few.claims[0].text


def make_noisy(scores: list[list[float]]) -> pd.DataFrame:
    """Noisy models of one, a list of scores for each seed; every measure falls with the share of noise."""
    rows = []
    for seed, by_level in enumerate(scores):
        for number, glue in enumerate(by_level):
            kept = {"model": "one", "architecture": "one", "kind": "weights", "level": number / 10, "seed": seed}
            wiggle = 0.01 * (number % 2) + 0.001 * seed
            rows.append(kept | {"glue": glue} | dict.fromkeys(TABLE_2, 1.0 - number / 10 + wiggle))
    return pd.DataFrame(rows)


FALLING = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2]


@pytest.mark.parametrize(
    ("scores", "outcome"),
    [
        ([FALLING, FALLING, [0.9, 0.7, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2]], "agrees"),
        ([FALLING[::-1], FALLING[::-1], [0.2, 0.4, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9]], "contradicts"),
        ([FALLING, FALLING[::-1], FALLING], "undecided"),
        ([FALLING], "undecided"),
    ],
    ids=["falls", "rises", "seeds differ", "one seed"],
)
def test_a_claim_is_judged_over_seeds(scores: list[list[float]], outcome: str) -> None:
    """Patchiness falls with the share of noise, so that its r is near 1 where the score falls too."""
    every = make_noisy(scores)
    assert compare_levels("one", every).claims[0].outcome == outcome
    found = {claim.where: claim.outcome for claim in compare_models(every).claims}
    assert found["Fig. 3"] == outcome


def test_few_models_have_no_correlation() -> None:
    found = compare_models(make_noisy([[0.2, 0.3, 0.4, 0.5]]))
    assert [(claim.outcome, claim.where) for claim in found.claims] == [("note", "Table 2")]


def test_each_case_has_a_name_of_its_own() -> None:
    made = list_cases([0.0, 0.1, 0.2], [3, 4], 2, foreign=True)
    assert len({case.name for case in made}) == len(made)
    assert {case.seed for case in made if case.kind != "weights"} == {3}
    assert [case.level for case in made if case.kind == "one block"] == [0.2, 0.2]
    assert not any(math.isnan(case.level) for case in made if case.kind == "rows")


def test_no_levels_and_unknown_tasks_are_refused(model: str, data: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="0 levels"):
        latent_geometry(output=tmp_path / "s", **asked(model, data) | {"levels": []})
    with pytest.raises(InputError, match="did you mean 'rte'"):
        latent_geometry(output=tmp_path / "s", **asked(model, data) | {"tasks": ["rta"]})
    for level in (-0.1, 1.5, math.nan):
        with pytest.raises(InputError, match="expected 0 to 1"):
            latent_geometry(output=tmp_path / "s", **asked(model, data) | {"levels": [0.0, level]})
    wide = save_model(tmp_path / "wide", "bert", seed=1, hidden_size=32)
    with pytest.raises(InputError, match="name models of one width"):
        latent_geometry(output=tmp_path / "s", **asked(model, data) | {"foreign": wide})
    with pytest.raises(InputError, match="no regression is for it"):
        latent_geometry(output=tmp_path / "s", **asked(model, data) | {"others": [wide]})
    assert not (tmp_path / "s").exists()


def test_levels_are_taken_in_order_and_once() -> None:
    assert sort_levels([0.2, 0.0, 0.2]) == [0.0, 0.2]


def test_rows_that_are_all_alike_have_no_quantized_measures() -> None:
    rows = np.ones((600, 8)) + np.arange(600)[:, None] % 3
    found = compute_measures(prepare_space(rows))
    assert math.isnan(found["point_patchiness_additive"])
    assert math.isnan(found["cluster_eee_product"])
    assert math.isfinite(found["isoscore"])
