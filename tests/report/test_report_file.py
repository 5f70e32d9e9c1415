"""The file itself: the verdict agrees with the numbers, nothing in it can run, and it is small."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError, StoreError
from isotrope.report.headline import find_level, list_numbers
from isotrope.report.html import script_json
from testkit.spaces import HOSTILE

RNG = np.random.default_rng(8)


def _rows(n: int, d: int) -> np.ndarray:
    return np.random.default_rng([n, d]).normal(size=(n, d))


class Words(HTMLParser):
    """The text of the heading, and every element."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.heading = ""

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "h1" and not self.heading:
            self.heading = data.strip()


@pytest.mark.parametrize(
    ("rows", "word", "worst"),
    [
        (_rows(3000, 16), "Healthy", 0),
        (_rows(3000, 16) + 4.0, "Narrow", 1),  # its neighbours are sound
        (_rows(3000, 16) + 0.8, "Leaning", 1),  # drifted by c in every coordinate: mean cosine about c²/(1 + c²)
        (_rows(3000, 2) @ _rows(2, 40), "Few directions", 2),
        (_rows(20, 4), "Too few rows", None),
        (_rows(100, 200), "Too few rows", None),
    ],
)
def test_the_verdict_agrees_with_the_numbers(rows: np.ndarray, word: str, worst: int | None, tmp_path: Path) -> None:
    findings = isotrope.scan(vectors=rows)
    page = Words()
    page.feed(findings.report(tmp_path / "report.html").read_text("utf-8"))
    assert page.heading == word
    assert find_level(findings) == worst
    shown = {n["measure"]: n["value"] for n in list_numbers(findings)}
    assert set(shown) == {"mean_cosine", "drift_share", "isoscore"}
    for name, value in shown.items():
        assert value == findings.get(name).value
    units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    pairs = (np.square(units.sum(axis=0)).sum() - len(rows)) / (len(rows) * (len(rows) - 1))
    assert shown["mean_cosine"] == pytest.approx(pairs, abs=1e-9)


def test_nothing_can_leave_a_script_element() -> None:
    text = script_json(HOSTILE)
    assert not re.search("[<>&\u2028\u2029]", text)
    assert json.loads(text) == HOSTILE


def test_elements_come_from_the_template_alone(tokens: Path, vectors: Path) -> None:
    pages = [Words(), Words()]
    for page, run in zip(pages, (tokens, vectors), strict=True):
        page.feed((run / "report.html").read_text("utf-8"))
    for page in pages:
        assert page.tags.count("script") == 2
        assert not {"img", "iframe", "object", "b", "i"} & set(page.tags)


def test_no_address_in_the_file(vectors: Path) -> None:
    text = (vectors / "report.html").read_text("utf-8")
    assert set(re.findall(r"https?://[\w.]+", text)) <= {"http://www.w3.org"}  # a name of SVG's, which is not fetched


def test_a_scan_ends_in_a_report_and_it_can_be_made_again(vectors: Path, tmp_path: Path) -> None:
    first = (vectors / "report.html").read_bytes()
    assert isotrope.write_report(vectors, tmp_path / "again.html").read_bytes() == first


def test_what_lies_in_the_folder_and_cannot_be_read_is_said(tmp_path: Path) -> None:
    isotrope.scan(vectors=RNG.normal(size=(100, 4)), output=tmp_path / "run")
    (tmp_path / "run" / "sts.json").write_text("{", "utf-8")
    text = isotrope.write_report(tmp_path / "run").read_text("utf-8")
    assert "sts.json lies in the run folder, and could not be read as JSON." in text


def test_without_rows_there_are_no_maps(tmp_path: Path) -> None:
    isotrope.scan(vectors=RNG.normal(size=(100, 4)), sample=0, output=tmp_path / "run")
    assert not (tmp_path / "run" / "tables" / "maps.parquet").exists()
    assert (tmp_path / "run" / "report.html").exists()


@pytest.mark.parametrize("rows", [np.ones((50, 3)), np.arange(8.0).reshape(4, 2), RNG.normal(size=(9, 1))])
def test_odd_spaces_are_reported_too(rows: np.ndarray, tmp_path: Path) -> None:
    isotrope.scan(vectors=rows, output=tmp_path / "run")
    assert (tmp_path / "run" / "report.html").stat().st_size > 50_000


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is not a run"):
        isotrope.write_report(tmp_path)
    isotrope.scan(vectors=RNG.normal(size=(60, 4)), output=tmp_path / "run")
    with pytest.raises(InputError, match="at least two runs"):
        isotrope.write_comparison([tmp_path / "run"], tmp_path / "c.html")
