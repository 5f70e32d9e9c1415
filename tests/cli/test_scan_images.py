"""isotrope scan of an image model: the modality is found, said, and its token measures are by place."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testkit.command import Command, one_sentence
from testkit.media_models import save_image_model

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def vit(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_image_model(tmp_path_factory.mktemp("vit"), "vit")


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i in range(6):
        pixels = np.random.default_rng(i).integers(0, 255, (30, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{i}.png")
    (folder / "x.png").write_text("broken")
    return folder


def test_in_words_and_as_json(isotrope: Command, vit: Path, pictures: Path) -> None:
    result = isotrope("scan", "--model", vit, pictures)
    assert (result.code, result.err) == (0, "")
    assert "102 rows of 7 images, 3 layers of up to 16" in result.out
    assert "ViTModel reads images: rows are patches or places of a map; their token types are" in result.out
    assert "left out: 1 broken images" in result.out
    document = isotrope("scan", "--model", vit, pictures, "--json").json
    assert (document["source"]["modality"], document["layers"]) == ("image", [0, 1, 2])
    by = {(r["measure"], r["layer"]): r for r in document["readings"]}
    assert 0 < by["between_share", 2]["value"] < 1
    # every place is there in every image, so that nothing can depend on how often
    assert by["variance_on_frequency_slope", 2]["value"] is None
    assert by["variance_on_frequency_slope", 2]["reason"]


def test_stages_of_different_widths_make_one_run(isotrope: Command, pictures: Path, tmp_path: Path) -> None:
    model = save_image_model(tmp_path / "segformer", "segformer")
    scan = ("scan", "--model", model, pictures, "-o", "run", "--json")
    document = isotrope(*scan).json
    rows = {r["layer"]: r["n"] for r in document["readings"] if r["measure"] == "mean_cosine"}
    assert rows == {0: 6 * 64, 1: 6 * 16, 2: 6 * 4, 3: 6}
    assert isotrope(*scan, "--resume").json["readings"] == document["readings"]
    assert "1 broken images" in Path("run/report.html").read_text("utf-8")
    pytest.importorskip("matplotlib", reason="needs isotrope[figures]")
    assert isotrope("figure", "run", "spectrum-histograms", "-o", "spectra.svg").code == 0


def test_dry_run_counts_patches(isotrope: Command, vit: Path, pictures: Path) -> None:
    plan = isotrope("scan", "--model", vit, pictures, "--dry-run", "--json").json
    assert plan["rows"] == pytest.approx(7 * 17, rel=0.2)


def test_an_image_model_without_images_says_so(isotrope: Command, vit: Path, tmp_path: Path) -> None:
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text("a text")
    said = one_sentence(isotrope("scan", "--model", vit, tmp_path / "texts"))
    assert "no images in" in said
    assert "got no images" in one_sentence(isotrope("scan", "--model", vit))
    refused = one_sentence(isotrope("scan", "--model", vit, tmp_path / "texts", "--max-length", "5"))
    assert "max-length" in refused
