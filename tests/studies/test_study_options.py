"""Models of a study: their short names, and what they stand for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources import EMBEDDED
from isotrope.sources.models.load import Loaded
from isotrope.studies.options import StudyOptions, iterate_layers


def test_names_are_short_and_stand_for_what_was_given() -> None:
    options = StudyOptions(output="s", models=["org/bert-tiny", Path("/data/minilm/model"), "smol.gguf"])
    assert options.names == ["bert-tiny", "minilm", "smol.gguf"]
    assert [options.reference(name) for name in options.names] == ["org/bert-tiny", "/data/minilm/model", "smol.gguf"]
    assert options.settings()["models"] == ["org/bert-tiny", "/data/minilm/model", "smol.gguf"]


def test_the_embedded_model_is_none() -> None:
    options = StudyOptions(output="s")
    assert options.names == [EMBEDDED]
    assert options.reference(EMBEDDED) is None


def test_models_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="the models a/bert, b/bert do not all have names of their own"):
        StudyOptions(output="s", models=["a/bert", "b/bert"])


def test_a_loaded_network_is_a_model(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    image = pytest.importorskip("PIL.Image")
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3)).eval()
    rng = np.random.default_rng(0)
    (tmp_path / "images").mkdir()
    for i in range(3):
        image.fromarray(rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)).save(tmp_path / f"images/{i}.png")

    def prepare(picture: object) -> object:
        return torch.from_numpy(np.array(picture, np.float32) / 255).permute(2, 0, 1)

    loaded = Loaded(network, None, "small-convolutions", modality="image", processor=prepare, hooks="0,2")
    options = StudyOptions(output=tmp_path / "s", models=[loaded], images=tmp_path / "images", device="cpu")
    assert options.names == ["small-convolutions"]
    assert options.reference("small-convolutions") is loaded
    assert options.settings()["models"] == ["small-convolutions"]
    with pytest.raises(InputError, match="small-convolutions is a loaded model"):
        options.path("small-convolutions")
    findings = options.scan("small-convolutions", options.source("small-convolutions"), "mean_cosine")
    rows = np.concatenate([prepare(image.open(p)).numpy()[None] for p in sorted((tmp_path / "images").glob("*"))])
    with torch.no_grad():
        maps = network[0](torch.from_numpy(rows)).permute(0, 2, 3, 1).reshape(-1, 8).numpy().astype(np.float64)
    unit = maps / np.linalg.norm(maps, axis=1, keepdims=True)
    n = len(unit)
    expected = ((unit.sum(0) ** 2).sum() - n) / n / (n - 1)
    readings = dict(iterate_layers(findings))
    assert readings[findings.layers[0]]["mean_cosine"].value == pytest.approx(expected, rel=1e-5)
