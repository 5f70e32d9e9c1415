"""How large the report of 30 layers and 20,000 points is, how long it takes to make, to open, and to redraw its map.

A made-up run of 30 layers of 384 dimensions with 20,000 sampled tokens of 8,000 types. Bars: under 10 MB, made in under
10 s once the maps are there, opened in under 3 s; a map that moves smoothly redraws in under 16 ms.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.pipeline import resolve_measures
from isotrope.report import write_report
from isotrope.runs.run import Run
from isotrope.scanner import scan_source
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Source
from machine import describe, seconds

LAYERS, WIDTH, ROWS, TYPES, LENGTH = 30, 384, 20_000, 8_000, 40

#: Draws the map twenty times by its own keys and says how long one took, in milliseconds.
REDRAW = """
const canvas = document.querySelector('.map canvas'), times = [];
for (let i = 0; i < 20; i++) {
  const begin = performance.now();
  canvas.dispatchEvent(new KeyboardEvent('keydown', {key: i % 2 ? 'ArrowLeft' : 'ArrowRight'}));
  times.push(performance.now() - begin);
}
return times.sort((a, b) => a - b)[10];
"""


class Drawn(Source):
    """Random tokens whose layers lean further and further."""

    unit, total, width = "texts", ROWS // LENGTH, WIDTH

    def __init__(self) -> None:
        self.layers: list[Layer] = list(range(LAYERS))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        rng = np.random.default_rng(0)
        token = np.minimum(rng.zipf(1.3, size=ROWS), TYPES) - 1
        known = Rows(
            np.repeat(np.arange(ROWS // LENGTH, dtype=np.uint64), LENGTH),
            token.astype(np.int64),
            np.tile(np.arange(LENGTH), ROWS // LENGTH),
            np.zeros(ROWS, dtype=bool),
        )
        rows = rng.standard_normal((ROWS, WIDTH), dtype=np.float32) * np.arange(1, WIDTH + 1, dtype=np.float32) ** -0.4
        if start == 0:
            yield Batch({k: rows + np.float32(0.05 * k) for k in range(LAYERS)}, known, {"texts": ROWS // LENGTH})

    def describe(self) -> dict[str, Any]:
        return {"kind": "model", "model": "made up", "width": WIDTH, "corpus": {"name": "random tokens"}}

    def token_names(self, tokens: NDArray[np.int64]) -> list[str]:
        return [f"token{i}" for i in tokens]


def main() -> None:
    print(describe())
    with tempfile.TemporaryDirectory() as folder:
        run = Run(Path(folder) / "run")
        scan_source(Drawn(), resolve_measures("mean_cosine,drift_norm,drift_share,isoscore,tokens"), run=run)
        file = run.folder / "report.html"
        again = seconds(lambda: write_report(run))
        print(f"size     {file.stat().st_size / 1e6:.1f} MB (bar 10)")
        print(f"made in  {again:.1f} s from a run whose maps are computed (bar 10)")
        _open(file)


def _open(file: Path) -> None:
    """Open the file three times in the system's browser, where there is one."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        print("opened   not measured: there is no chromium and chromedriver here")
        return
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "about:blank"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        times = sorted(seconds(lambda: browser.get(file.as_uri())) for _ in range(3))
        print(f"opened   in {times[1]:.2f} s, the middle of three (bar 3)")
        print(f"redrawn  in {browser.execute_script(REDRAW):.1f} ms, 20,000 points (bar 16)")
    finally:
        browser.quit()


if __name__ == "__main__":
    main()
