"""Runs to report on, and one browser for all tests that need it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.readings.selected_measures import resolve_measures
from isotrope.runs.run import Run
from isotrope.scanner import scan_source
from testkit.spaces import Tokens

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1280,900 about:blank"
)


@pytest.fixture(scope="session")
def tokens(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a scan of tokens, with advice and an evaluation beside it."""
    folder = tmp_path_factory.mktemp("runs") / "tokens"
    scan_source(Tokens(), resolve_measures("moments,tokens,sequences"), run=Run(folder))
    advice = {
        "advice": "softdecay",
        "parameters": {"alpha": -0.4},
        "reasons": ["<u>Because</u> it helps."],
        "rows": 1200,
    }
    scores = [
        {"set": "sts-b", "repair": "none", "spearman": 61.5},
        {"set": "sts-b", "repair": "softdecay", "spearman": 70.25},
    ]
    (folder / "advice.json").write_text(json.dumps(advice), "utf-8")
    (folder / "sts.json").write_text(json.dumps({"scores": scores}), "utf-8")
    isotrope.write_report(folder)
    return folder


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of a scan of plain vectors."""
    folder = tmp_path_factory.mktemp("runs") / "vectors"
    isotrope.scan(vectors=np.random.default_rng(5).normal(size=(600, 10)) + 0.2, output=folder)
    return folder


@pytest.fixture(scope="session")
def clustered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run folder of 300 rows in three directions, with quantized cells and with maps by t-SNE."""
    pytest.importorskip("openTSNE", reason="needs openTSNE (pip install 'isotrope[figures]')")
    folder = tmp_path_factory.mktemp("runs") / "clustered"
    rows = 20 * np.eye(3, 8)[np.arange(300) % 3] + np.random.default_rng(7).normal(size=(300, 8))
    isotrope.scan(vectors=rows, measures="moments,quantized", output=folder)
    isotrope.write_report(folder, tsne=True)
    return folder


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Debian's Chromium, driven by Selenium; where it is missing the tests say that they skipped."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium (pip install selenium)")
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("needs a browser: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in [*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('browser')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    opened = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    opened.set_page_load_timeout(110)
    yield opened
    opened.quit()
