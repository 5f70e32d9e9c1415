"""Repairs by name and settings in one word."""

from __future__ import annotations

import pytest

from isotrope.errors import InputError
from isotrope.repairs import REPAIRS, SoftDecay, named


@pytest.mark.parametrize("name", REPAIRS.names())
def test_a_name_alone_means_the_defaults(name: str) -> None:
    assert type(named(name)) is REPAIRS.get(name)
    assert named(name).get_params() == REPAIRS.get(name)().get_params()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("softdecay:alpha=-0.2", "SoftDecay(alpha=-0.2)"),
        ("softdecay:form=paper:normalize=true", "SoftDecay(form='paper', normalize=True)"),
        ("softdecay:tolerance=1e-5", "SoftDecay(tolerance=1e-05)"),
        ("whitening:strength=0.5:n_components=256", "Whitening(n_components=256, strength=0.5)"),
        ("whitening:dimensions=none", "Whitening()"),
        ("all-but-the-top:directions=3", "AllButTheTop(n_directions=3)"),
        ("clusters:directions=5:seed=2", "ClusterIsotropy(directions=5, seed=2)"),
    ],
)
def test_settings(text: str, expected: str) -> None:
    assert repr(named(text)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("softdeccay", "no repair 'softdeccay'; did you mean 'softdecay'"),
        ("softdecay:beta=1", "softdecay has no setting 'beta=1', expected name=value with one of: alpha, form"),
        ("softdecay:alpha", "no setting 'alpha', expected name=value"),
        ("softdecay:alpha=strong", "got 'alpha=strong', expected a number"),
        ("softdecay:form=1", "got 'form=1', expected a word"),
        ("centering:directions=1", "centering has no setting 'directions=1'"),
    ],
)
def test_bad_names(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        named(text)


def test_each_is_a_repair_of_its_own() -> None:
    assert named("softdecay:alpha=-0.1").get_params() != SoftDecay().get_params()
    assert named("softdecay").get_params() == SoftDecay().get_params()
