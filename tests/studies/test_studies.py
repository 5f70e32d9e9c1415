"""Whole studies of a small model: their numbers against numpy, their files, and that stopped ones go on."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.studies import all_studies
from isotrope.studies.anisotropy import anisotropy
from isotrope.studies.norm_variance import norm_variance
from isotrope.studies.norm_variance.post_norm import find_layer_norms
from isotrope.studies.norm_variance.study import judge_trade_off
from isotrope.studies.result import Study
from isotrope.studies.uniformity import uniformity
from isotrope.studies.uniformity.published import MISPRINTS
from testkit.media_models import RATE, save_image_model, save_sound_model
from testkit.models import WORDS, save_model, texts
from testkit.small_glue import write_task

TEXTS = texts(150)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "small", "bert"))


def rows_and_types(model: str, layer: int) -> tuple[np.ndarray, np.ndarray]:
    source = Input(model=model, text=TEXTS, device="cpu").open()
    batches = list(source.batches())
    rows = np.concatenate([batch.layers[layer].numpy() for batch in batches]).astype(np.float64)
    return rows, np.concatenate([batch.rows.token for batch in batches])


@pytest.mark.long
def test_norm_variance_of_words_that_hardly_repeat(model: str, tmp_path: Path) -> None:
    study = norm_variance(output=tmp_path / "s", models=[model], text=TEXTS[:3], device="cpu", quick=True)
    (words,) = [part for part in study.parts if part.name.endswith("words")]
    assert [claim.text for claim in words.claims] == [
        "no word occurs 10 times or more, so that there is no artefact to see."
    ]
    assert [drawn.reason for drawn in words.figures] == [
        "the table has no row, so that there is no Q / Q of one token to draw"
    ]
    assert list(words.tables[0].frame.columns)[:3] == ["layer", "tokens", "words"]


@pytest.fixture
def svg_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are saved as SVG alone: a study takes most of its time for PDF, whose files other tests look at."""
    monkeypatch.setattr("isotrope.studies.figures.KINDS", ("svg",))


@pytest.mark.usefixtures("svg_alone")
def test_norm_variance(model: str, tmp_path: Path) -> None:
    said: list[str] = []
    given = {"models": [model], "text": [*TEXTS, *texts(20, seed=1)], "texts": len(TEXTS), "device": "cpu"}
    study = norm_variance(output=tmp_path / "s", say=said.append, **given)
    assert re.fullmatch(r"reading and measuring will take about [\d.]+ (seconds|minutes); .*", said[0])
    layers = study.table(f"{model} layers", "layers")
    assert layers["residual"].max() <= 1e-9
    rows, types = rows_and_types(model, 2)
    assert study.table(f"{model} frequency", "sizes")["tokens"][0] == len(rows)  # of the texts that are not cut off
    means = {t: rows[types == t].mean(0) for t in np.unique(types)}
    within = sum(((rows[types == t] - means[t]) ** 2).sum() for t in means) / len(rows)
    assert layers["Q"][2] == pytest.approx((rows**2).sum(1).mean(), rel=1e-6)
    assert layers["V_W"][2] == pytest.approx(within, rel=1e-6)
    m = np.array([means[t] @ means[t] for t in means if (types == t).sum() >= 10])
    v = np.array([((rows[types == t] - means[t]) ** 2).sum(1).mean() for t in means if (types == t).sum() >= 10])
    slope = np.polyfit(m, v, 1)[0]
    assert layers["variance_on_mean_slope"][2] == pytest.approx(slope, rel=1e-4)
    filters = study.table(f"{model} filters", "filters")
    chosen = filters[(filters["layer"] == 2) & (filters["types"] == "10 to 100,000")].iloc[0]
    assert chosen["slope"] == pytest.approx(slope, rel=1e-4)
    assert chosen["count"] == len(m)
    sizes = study.table(f"{model} sizes", "sizes")
    assert sorted(sizes["texts"].unique()) == [38, 75, 150]
    norms = study.table(f"{model} post-norm", "post_norm")
    assert norms["predicted Q"].notna().all()
    assert {"norm-variance", "frequency", "filters", "sizes", "words", "post_norm"} <= drawn(study)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s/parts").rglob("*.json")}
    again = norm_variance(output=tmp_path / "s", resume=True, **given)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "s/parts").rglob("*.json")}
    assert again.to_dict()["tables"] == study.to_dict()["tables"]


