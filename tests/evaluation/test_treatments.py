"""Repairs that an evaluation tries: named, saved, or made in Python."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.evaluation.treatments import parse_treatments
from isotrope.repairs import Centering, Flow, Whitening

ROWS = np.random.default_rng(0).normal(size=(50, 4)) + 1.0


def test_no_repair_comes_first_and_once() -> None:
    found = parse_treatments(["centering", "none", "softdecay:alpha=-0.2", "centering"])
    assert [t.name for t in found] == ["none", "centering", "softdecay:alpha=-0.2"]
    assert found[0].ready
    assert found[0](ROWS) is ROWS
    assert found[0].fit(ROWS, "own", "a text").fitted_on is None


def test_what_is_named_is_fitted_each_time_anew() -> None:
    _, centering = parse_treatments(["centering"])
    first, second = centering.fit(ROWS, "own", "a text"), centering.fit(ROWS + 5, "own", "a text")
    assert (first.fitted_on, centering.ready, first.ready) == ("own", False, True)
    np.testing.assert_allclose(first(ROWS), ROWS - ROWS.mean(axis=0))
    np.testing.assert_allclose(second(ROWS), ROWS - ROWS.mean(axis=0) - 5)
    assert second.fit(ROWS, "another", "a text") is second


def test_what_was_fitted_before_stays(tmp_path: Path) -> None:
    Centering().fit(ROWS).save(tmp_path / "saved")
    for given in (str(tmp_path / "saved"), tmp_path / "saved", Centering().fit(ROWS)):
        _, found = parse_treatments([given])
        assert found.fitted_on == "as saved"
        np.testing.assert_allclose(found.fit(ROWS + 9, "own", "")(ROWS), ROWS - ROWS.mean(axis=0))


def test_a_name_goes_before_a_folder_of_that_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Whitening().fit(ROWS).save("centering")
    assert not parse_treatments(["centering"])[1].ready
    assert parse_treatments(["./centering"])[1].ready


def test_seeds() -> None:
    assert [
        t.repair.get_params()["seed"] for t in parse_treatments(["flow", "clusters:seed=3"], seed=7)[1:] if t.repair
    ] == [
        7,
        3,
    ]
    assert parse_treatments([Flow(seed=5)], seed=7)[1].repair.get_params()["seed"] == 5


def test_bad_input(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no folder '.*nowhere' with a saved repair"):
        parse_treatments([str(tmp_path / "nowhere")])
    _, found = parse_treatments([Centering().fit(ROWS)])
    found.check_width(4)
    with pytest.raises(InputError, match=r"Centering\(\) is for rows of width 4, the rows here are of width 8"):
        found.check_width(8)
    with pytest.raises(InputError, match=r"whitening cannot be fitted on wiki\.txt: got 3 rows of width 4"):
        parse_treatments(["whitening"])[1].fit(ROWS[:3], "wiki.txt", "wiki.txt")
