"""What a notebook shows of findings: a curve, and a small table."""

from __future__ import annotations

import math
import sys
from html.parser import HTMLParser

import matplotlib as mpl
import pytest
from matplotlib import pyplot

from isotrope.errors import InputError, MissingExtra
from isotrope.findings import Findings, Reading, Statement, Verdict

EVIL = '<script>alert("x")</script>&'


def findings(layers: int = 3) -> Findings:
    readings = [
        Reading(i, "mean_cosine", 0.1 * i, 0.1 * i - 0.01, 0.1 * i + 0.02, n=100, null=-0.0001) for i in range(layers)
    ]
    readings += [Reading(i, "isoscore", math.nan, reason="constant") for i in range(layers)]
    readings += [Reading(None, "drift_correlation_pearson", 0.5), Reading(0, "mean_cosine", 0.7, group="de")]
    return Findings(
        readings,
        layers=list(range(layers)),
        layer_names={"0": EVIL},
        verdict=Verdict("leaning", (Statement(1, f"Leaning: {EVIL}", (1,)),)),
        source={"model": EVIL, "corpus": {"name": EVIL}},
    )


class Reader(HTMLParser):
    """The elements and the cells of a table."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.kinds: list[str] = []
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.kinds.append(tag)
        self.open.append(tag)
        assert {name for name, _ in attrs} <= {"style", "class"}
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data


def test_table_shows_verdict_and_layers_and_nothing_runs() -> None:
    page = Reader(findings()._repr_html_())
    assert set(page.kinds) == {"div", "p", "b", "table", "thead", "tbody", "tr", "th", "td"}
    assert f"{EVIL} over {EVIL}: leaning, 100 rows" in page.text
    assert f"▲ Leaning: {EVIL}" in page.text
    assert page.rows == [
        ["layer", "mean cosine", "IsoScore"],
        [EVIL, "0.000 (-0.010 to 0.020)", "–"],
        ["1", "0.100 (0.090 to 0.120)", "–"],
        ["2", "0.200 (0.190 to 0.220)", "–"],
        ["isotropic", "0.000", "–"],
    ]


def test_table_of_many_layers_is_small() -> None:
    text = findings(200)._repr_html_()
    assert "and 160 more layers" in text
    assert len(text) < 20_000


def test_table_without_the_usual_measures() -> None:
    some = Findings([Reading(0, EVIL, 1.5), Reading(None, "other", math.nan)], layers=[0])
    assert Reader(some._repr_html_()).rows == [["layer", "measure", "value"], ["0", EVIL, "1.5"], ["", "other", "–"]]
    assert Reader(Findings([])._repr_html_()).rows == [["layer", "measure", "value"]]


def test_plot_is_the_findings() -> None:
    axes = findings().plot("mean_cosine")
    null, values = axes.lines
    assert values.get_ydata() == pytest.approx([0.0, 0.1, 0.2])
    assert null.get_ydata() == pytest.approx([-0.0001] * 3)
    low = [min(y for x, y in axes.collections[0].get_paths()[0].vertices if round(x) == i) for i in range(3)]
    high = [max(y for x, y in axes.collections[0].get_paths()[0].vertices if round(x) == i) for i in range(3)]
    assert low == pytest.approx([-0.01, 0.09, 0.19])
    assert high == pytest.approx([0.02, 0.12, 0.22])
    assert [tick.get_text() for tick in axes.get_xticklabels()] == [EVIL, "1", "2"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("layer", "mean cosine")
    assert pyplot.gca() is axes  # so that a notebook shows it
    pyplot.close(axes.figure)


def test_plot_into_given_axes_and_of_a_group() -> None:
    figure = pyplot.Figure()
    axes = figure.subplots()
    assert findings().plot("mean_cosine", group="de", ax=axes) is axes
    assert axes.lines[0].get_ydata() == pytest.approx([0.7, math.nan, math.nan], nan_ok=True)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["de"]


def test_many_layers_are_named_in_part() -> None:
    axes = findings(31).plot("mean_cosine", ax=pyplot.Figure().subplots())
    assert [tick.get_text() for tick in axes.get_xticklabels()][1:3] == ["3", "6"]
    assert len(axes.lines[-1].get_xdata()) == 31


def test_plot_refuses_what_it_has_not() -> None:
    with pytest.raises(InputError, match=r"no value of 'isoscore' to plot; it reads mean_cosine\."):
        findings().plot("isoscore")
    with pytest.raises(InputError, match="for the group 'fr'"):
        findings().plot("mean_cosine", group="fr")
    with pytest.raises(InputError, match=r"one number for all layers \(0\.5\)"):
        findings().plot("drift_correlation_pearson")


def test_plot_leaves_the_users_settings_alone() -> None:
    before = dict(mpl.rcParams)
    pyplot.close(findings().plot("mean_cosine").figure)
    assert dict(mpl.rcParams) == before


def test_without_matplotlib(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[figures\]'"):
        findings().plot("mean_cosine")
    assert "table" in findings()._repr_html_()
