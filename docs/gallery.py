"""Takes the pictures of the gallery from two runs' reports: python docs/gallery.py MINILM_RUN SMOLLM2_RUN

Needs Chromium with its driver, selenium and pillow. Each picture is a part of a report as a reader sees it.
"""

from __future__ import annotations

import base64
import io
import shutil
import sys
import time
from pathlib import Path
from typing import Any

PICTURES = Path(__file__).parent / "images" / "report"

#: Colours that a picture may have: sharp letters, and small files.
_COLOURS = 128

#: Name, which run, what to bring into view, width, height, and whether at night.
_SHOTS = [
    ("minilm", 0, None, 1180, 620, False),
    ("smollm2", 1, None, 1180, 860, False),
    ("layers", 1, "#layers h2", 1180, 820, False),
    ("slider", 1, "#layer .pair", 1180, 620, False),
    ("map", 0, ".map", 1180, 760, True),
    ("tokens", 1, "#tokens h2", 1180, 620, True),
]


def main(minilm: str, smollm2: str) -> None:
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    PICTURES.mkdir(parents=True, exist_ok=True)
    for name, run, part, width, height, night in _SHOTS:
        _appear(browser, width, height, night)
        browser.get((Path((minilm, smollm2)[run]).absolute() / "report.html").as_uri())
        if part:
            browser.execute_script(
                "const top = document.querySelector(arguments[0]).getBoundingClientRect().top;"
                "window.scrollTo({top: top + scrollY - 120, behavior: 'instant'})",
                part,
            )
        time.sleep(1.5)  # until it is drawn
        _save(browser, PICTURES / f"{name}.png")
    browser.quit()


def _appear(browser: Any, width: int, height: int, night: bool) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    scheme = {"name": "prefers-color-scheme", "value": "dark" if night else "light"}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})


def _save(browser: Any, file: Path) -> None:
    from PIL import Image

    taken = base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])
    Image.open(io.BytesIO(taken)).convert("RGB").quantize(_COLOURS).save(file, optimize=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
