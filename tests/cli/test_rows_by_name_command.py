"""isotrope scan with ids and texts: what it prints, and what it refuses."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from rich.cells import cell_len

from isotrope.cli.output import SafeConsole
from isotrope.cli.row_listing import print_rows
from isotrope.findings import Findings
from testkit.command import Command, one_sentence

IDS = [f"https://example.org/documents/{i:06d}" for i in range(600)]
TEXTS = [f"Document {i} says many words, of which only the first fit into a line." for i in range(600)]


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    rows = np.random.default_rng(0).normal(size=(600, 12)).astype(np.float32)
    rows[3], rows[50:53] = 0.0, rows[49]
    path = tmp_path / "vectors.parquet"
    pd.DataFrame({"url": IDS, "body": TEXTS, "vector": list(rows)}).to_parquet(path)
    return path


def test_json_names_rows(isotrope: Command, vectors: Path) -> None:
    options = ("--id-column", "url", "--text-column", "body", "--measures", "mean_cosine", "--json")
    rows = isotrope("scan", vectors, *options).json["rows"]
    assert rows["zero"] == [{"id": IDS[3], "row": 3, "text": TEXTS[3], "layer": 0}]
    assert [row["id"] for row in rows["duplicates"]] == IDS[49:53]


def test_the_terminal_names_rows(isotrope: Command, vectors: Path) -> None:
    options = ("--id-column", "url", "--text-column", "body", "--measures", "mean_cosine", "-o", "run")
    shown = isotrope("scan", vectors, *options).out
    assert "zero (1)" in shown
    assert "4 equal" in shown
    assert TEXTS[3] in shown
    assert "of 599 rows that were compared with each other" in shown


def make_findings(ids: list[str], texts: list[str | None]) -> Findings:
    rows: list[dict[str, Any]] = []
    for number, (name, text) in enumerate(zip(ids, texts, strict=True)):
        row = {"id": name, "row": number, "layer": 0, "occurrences": 90 - number, "cosine": 0.5, "outlier_score": 7.0}
        rows.append(row if text is None else row | {"text": text})
    return Findings(
        [], rows={"hubs": rows, "outliers": rows}, counts={"examined_rows": 600, "hub_rows": 12, "outlier_rows": 9}
    )


def print_to_text(findings: Findings, width: int) -> list[str]:
    file = io.StringIO()
    out = SafeConsole(file=file, width=width, force_terminal=True, color_system=None, markup=False, highlight=False)
    print_rows(out, findings)
    return file.getvalue().splitlines()


@pytest.mark.parametrize("width", [80, 100, 60])
def test_lines_fit_and_five_are_shown(width: int) -> None:
    lines = print_to_text(make_findings(IDS[:9], [*TEXTS[:9]]), width)
    assert all(cell_len(line) <= width for line in lines)
    assert sum("lists" in line for line in lines) == 5
    assert any(line.startswith("hubs (12)") for line in lines)
    assert any(line.startswith("outliers (9)") for line in lines)


def test_wide_characters_and_controls_stay_within_the_line() -> None:
    lines = print_to_text(make_findings(["東京" * 30, "a\x1b[31mb\n"], ["説明" * 100, None]), 80)
    assert all(cell_len(line) <= 80 for line in lines)
    assert not any("\x1b" in line for line in lines)


def test_without_texts_there_is_no_column_of_them() -> None:
    assert "text" not in print_to_text(make_findings(["a", "b"], [None, None]), 80)[1]


def test_models_have_no_list() -> None:
    findings = Findings([], rows={"extreme": [{"id": 1, "layer": 3, "position": 0}]})
    assert print_to_text(findings, 80) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--id-column", "uri"), "has the columns url, body"),
        (("--id-column", "group"), "the ids of"),
        (("--id-column", "ids.txt"), "holds 2 ids and there are 600 rows"),
        (("--text-column", "nowhere.txt"), "nor is there such a file"),
        (("--id-column", "holes"), "has no id"),
    ],
)
def test_names_that_cannot_be_used(isotrope: Command, vectors: Path, options: tuple[str, ...], said: str) -> None:
    Path("ids.txt").write_text("a\nb\n")
    table = pd.read_parquet(vectors)
    if options[1] in ("group", "holes"):
        table["group"], table["holes"] = "same", [None, *IDS[1:]]
        table.to_parquet(vectors)
    assert said in one_sentence(isotrope("scan", vectors, *options, "-o", "run"))
    assert not Path("run").exists()