def test_a_layer_whose_types_do_not_vary_is_not_the_best() -> None:
    """The input embeddings of a model without places: V is 0, and V on M has no R²."""
    names = ("variance_on_mean_slope", "variance_on_mean_r2", "squared_norm_variation")
    frame = pd.DataFrame({name + end: [math.nan, -0.2, -0.1] for name in names for end in ("", "_low", "_high")})
    frame = frame.assign(layer=[0, 1, 2], variance_on_mean_slope=[0.0, -0.2, -0.1])
    slope, r2, _ = judge_trade_off(frame, post_norm=False)
    assert "lowest slope of V on M is -0.200" in slope.text
    assert "highest R² of V on M is -0.100" in r2.text


def test_norms_of_layers(model: str, tmp_path: Path) -> None:
    loaded = Input(model=model, device="cpu").load()
    found = find_layer_norms(loaded)
    assert list(found) == [0, 1, 2, 3]
    norm = loaded.model.encoder.layer[1].output.LayerNorm
    parts = [float((p.detach() ** 2).sum()) for p in (norm.weight, norm.bias)]
    assert found[2].predicted == pytest.approx(sum(parts), rel=1e-6)
    llama = Input(model=str(save_model(tmp_path / "llama", "llama")), device="cpu").load()
    assert list(find_layer_norms(llama)) == [3]  # only the last is behind a norm


@pytest.mark.usefixtures("svg_alone")
def test_anisotropy(model: str, tmp_path: Path) -> None:
    study = anisotropy(output=tmp_path / "s", models=[model], text=TEXTS, width=64, quick=True, device="cpu")
    layers = study.table(f"{model} layers", "layers")
    rows, _ = rows_and_types(model, 3)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    n = len(rows)
    assert layers["mean_cosine"][3] == pytest.approx(((unit.sum(0) ** 2).sum() - n) / n / (n - 1), rel=1e-5)
    centred = rows - rows.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    assert layers["centred_mean_cosine"][3] == pytest.approx(((unit.sum(0) ** 2).sum() - n) / n / (n - 1), abs=1e-5)
    fixed = study.table("fresh block", "fresh_fixed_points")
    assert fixed["mean of norms"][0] == pytest.approx(8, abs=0.1)
    assert len(study.table("fresh block signs", "signs")) == 8
    together = study.table("all layers", "layers")
    assert together["depth"].tolist() == [0.0, 1 / 3, 2 / 3, 1.0]
    assert together["mean_cosine"].tolist() == layers["mean_cosine"].tolist()
    blocks = study.table(f"{model} blocks", "trained_block")
    assert list(dict.fromkeys(blocks["block"])) == [f"{model}, block 0", f"{model}, block 1"]
    rms = float(np.sqrt((rows**2).sum(1).mean()))
    assert layers["rms_norm"][3] == pytest.approx(rms, rel=1e-5)
    compared = [claim.text for claim in study.claims if "one order of magnitude" in claim.text]
    assert compared
    assert all(f"{layers['rms_norm'].min():.2f} to {layers['rms_norm'].max():.2f}" in text for text in compared)
    assert drawn(study) == {"layers", "mean_cosine", "drift", "fresh_block_0", "trained_block_0", "trained_block_1"}


