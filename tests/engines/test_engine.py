"""Engines that are refused before anything is started."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import isotrope
from isotrope.engines.engine import Engine
from isotrope.errors import InputError, MissingExtra


def test_a_missing_package_names_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[ray\]'"):
        isotrope.scan(vectors=np.eye(3), engine="ray")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"engine": "spark"}, "no engine 'spark'; say local or ray"),
        ({"address": "auto"}, "engine local has no use for --address"),
        ({"engine": "ray", "workers": 0}, "got 0 workers, expected at least 1"),
        ({"engine": "ray", "gpus_per_worker": -1.0}, r"got -1\.0 GPUs per worker"),
        (
            {"engine": "ray", "gpus_per_worker": 1.5},
            r"got 1\.5 GPUs per worker, expected 0, a share of one",
        ),
        ({"engine": "ray", "gpus_per_worker": 0.00001}, "got 1e-05 GPUs per worker"),
        ({"engine": "ray", "gpus_per_worker": float("nan")}, "got nan GPUs per worker"),
        ({"engine": "ray", "gpus_per_worker": float("inf")}, "got inf GPUs per worker"),
    ],
)
def test_refusals(options: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Engine(**options)


@pytest.mark.parametrize("gpus", [0, 0.0001, 0.5, 1, 2, 8.0])
def test_gpus_that_can_be_asked_for(gpus: float) -> None:
    assert Engine(engine="ray", gpus_per_worker=gpus).gpus_per_worker == gpus


def test_bad_files_are_stopped_at_or_skipped() -> None:
    with pytest.raises(InputError, match="no way 'mend' with bad files; say stop or skip"):
        isotrope.scan(vectors=np.eye(3), engine="ray", bad_files="mend")
