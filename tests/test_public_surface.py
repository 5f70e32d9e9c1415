"""Public names are loaded when first used, type checkers know them, and what moved since 0.1 says where it is."""

from __future__ import annotations

import ast
import re
import warnings
from importlib import import_module
from pathlib import Path

import pytest

import isotrope
from isotrope.deprecation import MOVED

PACKAGES = ["isotrope", "isotrope.nn"]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_stub_lists_the_public_names(package: str) -> None:
    module = import_module(package)
    stub = Path(module.__file__ or "").with_suffix(".pyi").read_text("utf-8")
    imported = [alias for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom) for alias in node.names]
    names = {alias.asname for alias in imported if alias.asname}
    assert names - {"__version__"} == set(module.__all__)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_there(package: str) -> None:
    module = import_module(package)
    assert all(getattr(module, name) is not None for name in module.__all__)
    with pytest.raises(AttributeError, match="no attribute 'missing'"):
        module.missing  # noqa: B018


@pytest.mark.parametrize(("module", "name"), [(m, name) for m, names in MOVED.items() for name in names])
def test_what_moved_says_where_it_is(module: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=re.escape(f"{module}.{name} has moved")) as caught:
        moved = getattr(import_module(module), name)
    assert caught[0].filename == __file__
    new_name, home = re.findall(r"import (\w+) from ([\w.]+)\.$", str(caught[0].message))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert getattr(import_module(home), new_name) is moved


def test_a_moved_module_replaces_nothing() -> None:
    import_module("isotrope.statistics.block")
    with pytest.warns(DeprecationWarning, match="import prepare_rows from isotrope"):
        from isotrope.statistics import block

    assert block([[3.0, 4.0]]).norms.tolist() == [5.0]


def test_other_names_of_a_moved_module_are_not_there() -> None:
    with pytest.raises(ImportError, match="cannot import name 'missing'"):
        exec("from isotrope.sources.text_rows import missing")
    assert not hasattr(isotrope.sources, "text_files")