@pytest.mark.usefixtures("svg_alone")
def test_anisotropy_of_models_of_other_things(model: str, tmp_path: Path) -> None:
    """A model of images and one of sounds beside one of text, each over its own; sounds cut as texts are."""
    image = pytest.importorskip("PIL.Image")
    soundfile = pytest.importorskip("soundfile", reason="needs isotrope[audio]")
    rng = np.random.default_rng(0)
    for name in ("images", "sounds"):
        (tmp_path / name).mkdir()
    for i in range(4):
        image.fromarray(rng.integers(0, 255, (30, 30, 3), dtype=np.uint8)).save(tmp_path / f"images/{i}.png")
        soundfile.write(tmp_path / f"sounds/{i}.wav", rng.normal(scale=0.1, size=RATE), RATE)
    seen, heard = save_image_model(tmp_path / "vit", "vit"), save_sound_model(tmp_path / "wav2vec2", "wav2vec2")
    given = {"models": [model, seen, heard], "text": TEXTS, "texts": 3, "width": 64, "quick": True, "device": "cpu"}
    with pytest.raises(InputError, match=r"vit reads images and got none; name a folder with --images\."):
        anisotropy(output=tmp_path / "s", **given)
    assert not (tmp_path / "s").exists()
    given |= {"images": tmp_path / "images", "sounds": tmp_path / "sounds"}
    study = anisotropy(output=tmp_path / "s", **given)
    for name, folder, kind in ((seen, "images", "png"), (heard, "sounds", "wav")):
        files = [tmp_path / folder / f"{i}.{kind}" for i in range(3)]
        rows = np.concatenate([b.layers[1].numpy() for b in Input(model=str(name), text=files).open().batches()])
        unit = rows.astype(np.float64) / np.linalg.norm(rows, axis=1, keepdims=True)
        expected = ((unit.sum(0) ** 2).sum() - len(rows)) / len(rows) / (len(rows) - 1)
        assert study.table(f"{name} layers", "layers")["mean_cosine"][1] == pytest.approx(expected, rel=1e-4)
    told = [claim.text for claim in study.claims]
    assert any("at least 0.2 in every layer of every model of speech" in text for text in told)
    assert sum("a table of input embeddings" in text for text in told) == 2


def drawn(study: Study) -> set[str]:
    """The figures of a study, all of which could be drawn."""
    figures = [figure for part in study.parts for figure in part.figures]
    assert [figure.reason for figure in figures if figure.reason] == []
    return {figure.name for figure in figures}


def pair_files(folder: Path) -> Path:
    """STS-B and a year of two subsets, of the words that small models know."""
    rng = np.random.default_rng(0)
    (folder / "sts").mkdir()
    for name in ("sts-b", "sts12.one", "sts12.two"):
        lines = []
        for number in range(60):
            first, second = (" ".join(rng.choice(WORDS, size=6)) for _ in range(2))
            lines.append("\t".join(["g", "f", "y", str(number), f"{rng.uniform(0, 5):.2f}", first, second]))
        (folder / "sts" / f"{name}-test.csv").write_text("\n".join(lines) + "\n")
    return folder


