"""The uniformity study of a small model: its numbers, and that its tables agree with one another."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import isotrope
from isotrope.studies.uniformity import uniformity
from isotrope.studies.uniformity.published import MISPRINTS
from testkit.small_glue import write_task
from testkit.small_studies import TEXTS, drawn, pair_files


@pytest.mark.usefixtures("svg_alone")
def test_uniformity(model: str, tmp_path: Path) -> None:
    data = write_task(pair_files(tmp_path), "cola")
    (tmp_path / "words.txt").write_text("\n".join(TEXTS))
    given = {
        "fit_text": tmp_path / "words.txt",
        "models": [model],
        "text": TEXTS,
        "data": data,
        "train_rows": 24,
        "device": "cpu",
    }
    study = uniformity(output=tmp_path / "s", **given, learning_rate=1e-3, quick=True)
    bound = study.table("small bound", "bound")
    assert (bound["tightest"] <= 1 + 1e-6).all()
    scores = study.table("small sts paper", "scores")
    assert set(scores["repair"]) == {"none", "whitening", "softdecay:alpha=-0.6:form=paper", "whitening (words)"}
    assert set(scores["protocol"]) == {"paper"}
    by = scores.set_index("repair")
    raw, white, soft = (by.loc[name, "spearman"] for name in ("none", "whitening", "softdecay:alpha=-0.6:form=paper"))
    assert by.loc["whitening", "gain %"] == pytest.approx(100 * (white - raw) / abs(raw))
    gained = study.table("small sts paper", "differences")
    gained = gained[gained["metric"] == "spearman"].set_index(["repair", "against"])["difference"]
    assert gained["softdecay:alpha=-0.6:form=paper", "whitening"] == pytest.approx(soft - white)
    assert gained["softdecay:alpha=-0.6:form=paper", "none"] == pytest.approx(soft - raw)
    assert len(gained) == 4
    repaired = study.table("small repaired", "repaired").set_index("repair")
    assert repaired.loc["whitening", "token_uniformity"] < repaired.loc["none", "token_uniformity"]
    assert len([c for c in study.claims if c.outcome == "misprint"]) == len(MISPRINTS)
    assert json.loads((tmp_path / "s/study.json").read_text())["study"] == "uniformity"

    glue = study.table("small glue", "scores")
    assert glue["method"].tolist() == ["base", "softdecay:alpha=-0.5"]
    whole = isotrope.evaluate_glue(
        model=model, data=data, methods=[], seeds=1, train_rows=24, epochs=1, learning_rate=1e-3, device="cpu"
    )
    assert glue["mean"][0] == whole.scores[0].mean
    sizes = study.table("small glue sizes", "sizes")
    assert sizes[["rows", "seed"]].to_numpy().tolist() == [[6, 0], [6, 1], [24, 0], [24, 1]]
    assert sizes["reach trained"][2] == whole.runs[0].spectra["trained"]["reach"]
    reach = study.table("small glue", "reach").query("method == 'base' and when == 'trained'")
    assert reach["reach"].iloc[-1] == whole.runs[0].spectra["trained"]["reach"]

    others = study.table("small other blocks", "other_blocks")
    assert others["softdecay"].tolist() == ["none", "block 0", "block 1", "block 2"]
    assert others["spearman"].nunique() == 4
    trained = study.table("small simcse", "contrastive").set_index("method")
    assert trained["mean"]["none"] == pytest.approx(others["spearman"][0])
    assert (trained["mean"].nunique(), trained["n"].tolist()) == (3, [1, 2, 2])
    gain = study.table("small simcse", "differences")["difference"][0]
    assert gain == pytest.approx(trained["mean"]["simcse+softdecay"] - trained["mean"]["simcse"])
    (lacking,) = (claim for part in study.parts if part.name == "small simcse-nli" for claim in part.claims)
    assert (lacking.outcome, "no triplets" in lacking.text) == ("note", True)
    parts = study.table("small parts off", "parts_off")
    layers = study.table("small layers", "layers")
    for name in ("rank_one_residual", "sequence_rank_one_residual"):
        same = parts[parts["model"] == "whole"][name].to_numpy()
        assert same == pytest.approx(layers[name].to_numpy(), rel=1e-5)
        assert parts.groupby("layer")[name].nunique().tolist() == [1, 4, 4, 4]
    cls = study.table("small cls", "cls_uniformity")
    assert cls["within a sequence"].to_numpy() == pytest.approx(layers["cls_uniformity"].to_numpy())
    assert (cls["across sequences"] != cls["within a sequence"]).all()
    (encoder,) = (claim for part in study.parts if part.name == "small generation" for claim in part.claims)
    assert "does not generate text" in encoder.text
    assert study.table("small svd time", "svd_time")["of the forward pass"][0] == 1
    places = study.table("small positions", "positions").set_index("position")
    assert places.loc["mean of all", "accuracy"] > 0.9  # the words tell the label
    planes = study.table("small repaired", "tsne")
    assert planes.groupby(["repair", "pair"]).size().eq(2).all()
    gains = study.table("all models", "gains").set_index("model")
    assert gains.loc["small", "gain %"] == pytest.approx(100 * (soft - raw) / abs(raw))
    assert gains.loc["small", "blocks"] == 3
    assert study.table("small rank", "rank")["full rank"].between(0, 1).all()
    figures = {"sequence-spectra", "bound", "rank", "sts", "tsne-sts-b", "lsds", "sentence_spectra", "gains"}
    assert figures | {"glue", "glue-cdf", "sizes", "parts_off", "case_study", "transformation"} <= drawn(study)


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
