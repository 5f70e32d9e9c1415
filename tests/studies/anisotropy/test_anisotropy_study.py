"""The anisotropy study of small models: its numbers against numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.studies.anisotropy import anisotropy
from testkit.media_models import RATE, save_image_model, save_sound_model
from testkit.small_studies import TEXTS, drawn, rows_and_types


@pytest.mark.usefixtures("svg_alone")
def test_anisotropy(model: str, tmp_path: Path) -> None:
    study = anisotropy(output=tmp_path / "s", models=[model], text=TEXTS, width=64, quick=True, device="cpu")
    layers = study.table("small layers", "layers")
    rows, _ = rows_and_types(model, 3)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    n = len(rows)
    assert layers["mean_cosine"][3] == pytest.approx(((unit.sum(0) ** 2).sum() - n) / n / (n - 1), rel=1e-5)
    centred = rows - rows.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    assert layers["centred_mean_cosine"][3] == pytest.approx(((unit.sum(0) ** 2).sum() - n) / n / (n - 1), abs=1e-5)
    fixed = study.table("fresh block", "fresh_fixed_points")
    assert fixed["mean of norms"].tolist() == pytest.approx([8.0] * 3, abs=0.1)
    assert len(study.table("fresh block signs", "signs")) == 8
    together = study.table("all layers", "layers")
    assert together["depth"].tolist() == [0.0, 1 / 3, 2 / 3, 1.0]
    assert together["mean_cosine"].tolist() == layers["mean_cosine"].tolist()
    blocks = study.table("small blocks", "trained_block")
    assert list(dict.fromkeys(blocks["block"])) == ["small, block 0", "small, block 1"]
    rms = float(np.sqrt((rows**2).sum(1).mean()))
    assert layers["rms_norm"][3] == pytest.approx(rms, rel=1e-5)
    compared = [claim.text for claim in study.claims if "one order of magnitude" in claim.text]
    assert compared
    assert all(f"{layers['rms_norm'].min():.2f} to {layers['rms_norm'].max():.2f}" in text for text in compared)
    names = {
        f"{name}{end}" for name in ("fresh_block_0", "trained_block_0", "trained_block_1") for end in ("", "_scores")
    }
    assert drawn(study) == {"layers", "p_values", "mean_cosine", "drift", "variants"} | names
    tests = study.table("all layers", "drift")
    assert tests[["model", "class", "family", "trained"]].to_numpy().tolist() == [["small", "subword", "bert", True]]
    expected = stats.spearmanr(layers["drift_norm"], layers["mean_cosine"])
    assert tests["spearman"][0] == pytest.approx(expected.statistic)
    assert tests["spearman_p_asymptotic"][0] == pytest.approx(expected.pvalue)


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
    given |= {"images": tmp_path / "images", "sounds": tmp_path / "sounds", "blocks": [0]}
    study = anisotropy(output=tmp_path / "s", **given)
    for name, folder, kind in ((seen, "images", "png"), (heard, "sounds", "wav")):
        files = [tmp_path / folder / f"{i}.{kind}" for i in range(3)]
        rows = np.concatenate([b.layers[1].numpy() for b in Input(model=str(name), text=files).open().batches()])
        unit = rows.astype(np.float64) / np.linalg.norm(rows, axis=1, keepdims=True)
        expected = ((unit.sum(0) ** 2).sum() - len(rows)) / len(rows) / (len(rows) - 1)
        assert study.table(f"{name.name} layers", "layers")["mean_cosine"][1] == pytest.approx(expected, rel=1e-4)
    classes = {claim.model_class for claim in study.claims if claim.where in ("Fig. 1", "Fig. 3", "Fig. 4")}
    assert classes == {"subword", "vision transformer", "speech"}
    (speech,) = (claim for claim in study.claims if claim.where == "Fig. 3" and claim.model_class == "speech")
    assert "at least 0.2 in every layer of every model" in speech.text
    for name in ("vit", "wav2vec2"):
        blocks = study.table(f"{name} blocks", "trained_block")
        assert list(dict.fromkeys(blocks["block"])) == [f"{name}, block 0"]
        assert blocks["output_norm"].notna().all()
        assert len(study.table(f"{name} blocks", "trained_scores")) == 6 * 60