@pytest.mark.usefixtures("svg_alone")
def test_uniformity(model: str, tmp_path: Path) -> None:
    data = write_task(pair_files(tmp_path), "cola")
    given = {"models": [model], "text": TEXTS, "data": data, "train_rows": 24, "device": "cpu"}
    study = uniformity(output=tmp_path / "s", **given, learning_rate=1e-3, quick=True)
    bound = study.table(f"{model} bound", "bound")
    assert (bound["tightest"] <= 1 + 1e-6).all()
    scores = study.table(f"{model} sts paper", "scores")
    assert set(scores["repair"]) == {"none", "whitening", "softdecay:alpha=-0.6:form=paper"}
    assert set(scores["protocol"]) == {"paper"}
    by = scores.set_index("repair")
    raw, white, soft = (by.loc[name, "spearman"] for name in ("none", "whitening", "softdecay:alpha=-0.6:form=paper"))
    assert by.loc["whitening", "gain %"] == pytest.approx(100 * (white - raw) / abs(raw))
    gained = study.table(f"{model} sts paper", "differences")
    gained = gained[gained["metric"] == "spearman"].set_index(["repair", "against"])["difference"]
    assert gained["softdecay:alpha=-0.6:form=paper", "whitening"] == pytest.approx(soft - white)
    assert gained["softdecay:alpha=-0.6:form=paper", "none"] == pytest.approx(soft - raw)
    assert len(gained) == 3
    repaired = study.table(f"{model} repaired", "repaired").set_index("repair")
    assert repaired.loc["whitening", "token_uniformity"] < repaired.loc["none", "token_uniformity"]
    assert len([c for c in study.claims if c.outcome == "misprint"]) == len(MISPRINTS)
    assert json.loads((tmp_path / "s/study.json").read_text())["study"] == "uniformity"

    glue = study.table(f"{model} glue", "scores")
    assert glue["method"].tolist() == ["base", "softdecay:alpha=-0.5"]
    whole = isotrope.evaluate_glue(
        model=model, data=data, methods=[], seeds=1, train_rows=24, epochs=1, learning_rate=1e-3, device="cpu"
    )
    assert glue["mean"][0] == whole.scores[0].mean
    sizes = study.table(f"{model} glue sizes", "sizes")
    assert sizes["rows"].tolist() == [6, 24]
    assert sizes["reach trained"][1] == whole.runs[0].spectra["trained"]["reach"]

    others = study.table(f"{model} other blocks", "other_blocks")
    assert others["softdecay"].tolist() == ["none", "block 0", "block 1", "block 2"]
    assert others["spearman"].nunique() == 4
    trained = study.table(f"{model} simcse", "contrastive").set_index("method")["spearman"]
    assert trained["none"] == others["spearman"][0]
    assert trained.nunique() == 3
    parts = study.table(f"{model} parts off", "parts_off")
    layers = study.table(f"{model} layers", "layers")
    same = parts[parts["model"] == "whole"]["rank_one_residual"].to_numpy()
    assert same == pytest.approx(layers["rank_one_residual"].to_numpy(), rel=1e-5)
    assert parts.groupby("layer")["rank_one_residual"].nunique().tolist() == [1, 4, 4, 4]
    assert study.table(f"{model} svd time", "svd_time")["of the forward pass"][0] == 1
    places = study.table(f"{model} positions", "positions").set_index("position")
    assert places.loc["mean of all", "accuracy"] > 0.9  # the words tell the label
    planes = study.table(f"{model} tsne", "tsne")
    assert planes.groupby(["repair", "pair"]).size().eq(2).all()
    assert {"sequence-spectra", "bound", "sts", "tsne", "glue", "sizes", "parts_off"} <= drawn(study)


def test_softdecay_in_another_block_is_another_model(model: str, tmp_path: Path) -> None:
    data = write_task(tmp_path, "cola")
    asked = {"model": model, "data": data, "methods": ["softdecay"], "alphas": [-0.5], "seeds": 1, "epochs": 1}
    last, first = (
        isotrope.evaluate_glue(**asked, softdecay_block=block, train_rows=16, device="cpu").runs for block in (-1, 0)
    )
    assert last[0].losses == first[0].losses  # the base has no layer
    assert last[1].losses != first[1].losses
    assert "softdecay_block" not in last[1].settings
    assert first[1].settings["softdecay_block"] == 0


@pytest.mark.long
def test_all_studies_with_one_page_over_them(model: str, tmp_path: Path) -> None:
    given = {"models": [model], "text": TEXTS, "data": pair_files(tmp_path), "quick": True, "device": "cpu"}
    with pytest.warns(UserWarning, match="latent-geometry is left out"):
        found = all_studies(output=tmp_path / "s", **given)
    assert [study.name for study in found] == ["uniformity", "anisotropy", "norm-variance"]  # no files of models
    page = (tmp_path / "s/studies.html").read_text()
    assert all(study.paper in page and f'href="{study.name}/parts/' in page for study in found)
    assert len(json.loads((tmp_path / "s/studies.json").read_text())["studies"]) == 3
