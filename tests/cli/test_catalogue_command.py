"""isotrope catalogue: every measure, whole."""

from __future__ import annotations

import pytest

from isotrope.measures import GROUPS, MEASURES
from testkit.command import Command, one_sentence


def test_lists_every_measure(isotrope: Command) -> None:
    result = isotrope("catalogue")
    assert (result.code, result.err) == (0, "")
    first = [line.split()[0] for line in result.out.splitlines() if line.strip()]
    assert set(MEASURES.names()) <= set(first)


def test_json_has_what_there_is_to_say(isotrope: Command) -> None:
    records = isotrope("catalogue", "--json").json
    assert [r["name"] for r in records] == MEASURES.names()
    for record in records:
        for field in ("formula", "range", "blind", "paper", "says", "title", "needs"):
            assert record[field], (record["name"], field)
        assert record["better"] in ("higher", "lower", None)


@pytest.mark.parametrize("name", ["isoscore", "explained_variance_7"])
def test_one(name: str, isotrope: Command) -> None:
    out = isotrope("catalogue", name).out
    for label in ("formula", "range", "better", "blind to", "paper", "unchanged by", "interval"):
        assert label in out
    assert [r["name"] for r in isotrope("catalogue", name, "--json").json] == [name]


def test_what_others_get_wrong(isotrope: Command) -> None:
    assert "bottom k" in isotrope("catalogue", "explained_variance_7").out
    assert "known wrong" not in isotrope("catalogue", "drift_norm").out


def test_an_interval_says_what_it_is_about(isotrope: Command) -> None:
    assert "of the value at this number of rows" in isotrope("catalogue", "intrinsic_dimension_mle").out
    assert "isotrope.measures.lsds(X, Z)" in isotrope("catalogue", "lsds").out


def test_a_group(isotrope: Command) -> None:
    for group in GROUPS:
        records = isotrope("catalogue", group, "--json").json
        assert {r["group"] for r in records} == {group}


def test_unknown(isotrope: Command) -> None:
    assert "did you mean 'isoscore'" in one_sentence(isotrope("catalogue", "isoscor"))
