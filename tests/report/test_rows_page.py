"""Rows by name in the report, in a real browser: names are text, the histogram is drawn, and a phone has room."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.report.row_data import pack_rows
from isotrope.runs.run import Run
from testkit.spaces import HOSTILE


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 900 rows with a zero row, copies and an outlier, whose names mean harm."""
    folder = tmp_path_factory.mktemp("runs") / "named"
    rng = np.random.default_rng(3)
    rows = 3.0 * np.eye(12)[0] + 0.3 * rng.normal(size=(900, 12))
    rows[4], rows[7], rows[20:23] = 0.0, -np.eye(12)[2], rows[19]
    ids = [f"{HOSTILE[0]}-{i}-{'long' * 20}" for i in range(900)]
    texts = [f"{HOSTILE[1]} text {i} " * 9 for i in range(900)]
    isotrope.scan(vectors=rows, id_column=ids, text_column=texts, measures="mean_cosine", output=folder)
    return folder


def test_a_page_holds_bins_and_cutoffs(run: Path) -> None:
    packed = pack_rows(Run(run).findings())
    json.dumps(packed, allow_nan=False)
    cosines = packed["cosines"]
    assert sum(cosines["nearest"]) == 899
    assert sum(cosines["background"]) == 899 * 898 // 2
    assert [rate for rate, _ in cosines["cutoffs"]] == [0.01, 0.001]
    assert packed["rows"]["zero"][0]["row"] == 4
    assert [row["row"] for row in packed["rows"]["duplicates"][:4]] == [19, 20, 21, 22]
    assert packed["rows"]["outliers"][0]["row"] == 7


def test_tokens_have_no_rows_by_name(tokens: Path) -> None:
    assert pack_rows(Run(tokens).findings()) == {"rows": {}, "cosines": None}


@pytest.fixture(scope="module")
def page(browser: Any, run: Path) -> Any:
    browser.get_log("browser")
    browser.get((run / "report.html").as_uri())
    assert browser.get_log("browser") == []
    return browser


def test_names_are_text(page: Any) -> None:
    assert page.execute_script("return window.harmed") is None
    ids = page.execute_script("return [...document.querySelectorAll('#rows td .row-id')].map((e) => e.textContent)")
    assert any("-4-long" in shown for shown in ids)
    titles = page.execute_script("return [...document.querySelectorAll('#rows h3')].map((e) => e.textContent)")
    assert titles[0] == "Cosines"
    assert {"Duplicates", "Outliers", "Zero rows"} <= {title.partition(" (")[0] for title in titles}


def test_the_histogram_has_two_hills_and_the_cutoffs(page: Any) -> None:
    count = "return document.querySelectorAll(arguments[0]).length"
    assert page.execute_script(count, "#rows svg.chart path.line") == 2
    assert page.execute_script(count, "#rows svg.chart line.cut") == 2


@pytest.mark.parametrize("width", [360, 420])
def test_a_phone_has_room_for_the_tables(width: int, page: Any) -> None:
    size = {"width": width, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    beyond = (
        "return [...document.querySelectorAll('#rows .scroll')].filter((e) => e.scrollWidth > e.clientWidth + 1).length"
    )
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.execute_script(beyond) == 0
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
