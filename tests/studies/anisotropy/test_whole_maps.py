"""Whole maps of convolutions as rows, against numpy."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.studies.anisotropy import anisotropy
from isotrope.studies.anisotropy.whole_maps import measure_whole_maps
from testkit.media_models import IMAGES, save_image_model

Image = pytest.importorskip("PIL.Image")

COUNT = 7


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pictures")
    rng = np.random.default_rng(0)
    for i in range(COUNT):
        Image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    return folder


@pytest.fixture(scope="module")
def resnet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_image_model(tmp_path_factory.mktemp("models") / "resnet", "resnet")


def find_cosine(rows: np.ndarray) -> float:
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return float((unit @ unit.T)[np.triu_indices(len(rows), 1)].mean())


def test_numbers_and_intervals_of_whole_maps(resnet: Path, pictures: Path) -> None:
    records = measure_whole_maps(Input(model=str(resnet), text=str(pictures), batch_size=2).open())
    places = [[] for _ in records]
    for batch in Input(model=str(resnet), text=str(pictures), in_order=True, batch_size=1).open().batches():
        for layer, rows in batch.layers.items():
            places[layer].append(rows.numpy().astype(np.float64).ravel())
    assert [record["layer"] for record in records] == [str(i) for i in range(5)]
    for record, given, (count, width) in zip(records, places, IMAGES["resnet"][2], strict=True):
        rows = np.stack(given)
        assert rows.shape == (COUNT, count * width)
        assert record["mean_cosine"] == pytest.approx(find_cosine(rows), rel=1e-6)
        assert record["drift_norm"] == pytest.approx(np.linalg.norm(rows.mean(0)), rel=1e-6)
        assert record["rms_norm"] == pytest.approx(np.sqrt((rows**2).sum(1).mean()), rel=1e-6)
        # Each of the seven images is a group of its own: the jackknife leaves one out at a time.
        without = np.array([find_cosine(np.delete(rows, i, axis=0)) for i in range(COUNT)])
        error = math.sqrt((COUNT - 1) / COUNT * ((without - without.mean()) ** 2).sum())
        assert record["high"] - record["mean_cosine"] == pytest.approx(
            2.4469 * error, rel=1e-3
        )  # Student's t, 6 degrees
        assert record["mean_cosine"] - record["low"] == pytest.approx(2.4469 * error, rel=1e-3)


@pytest.mark.usefixtures("svg_alone")
def test_a_study_by_both_readings(resnet: Path, pictures: Path, tmp_path: Path) -> None:
    given = {"models": [resnet], "images": pictures, "width": 64, "quick": True, "device": "cpu"}
    tables = {
        maps: anisotropy(output=tmp_path / maps, maps=maps, **given).table("resnet layers", "layers")  # type: ignore[arg-type]
        for maps in ("places", "whole")
    }
    assert tables["places"].columns.tolist() == tables["whole"].columns.tolist()
    found = measure_whole_maps(Input(model=str(resnet), text=str(pictures)).open())
    assert tables["whole"]["mean_cosine"].tolist() == pytest.approx([record["mean_cosine"] for record in found])
    assert (tables["whole"]["mean_cosine"] - tables["places"]["mean_cosine"]).abs().max() > 0.01
    with pytest.raises(InputError, match=r"the rows of maps are places or whole, not 'parts'\."):
        anisotropy(output=tmp_path / "other", maps="parts", **given)  # type: ignore[arg-type]
