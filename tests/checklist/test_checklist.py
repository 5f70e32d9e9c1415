"""The checklist of the four papers: each of its 224 items names the test or the command that shows it.

`checklist.csv` has one row for each statement of a paper: id, paper, place, statement, shown_by and remark. `shown_by`
holds tests (`tests/FILE.py::NAME`) and commands (`isotrope ...`), separated by semicolons. A command of a study may be
followed by the part, table and figure of its result, as in
`isotrope study NAME ...: part 'MODEL layers', table layers, figure drift`.
"""

from __future__ import annotations

import ast
import csv
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import isotrope

ROOT = Path(__file__).resolve().parents[2]
STUDIES = Path(isotrope.__file__).parent / "studies"
FIGURES = Path(isotrope.__file__).parent / "figures"

with (Path(__file__).parent / "checklist.csv").open(encoding="utf-8", newline="") as file:
    ITEMS: list[dict[str, Any]] = list(csv.DictReader(file))

#: Items of each paper; the number D28 was never given.
PAPERS = {"A": ("uniformity", 75), "B": ("anisotropy", 54), "C": ("latent-geometry", 53), "D": ("norm-variance", 42)}

RESULT = re.compile(r"(part|table|figure) (?:'([^']+)'|([\w-]+))")


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@cache
def texts_of(folder: Path) -> str:
    """All string constants of the modules in a folder, and the files of its parent's modules."""
    modules = [*folder.rglob("*.py"), *STUDIES.glob("*.py"), *FIGURES.glob("*.py")]
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in modules]
    found = [
        n.value for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
    ]
    return "\n".join(found)


def references(item: dict[str, Any]) -> list[str]:
    return [one.strip() for one in item["shown_by"].split("; ") if one.strip()]


def test_there_are_224_items() -> None:
    expected = {f"{letter}{i}": paper for letter, (paper, n) in PAPERS.items() for i in range(1, n + 1)}
    expected.pop("D28")
    expected["D43"] = "norm-variance"
    assert {item["id"]: item["paper"] for item in ITEMS} == expected
    assert len(ITEMS) == 224


@pytest.mark.parametrize("item", ITEMS, ids=[item["id"] for item in ITEMS])
def test_every_item_names_what_shows_it(item: dict[str, Any]) -> None:
    assert item["place"]
    assert item["statement"]
    assert references(item)
    for one in references(item):
        if one.startswith("tests/"):
            path, _, name = one.partition("::")
            assert name.split("[")[0].rpartition("::")[2] in functions_of(ROOT / path), one
        else:
            check_command(one)


def check_command(command: str) -> None:
    """The study, and the parts, tables and figures that a command names, are in the source."""
    words = command.split()
    assert words[0] == "isotrope", command
    if words[1] != "study":
        return
    study = words[2].rstrip(":")
    folder = STUDIES / study.replace("-", "_")
    assert folder.is_dir(), command
    for _, quoted, plain in RESULT.findall(command.partition(": ")[2]):
        name = (quoted or plain).removeprefix("MODEL ").removesuffix("SET")
        assert name in texts_of(folder), f"{command}: {name}"
