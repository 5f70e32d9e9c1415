"""Names that mean harm, wherever a page shows one: layers, columns, groups, files, models, claims of a study."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.report import write_report
from isotrope.studies.page import format_page
from isotrope.studies.result import Claim, Part, Study, Table
from testkit.spaces import HOSTILE

NAMES = [*HOSTILE[:2], "]]><svg onload=window.harmed=3>", "<!--", "</title><style>*{}</style>", "{{ 7 * 7 }}{% raw %}"]


class Elements(HTMLParser):
    """The elements of a page with their attributes, and what stands in its script elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] == "script" and self.scripts:
            self.scripts[-1] += data


def _scanned(folder: Path, names: list[str]) -> Path:
    """A run whose file, column, groups, layer, model and notes have these names; `names` may be harmless."""
    rng = np.random.default_rng(0)
    kinds = rng.choice(names, size=300)
    path = folder / (names[1].replace("/", "") + ".parquet")
    pd.DataFrame({names[0]: list(rng.normal(size=(300, 4))), names[2]: kinds}).to_parquet(path)
    found = isotrope.scan(vectors=path, column=names[0], group_by=names[2], sample=100)
    found.layer_names = {"0": names[0]}
    found.source |= {"model": names[1], "revision": names[2], names[0]: names[1]}
    found.provenance |= {"command": names[3], "platform": names[4], names[5]: names[5]}
    found.counts[names[0]] = 3
    out = folder / "report.html"
    write_report(found, out)
    return out


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return _scanned(tmp_path_factory.mktemp("hostile"), NAMES)


def test_a_report_has_the_same_elements(hostile: Path, tmp_path: Path) -> None:
    found = Elements(hostile.read_text("utf-8"))
    plain = Elements(_scanned(tmp_path, [f"name{i}" for i in range(len(NAMES))]).read_text("utf-8"))
    assert found.tags == plain.tags
    assert found.attributes == plain.attributes
    assert len(found.scripts) == 2
    data = json.loads(next(text for text in found.scripts if text.startswith("{")))
    assert data["runs"][0]["source"]["model"] == NAMES[1]
    assert {line["group"] for line in data["runs"][0]["groups"]} == set(NAMES)


def test_a_browser_runs_none_of_it(hostile: Path, browser: Any) -> None:
    browser.get(hostile.as_uri())
    assert browser.execute_script("return document.documentElement.dataset.ready") == "true"
    assert browser.execute_script("return window.harmed") is None
    assert browser.execute_script("return document.querySelectorAll('script').length") == 2
    assert browser.execute_script("return document.querySelectorAll('img, svg[onload], main style').length") == 0
    assert NAMES[0] in browser.execute_script("return document.documentElement.textContent")


def _study(names: list[str]) -> str:
    table = Table(names[0], names[1], pd.DataFrame({names[2]: [names[3]], names[4]: [1.0]}))
    claim = Claim("contradicts", names[5], names[0], 1.0, 2.0)
    return format_page(
        [Study(names[1], names[2], [Part(names[3], "parts/x", [table], [claim], [])], {}, {})], Path(".")
    )


def test_a_page_of_a_study() -> None:
    found, plain = Elements(_study(NAMES)), Elements(_study([f"name{i}" for i in range(len(NAMES))]))
    assert found.tags == plain.tags
    assert found.attributes == plain.attributes
    assert found.scripts == []
