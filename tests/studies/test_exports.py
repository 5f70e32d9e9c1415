"""The public names of the studies can be imported, and the package itself imports none of them."""

from __future__ import annotations

import subprocess
import sys
from inspect import isfunction, ismodule

import pytest

from isotrope import studies


@pytest.mark.parametrize("name", studies.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(studies, name) is not None


@pytest.mark.parametrize("name", ["anisotropy", "latent_geometry", "norm_variance", "uniformity"])
def test_each_study_is_a_package_with_a_function_of_its_name(name: str) -> None:
    package = getattr(studies, name)
    assert ismodule(package)
    assert isfunction(getattr(package, name))


def test_an_unknown_name_is_no_attribute() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        studies.nothing  # noqa: B018


def test_importing_the_package_imports_no_study() -> None:
    code = "import sys, isotrope.studies; print([name for name in sys.modules if name.startswith('isotrope.studies.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
