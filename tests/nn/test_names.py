"""The names of isotrope.nn: all there, and torch only when one is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from isotrope import nn
from isotrope.errors import MissingExtra


def test_importing_it_imports_no_torch() -> None:
    code = "import sys, isotrope; dir(isotrope.nn); print([m for m in ('torch', 'transformers') if m in sys.modules])"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "[]"


def test_all_names_lead_somewhere() -> None:
    for name in nn.__all__:
        assert callable(getattr(nn, name))
        assert name in dir(nn)
    with pytest.raises(AttributeError, match=r"module .isotrope.nn. has no attribute .Softdecay."):
        nn.Softdecay  # noqa: B018


def test_without_torch_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isotrope.nn.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"isotrope.nn.attach needs the package 'torch'.*isotrope\[models\]"):
        nn.attach  # noqa: B018
