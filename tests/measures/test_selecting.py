"""Choosing measures by name, group and family."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.measures import GROUPS, MEASURES, get, select


def test_a_family_takes_its_parameter_from_its_name() -> None:
    m = get("explained_variance_3")
    assert (m.name, m.title) == ("explained_variance_3", "Explained variance, top 3")
    rows = np.random.default_rng(0).standard_normal((50, 6))
    assert m(rows) == get("explained_variance_1")(rows, k=3)
    assert m.bounds(50, 6) == (0.5, 1.0)
    assert get("explained_variance_9").bounds(50, 6) == (1.0, 1.0)
    assert get("explained_variance_6")(rows) == pytest.approx(1.0)
    assert "explained_variance_3" not in MEASURES


@pytest.mark.parametrize("name", ["explained_variance_0", "explained_variance_x", "isoscor", "", "isoscore_2"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="there is no measure"):
        get(name)


def test_groups_names_and_all() -> None:
    assert [m.name for m in select("isoscore,eee, isoscore")] == ["isoscore", "eee"]
    assert [m.name for m in select(["isoscore"])] == ["isoscore"]
    assert select(["eee", "all"])[0].name == "eee"
    for group in GROUPS:
        assert {m.group for m in select(group)} == {group}
    assert sum(len(select(group)) for group in GROUPS) == len(select("all")) == len(select(None))


def test_everything_leaves_out_what_needs_two_spaces() -> None:
    assert {m.name for m in MEASURES} - {m.name for m in select("all")} == {"lsds"}
    assert [m.name for m in select("lsds")] == ["lsds"]


def test_nothing_and_misspelt_groups_are_refused() -> None:
    with pytest.raises(InputError, match="no measure was named"):
        select(" , ")
    with pytest.raises(InputError, match="did you mean 'tokens'"):
        select("token")
