"""A small model for studies, and studies that draw SVG alone."""

from __future__ import annotations

import pytest

from testkit.models import save_model


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The folder of a small BERT, whose short name is `small`."""
    return str(save_model(tmp_path_factory.mktemp("models") / "small", "bert"))


@pytest.fixture
def svg_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are saved as SVG alone: a study takes most of its time for PDF, whose files other tests look at."""
    monkeypatch.setattr("isotrope.studies.figures.KINDS", ("svg",))
