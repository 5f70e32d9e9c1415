"""Choosing measures by name, group and family."""

from __future__ import annotations

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.gate import check, parse
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


SHORT = [name.removesuffix("_additive") for name in MEASURES.names() if name.endswith("_additive")]


@pytest.mark.parametrize("short", SHORT)
@pytest.mark.parametrize("settings", ["", "_4x16"])
def test_a_measure_has_the_name_that_was_asked_for(short: str, settings: str) -> None:
    full = get(f"{short}_additive{settings}")
    assert [m.name for m in select(f"{short}{settings}")] == [f"{short}{settings}"]
    assert [m.name for m in select([f"{short}{settings}", full.name])] == [f"{short}{settings}", full.name]
    assert get(f"{short}{settings}").parameters == full.parameters


def test_results_carry_the_names_that_were_asked_for() -> None:
    rows = np.random.default_rng(0).standard_normal((300, 8))
    found = isotrope.measure(rows, ["point_patchiness_4x16", "point_patchiness_additive_4x16", "explained_variance_2"])
    assert list(found) == ["point_patchiness_4x16", "point_patchiness_additive_4x16", "explained_variance_2"]
    assert found["point_patchiness_4x16"] == found["point_patchiness_additive_4x16"]
    assert set(isotrope.measure(rows, "quantized_4x16")) == {m.name for m in select("quantized_4x16")}


@pytest.mark.parametrize("asked", ["point_patchiness_4x16", "point_patchiness_additive_4x16"])
@pytest.mark.parametrize("looked_up", ["point_patchiness_4x16", "point_patchiness_additive_4x16"])
def test_a_reading_is_found_under_both_names(asked: str, looked_up: str) -> None:
    findings = isotrope.scan(vectors=np.random.default_rng(0).standard_normal((300, 8)), measures=asked)
    assert [r.measure for r in findings.readings] == [asked]
    assert findings.get(looked_up) is findings.readings[0]
    assert check(parse(f"{looked_up} > 0"), findings).failed
    with pytest.raises(InputError, match="no reading of 'point_patchiness_product_4x16'"):
        findings.get("point_patchiness_product_4x16")
