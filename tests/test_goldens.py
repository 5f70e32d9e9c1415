"""The findings of five small inputs are those that were recorded."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from goldens import FOLDER, RECORD
from goldens.fingerprint import fingerprint
from goldens.inputs import GOLDENS, one_thread
from goldens.plain import find_differences, to_plain

#: Relative tolerance on a machine with the recorded fingerprint.
EXACT = 1e-12


def _read(name: str) -> dict[str, Any]:
    recorded: dict[str, Any] = json.loads((FOLDER / "findings" / f"{name}.json").read_text("utf-8"))
    return recorded


@pytest.mark.parametrize("name", GOLDENS)
def test_findings_are_those_recorded(name: str, tmp_path: Path) -> None:
    golden, recorded = GOLDENS[name], _read(name)
    for package in golden.needs:
        pytest.importorskip(package)
    with one_thread("torch" in golden.needs):
        found = to_plain(golden.scan(tmp_path))
    tolerance = EXACT if fingerprint(golden.needs) == recorded["fingerprint"] else golden.elsewhere
    differences = find_differences(recorded, found, tolerance)
    assert not differences, "\n".join(
        [f"{len(differences)} differences; after a deliberate change: {RECORD} findings", *differences[:20]]
    )


@pytest.mark.parametrize("name", GOLDENS)
def test_this_machine_compares_to_twelve_digits(name: str) -> None:
    """Say so where it does not."""
    golden, recorded = GOLDENS[name], _read(name)
    for package in golden.needs:
        pytest.importorskip(package)
    if fingerprint(golden.needs) != recorded["fingerprint"]:
        pytest.skip(f"recorded on another kind of machine ({recorded['fingerprint']}): compared to {golden.elsewhere}")


def test_every_recorded_file_has_an_input() -> None:
    assert {path.stem for path in (FOLDER / "findings").iterdir()} == GOLDENS.keys()


@pytest.mark.parametrize(
    ("key", "change"), [("value", 1 + 1e-11), ("low", 1 - 1e-11), ("null", 1 + 1e-11), ("n", 2), ("measure", 2)]
)
def test_a_change_is_found(key: str, change: float) -> None:
    recorded = _read("vectors")
    changed = copy.deepcopy(recorded)
    at = next(r for r in changed["readings"] if r["low"] and r["null"])
    at[key] *= change
    assert not find_differences(recorded, copy.deepcopy(recorded), EXACT)
    assert find_differences(recorded, changed, EXACT)


@pytest.mark.parametrize("key", ["verdict", "statements", "counts", "readings"])
def test_what_is_missing_is_found(key: str) -> None:
    recorded = _read("tokens")
    changed = copy.deepcopy(recorded)
    changed[key] = type(changed[key])()
    assert find_differences(recorded, changed, EXACT)
    changed = copy.deepcopy(recorded)
    changed["readings"][0]["value"] = None
    assert find_differences(recorded, changed, EXACT)
