"""The report in a real browser: what is clicked, moved and typed does what it says, and nothing leaves the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.measures import get
from isotrope.readings.selected_measures import resolve_measures
from isotrope.repairs import SoftDecay, Whitening
from isotrope.repairs.linear import LinearRepair
from isotrope.report import write_comparison
from isotrope.runs.layer_tests import compute_layer_tests
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics
from isotrope.scanner import scan_source
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Source
from testkit.spaces import HOSTILE, LAYERS, Tokens

#: Collects what the page would have saved as files.
CATCH = """
window.saved = [];
const make = URL.createObjectURL;
URL.createObjectURL = (blob) => { blob.text().then((text) => window.saved.push(text)); return make(blob); };
"""


@pytest.fixture(scope="module")
def page(browser: Any, tokens: Path) -> Any:
    """The report of tokens, opened once; what the browser logged meanwhile is kept in `opened_with`."""
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get((tokens / "report.html").as_uri())
    browser.execute_script(CATCH)
    browser.opened_with = _requests(browser), browser.get_log("browser")
    return browser


def _requests(browser: Any) -> list[str]:
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]


def _all(browser: Any, css: str) -> list[Any]:
    return browser.find_elements("css selector", css)


def _text(browser: Any, css: str) -> str:
    return str(browser.execute_script("return document.querySelector(arguments[0]).textContent", css))


def _set(browser: Any, css: str, value: float | str) -> None:
    """Move a slider, or type, and let go."""
    code = """
    const input = document.querySelector(arguments[0]); input.value = arguments[1];
    for (const name of ["input", "change"]) input.dispatchEvent(new Event(name, {bubbles: true}));
    """
    browser.execute_script(code, css, str(value))


def _pick(browser: Any, value: str) -> None:
    browser.execute_script("document.querySelector(`input[type=radio][value=${arguments[0]}]`).click()", value)


def _saved(browser: Any, label: str) -> str:
    """What a button of this label would have saved."""
    code = """
    const [label, done] = arguments; window.saved = [];
    document.querySelector(`[aria-label="${label}"]`).click();
    const wait = () => window.saved.length ? done(window.saved[0]) : setTimeout(wait, 20); wait();
    """
    return str(browser.execute_async_script(code, label))


def test_opens_without_a_request_or_an_error(page: Any, tokens: Path) -> None:
    requests, logged = page.opened_with
    assert [url for url in requests if not url.startswith("data:")] == [(tokens / "report.html").as_uri()]
    assert logged == []
    assert page.execute_script("return document.documentElement.dataset.ready") == "true"


def test_the_policy_would_stop_a_request(page: Any) -> None:
    code = "const done = arguments[0]; fetch('https://example.org').then(() => done('sent'), () => done('stopped'))"
    assert page.execute_async_script(code) == "stopped"
    page.get_log("browser")  # the browser's complaint about it


@pytest.mark.parametrize(
    ("choice", "moves", "repair"),
    [
        ("softdecay", [("#alpha", -0.37)], SoftDecay(-0.37, "paper")),
        ("softdecay", [("#alpha", -1.1)], SoftDecay(-1.1, "clipped")),
        ("softdecay", [("#alpha", -0.8)], SoftDecay(-0.8, "shifted")),
        ("whitening", [("#strength", 0.35)], Whitening(strength=0.35)),
        ("whitening", [("#strength", 1)], Whitening()),
    ],
)
def test_sliders_agree_with_python(
    choice: str, moves: list[tuple[str, float]], repair: LinearRepair, page: Any, tokens: Path
) -> None:
    _set(page, "select[aria-label=Layer]", LAYERS - 1)
    _pick(page, choice)
    if isinstance(repair, SoftDecay):
        _set(page, "#spectrum select", repair.form)
    for css, value in moves:
        _set(page, css, value)
    moments = SavedStatistics.of_run(Run(tokens)).load(LAYERS - 1).moments
    after = repair.fit_moments(moments).affine_.push(moments)
    cells = {
        row.get_attribute("data-measure"): [
            td.get_attribute("data-value") for td in row.find_elements("css selector", "td")[1:3]
        ]
        for row in _all(page, "table.after tbody tr")
    }
    assert len(cells) == 15
    for name, (before, now) in cells.items():
        assert float(before) == pytest.approx(get(name)(moments), abs=1e-6, rel=1e-6)
        if now:
            assert float(now) == pytest.approx(get(name)(after), abs=1e-6, rel=1e-6), name
        else:
            assert np.isnan(get(name)(after)), name
    lines = _saved(page, "Strength of each direction: download CSV").split()[1:]
    curve = np.array([[float(cell) for cell in line.split(",")] for line in lines])
    scale = 1.0 if isinstance(repair, SoftDecay) else np.sqrt(moments.n - 1)
    assert curve[:, 2] == pytest.approx(scale * repair.spectrum_ * repair.gains_, abs=1e-6, rel=1e-6)


def test_what_a_repair_changes_has_no_colour(page: Any) -> None:
    """The advice is shown instead: shape is no evidence."""
    _pick(page, "whitening")
    _set(page, "#strength", 1)
    assert _all(page, "table.after tr[data-measure]")
    colours = {cell.value_of_css_property("color") for cell in _all(page, "table.after tbody td:last-child")}
    assert len(colours) == 1
    assert not {"better", "worse"} & set(_text(page, "table.after").lower().split())
    said = _text(page, "figure.repairing")
    assert said.startswith("The advice is to repair it: softdecay<u>Because</u> it helps.")
    assert "isotrope evaluate sts" in said


def test_a_click_on_a_layer_goes_into_it(page: Any) -> None:
    page.execute_script("""
    const dot = document.querySelector('#layers .dot[data-layer="1"]'), box = dot.getBoundingClientRect();
    const at = {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
    dot.dispatchEvent(new PointerEvent('pointermove', at));
    window.told = document.getElementById('tooltip').textContent;
    dot.dispatchEvent(new MouseEvent('click', at));
    """)
    assert page.execute_script("return document.querySelector('select[aria-label=Layer]').value") == "1"
    value = Run(Path(page.current_url.removeprefix("file://")).parent).findings().get("mean_cosine", 1).value
    told = page.execute_script("return window.told")
    assert f"{value:.12f}"[:12] in told
    assert "How alike two random rows point" in told


def test_search_finds_every_row_of_a_token(page: Any, tokens: Path) -> None:
    _set(page, ".map input[type=search]", "word1")
    sample = pd.read_parquet(tokens / "tables" / "sample.parquet").query("layer == '1'")
    names = [i for i in range(len(HOSTILE), 40) if f"word{i}".startswith("word1")]
    status = page.execute_script("return document.querySelector('.map [role=status]').textContent")
    assert status.endswith(f", {sample['token'].isin(names).sum()} of them match")
    _set(page, ".map input[type=search]", "")


def test_the_token_table_sorts_and_filters(page: Any) -> None:
    values = "return [...document.querySelectorAll('#tokens tbody tr')].map((r) => r.children[4].dataset.value)"
    for direction in ("descending", "ascending"):
        page.execute_script("document.querySelectorAll('#tokens th button')[4].click()")
        assert page.execute_script("return document.querySelectorAll('#tokens th')[4].ariaSort") == direction
        found = [float(v) for v in page.execute_script(values)]
        assert found == sorted(found, reverse=direction == "descending")
        assert len(set(found)) > 5
    _set(page, "#tokens input[type=search]", "WORD17")
    assert [td.text for td in _all(page, "#tokens tbody td.token")] == ["word17"]
    _set(page, "#tokens input[type=search]", "")


def test_hostile_text_is_text(page: Any) -> None:
    page.execute_script(
        "document.querySelectorAll('#tokens th button')[1].click()"
    )  # most frequent first, which they are
    assert page.execute_script("return document.querySelectorAll('#tokens th')[1].ariaSort") == "descending"
    shown = page.execute_script("return document.querySelector('#tokens tbody').textContent")
    assert HOSTILE[0] in shown
    assert HOSTILE[1] in shown
    assert "\\u202eright to left" in shown
    assert "\\x07" in shown
    assert "␣spaced" in shown
    assert "(200 characters)" in shown
    assert page.execute_script("return window.harmed") is None
    assert page.execute_script("return document.querySelectorAll('script').length") == 2
    assert _all(page, "img, main b, main i:not([class]), main u") == []
    assert "'=HYPERLINK(1)" in _saved(page, "Token types: download CSV")


def test_advice_and_evaluation_are_shown(page: Any) -> None:
    shown = page.execute_script("return document.querySelector('#advice').textContent")
    assert "Repair it by softdecay (alpha = −0.4)" in shown
    assert "<u>Because</u> it helps." in shown
    assert "70.25" in shown


@pytest.mark.parametrize(
    "label", ["Mean cosine", "Strength of each direction", "Map", "Norm against variance", "Outlier dimensions"]
)
def test_every_figure_is_an_svg_of_its_own(label: str, page: Any) -> None:
    text = _saved(page, f"{label}: download SVG")
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(root.iter())) > 3
    assert "var(" not in text


def test_dark_and_light(page: Any) -> None:
    ground = "return getComputedStyle(document.body).backgroundColor"
    seen = {}
    for scheme in ("light", "dark"):
        page.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        )
        seen[scheme] = page.execute_script(ground)
    assert seen["light"] != seen["dark"]
    page.execute_script("document.getElementById('theme').click()")
    assert page.execute_script(ground) == seen["light"]
    page.execute_script("document.getElementById('theme').click(); document.getElementById('theme').click()")
    assert page.execute_script(ground) == seen["dark"]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_narrow_screen_needs_no_scrolling_sideways(page: Any) -> None:
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    )
    assert page.execute_script("return document.documentElement.scrollWidth") <= 360
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_prints_without_its_controls(page: Any) -> None:
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = "return [...document.querySelectorAll('.bar, .tools, .controls')].filter((e) => e.offsetParent).length"
    assert page.execute_script(shown) == 0
    cut = """
    const beyond = (table) => table.offsetParent && table.getBoundingClientRect().right > innerWidth;
    return [...document.querySelectorAll('table')].filter(beyond).length
    """
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 690, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    )  # a sheet of A4 between its margins
    assert page.execute_script(cut) == 0
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert len(page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]) > 20_000
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_the_keyboard_reads_a_chart(page: Any) -> None:
    page.execute_script("""
    const chart = document.querySelector('#layers svg'); chart.focus();
    const press = (key) => chart.dispatchEvent(new KeyboardEvent('keydown', {key, bubbles: true}));
    for (let i = 0; i < 10; i++) press('ArrowLeft');  // to the first layer, whichever was chosen
    press('ArrowRight');
    press('ArrowRight');
    """)
    assert "layer 2" in page.execute_script("return document.getElementById('tooltip').textContent")


def test_whatever_can_be_used_has_a_name(page: Any) -> None:
    unnamed = """
    const named = (e) => e.getAttribute('aria-label') || e.textContent.trim() || e.closest('label')?.textContent.trim();
    return [...document.querySelectorAll('button, input, select, svg.chart, canvas')]
      .filter((e) => !named(e) && !e.closest('[aria-hidden]')).map((e) => e.outerHTML.slice(0, 80));
    """
    assert page.execute_script(unnamed) == []


def test_cells_and_neighbours_are_shown(browser: Any, clustered: Path) -> None:
    """The page of a run with quantized cells and maps by t-SNE."""
    browser.get_log("browser")
    browser.get((clustered / "report.html").as_uri())
    findings = Run(clustered).findings()
    shown = browser.execute_script(
        "return [...document.querySelectorAll('#quantized td[data-value]')].map((e) => Number(e.dataset.value))"
    )
    for name in ("point_patchiness_product", "reconstruction_error_additive"):
        assert any(value == pytest.approx(findings.get(name).value) for value in shown), name
    assert "Quantized cells" in [link.get_attribute("textContent") for link in _all(browser, "#nav a")]
    _pick(browser, "tsne")
    assert _text(browser, ".map [role=status]") == "300 sampled rows"
    assert "neighbours by cosine stay neighbours" in _text(browser, ".map")
    assert browser.get_log("browser") == []


def test_layers_whose_rows_have_no_token_types(browser: Any, tmp_path: Path) -> None:
    """As of a model that hears: frames in the first layers, tokens in the others."""

    class Frames(Tokens):
        def batches(self, start: int = 0) -> Iterator[Batch]:
            for batch in super().batches(start):
                for layers, token in ((range(2), None), (range(2, 4), batch.rows.token)):
                    known = replace(batch.rows, token=token)
                    yield Batch({k: batch.layers[k] for k in layers}, known, batch.counts)

    scan_source(Frames(), resolve_measures("moments,tokens,sequences"), run=Run(tmp_path / "frames"))
    browser.get_log("browser")
    browser.get((tmp_path / "frames" / "report.html").as_uri())
    shown = "return document.querySelector('figure[aria-label=\"Norm against variance\"]').hidden"
    for layer, hidden in ((0, True), (3, False), (1, True)):
        _set(browser, "select[aria-label=Layer]", layer)
        assert browser.execute_script(shown) is hidden
    assert {"token", "sequence"} <= {e.get_attribute("value") for e in _all(browser, ".map input, .map option")}
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("path", ["vectors", "both"])
def test_other_pages_open_without_an_error(path: str, browser: Any, page: Any, vectors: Path, tmp_path: Path) -> None:
    """Last, because they leave the page of tokens: plain vectors, and two runs side by side."""
    assert page.get_log("browser") == []
    file = vectors / "report.html"
    if path == "both":
        isotrope.scan(vectors=np.random.default_rng(6).normal(size=(600, 10)) + 3.0, output=tmp_path / "other")
        runs = [vectors, tmp_path / "other"]
        tests = compute_layer_tests(*map(Run, runs), [(0, 0)])
        file = write_comparison(runs, tmp_path / "both.html")
    browser.get(file.as_uri())
    assert browser.get_log("browser") == []
    links = [link.get_attribute("textContent") for link in _all(browser, "#nav a")]
    assert not {"Quantized cells", "Token types"} & set(links)  # neither was measured
    if path == "vectors":
        assert _all(browser, "#tokens") == []
        assert links == ["Rows", "The vectors", "Advice and evaluation", "How to repeat it"]
        assert _text(browser, "#layer-title") == "The vectors"
        shown = browser.execute_script("return document.getElementById('sections').textContent").lower()
        assert not re.search(r"layer 0|because these rows are not tokens", shown)
        details = _all(browser, "details.meanings")[0]
        assert "from 0.75" in details.get_attribute("textContent")
    else:
        before, after = (Run(run).findings().get("mean_cosine").value for run in (vectors, tmp_path / "other"))
        _set(browser, "#changes input[type=search]", "mean cosine")
        row = browser.execute_script("""
        const cells = [...document.querySelector('#changes tbody tr').children];
        return cells.map((td) => [td.textContent, td.dataset.value]);
        """)
        assert [float(value) for _, value in row[1:4]] == pytest.approx([before, after, after - before])
        assert row[4][0] == "● beyond its interval"
        shifts = {row.get_attribute("data-test"): row for row in _all(browser, "#shift tbody tr")}
        for record in tests[0].describe()[:3]:
            words, effect, _, p, corrected = shifts[record["test"]].find_elements("css selector", "td")
            assert words.get_attribute("textContent") == record["text"]
            numbers = [float(cell.get_attribute("data-value")) for cell in (effect, p, corrected)]
            assert numbers == pytest.approx([record["effect"], record["p"], record["corrected"]])
        assert [card.text.split("\n")[1] for card in _all(browser, ".cards > li")] == ["Healthy", "Collapsed"]


def test_models_of_different_depth_side_by_side(browser: Any, tmp_path: Path) -> None:
    """The last layers belong together, in the chart, the spectra and the table, and what has no partner is named."""
    rng = np.random.default_rng(3)
    for name, states in (("small", 3), ("large", 5)):
        scan_source(_Deep(states, rng), resolve_measures("moments"), run=Run(tmp_path / name))
    write_comparison([tmp_path / "small", tmp_path / "large"], tmp_path / "both.html")
    browser.get_log("browser")
    browser.get((tmp_path / "both.html").as_uri())
    assert browser.get_log("browser") == []
    assert _text(browser, "p.pairing") == (
        "Layers of small (3) and of large (5) are paired by relative depth. Without a partner in large: layers 1, 3."
    )
    shown = {cell.text for cell in _all(browser, "#changes tbody td:first-child")}
    assert shown <= {"0 : 0", "1 : 2", "2 : 4", "all"}
    assert "2 : 4" in shown
    assert [option.text for option in _all(browser, "select[aria-label=Layer] option")] == [
        "Layer 0 : 0",
        "Layer 1 : 2",
        "Layer 2 : 4",
    ]
    assert all(_all(browser, f"#spectrum path.line.before[data-run='{i}']") for i in (0, 1))


class _Deep(Source):
    """Rows of a model with so many hidden states."""

    unit, width, total = "rows", 6, 200

    def __init__(self, states: int, rng: np.random.Generator) -> None:
        self.layers: list[int | str] = list(range(states))
        self._rows = {i: rng.normal(size=(200, 6)) + i / 9 for i in range(states)}

    def batches(self, start: int = 0) -> Iterator[Batch]:
        if not start:
            yield Batch(self._rows, Rows(np.arange(200, dtype=np.uint64)))

    @property
    def layer_names(self) -> dict[int | str, str]:
        return {i: str(i) for i in self.layers}

    def describe(self) -> dict[str, Any]:
        return {"kind": "model", "states": len(self.layers), "width": 6, "layers": list(self.layers)}
