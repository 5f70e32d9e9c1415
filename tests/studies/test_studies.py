"""Whole studies of a small model: their numbers against numpy, their files, and that stopped ones go on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from isotrope.sources.corpora import open_corpus
from isotrope.sources.inputs import Input
from isotrope.studies.all_studies import all_studies
from isotrope.studies.anisotropy import anisotropy
from isotrope.studies.layer_norms import layer_norms
from isotrope.studies.norm_variance import norm_variance
from isotrope.studies.uniformity import uniformity
from models import WORDS, save_model, texts

TEXTS = texts(150)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "small", "bert"))


def rows_and_types(model: str, layer: int) -> tuple[np.ndarray, np.ndarray]:
    source = Input(model=model, text=TEXTS, device="cpu").open()
    batches = list(source.batches())
    rows = np.concatenate([batch.layers[layer].numpy() for batch in batches]).astype(np.float64)
    return rows, np.concatenate([batch.rows.token for batch in batches])


def test_norm_variance(model: str, tmp_path: Path) -> None:
    study = norm_variance(output=tmp_path / "s", models=[model], text=TEXTS, device="cpu")
    layers = study.table(f"{model} layers", "layers")
    assert layers["residual"].max() <= 1e-9
    rows, types = rows_and_types(model, 2)
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
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / "s/parts").rglob("*.json")}
    again = norm_variance(output=tmp_path / "s", models=[model], text=TEXTS, device="cpu", resume=True)
    assert before == {p: p.stat().st_mtime_ns for p in (tmp_path / "s/parts").rglob("*.json")}
    assert again.to_dict()["tables"] == study.to_dict()["tables"]


def test_norms_of_layers(model: str, tmp_path: Path) -> None:
    loaded = Input(model=model, device="cpu").load()
    found = layer_norms(loaded)
    assert list(found) == [0, 1, 2, 3]
    norm = loaded.model.encoder.layer[1].output.LayerNorm
    parts = [float((p.detach() ** 2).sum()) for p in (norm.weight, norm.bias)]
    assert found[2].predicted == pytest.approx(sum(parts), rel=1e-6)
    llama = Input(model=str(save_model(tmp_path / "llama", "llama")), device="cpu").load()
    assert list(layer_norms(llama)) == [3]  # only the last is behind a norm


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
    blocks = study.table(f"{model} blocks", "trained_block")
    assert blocks["block"].nunique() == 2


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


def test_uniformity(model: str, tmp_path: Path) -> None:
    study = uniformity(
        output=tmp_path / "s", models=[model], text=TEXTS, data=pair_files(tmp_path), quick=True, device="cpu"
    )
    bound = study.table(f"{model} bound", "bound")
    assert (bound["tightest"] <= 1 + 1e-6).all()
    scores = study.table(f"{model} sts paper", "scores")
    assert set(scores["repair"]) == {"none", "whitening", "softdecay:alpha=-0.6"}
    assert set(scores["protocol"]) == {"paper"}
    repaired = study.table(f"{model} repaired", "repaired").set_index("repair")
    assert repaired.loc["whitening", "token_uniformity"] < repaired.loc["none", "token_uniformity"]
    assert len([c for c in study.claims if c.outcome == "misprint"]) == 6
    assert json.loads((tmp_path / "s/study.json").read_text())["study"] == "uniformity"


@pytest.mark.long
def test_all_studies_with_one_page_over_them(model: str, tmp_path: Path) -> None:
    found = all_studies(
        output=tmp_path / "s", models=[model], text=TEXTS, data=pair_files(tmp_path), quick=True, device="cpu"
    )
    assert [study.name for study in found] == ["uniformity", "anisotropy", "norm-variance"]  # no files of models
    page = (tmp_path / "s/studies.md").read_text()
    assert all(study.paper in page for study in found)
    assert len(json.loads((tmp_path / "s/studies.json").read_text())["studies"]) == 3


def test_texts_are_cut_and_the_time_is_told(model: str, tmp_path: Path) -> None:
    said: list[str] = []
    study = norm_variance(
        output=tmp_path / "s", models=[model], text=TEXTS, texts=40, quick=True, device="cpu", say=said.append
    )
    assert re.fullmatch(r"reading and measuring will take about [\d.]+ (seconds|minutes); .*", said[0])
    tokens = study.table(f"{model} frequency", "sizes")["tokens"][0]
    source = Input(model=model, text=[t.text for t in open_corpus(TEXTS)][:40], device="cpu").open()
    assert tokens == sum(len(batch.rows.sequence) for batch in source.batches())
