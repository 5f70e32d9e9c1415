"""All studies, with one page over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from isotrope.studies import all_studies
from isotrope.studies.result import Study
from isotrope.studies.run_all import STUDIES
from testkit.media_models import save_image_model
from testkit.small_studies import TEXTS, pair_files


@pytest.mark.long
def test_all_studies_with_one_page_over_them(model: str, tmp_path: Path) -> None:
    given = {"models": [model], "text": TEXTS, "data": pair_files(tmp_path), "quick": True, "device": "cpu"}
    with pytest.warns(UserWarning, match="latent-geometry is left out"):
        found = all_studies(output=tmp_path / "s", **given)
    assert [study.name for study in found] == ["uniformity", "anisotropy", "norm-variance"]  # no files of models
    page = (tmp_path / "s/studies.html").read_text()
    assert all(study.paper in page and f'href="{study.name}/parts/' in page for study in found)
    assert len(json.loads((tmp_path / "s/studies.json").read_text())["studies"]) == 3


def test_models_of_images_are_studied_by_anisotropy_alone(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = str(save_image_model(tmp_path / "vit", "vit"))
    calls: dict[str, dict[str, Any]] = {}

    def make_study(name: str) -> Any:
        return lambda **given: calls.update({name: given}) or Study(name, "", [])

    replaced = {name: entry._replace(run=make_study(name)) for name, entry in STUDIES.items()}
    monkeypatch.setattr("isotrope.studies.run_all.STUDIES", replaced)
    with pytest.warns(UserWarning, match="latent-geometry is left out"):
        all_studies(output=tmp_path / "s", models=[model, seen], images="pictures", text=TEXTS)
    assert calls["anisotropy"]["models"] == [model, seen]
    assert calls["anisotropy"]["images"] == "pictures"
    assert calls["uniformity"]["models"] == calls["norm-variance"]["models"] == [model]
    assert "images" not in calls["uniformity"]
    calls.clear()
    with pytest.warns(UserWarning, match="uniformity is left out: it reads text, and none of the models does"):
        all_studies(output=tmp_path / "t", models=[seen], images="pictures")
    assert list(calls) == ["anisotropy"]
