"""Every figure: its width, letters and colours, valid files of three kinds, the same file twice, hostile text."""

from __future__ import annotations

import re
import warnings
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.collections import Collection, PathCollection, QuadMesh
from matplotlib.colors import to_hex, to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.text import Text
from PIL import Image

from isotrope.drawing.layers import layer_colours
from isotrope.drawing.style import BLACK, COLOURS, COLUMN_WIDTH, GREY, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.figures import FIGURES, draw, save
from testkit.known_run import HOSTILE, KnownRun

NAMES = [*FIGURES.names(), "mean_cosine"]


@pytest.fixture(scope="module", params=NAMES)
def drawn(request: pytest.FixtureRequest, known: KnownRun) -> Figure:
    if request.param == "tsne":
        pytest.importorskip("openTSNE")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("isotrope.figures.sampled_rows._TSNE_ROWS", 150)  # a second instead of twenty
        return draw(known.folder, request.param)


def test_is_as_wide_as_a_column_or_a_page(drawn: Figure) -> None:
    assert drawn.get_size_inches()[0] in (COLUMN_WIDTH, PAGE_WIDTH)
    assert drawn.get_size_inches()[1] < 9  # with its caption on one page


def test_letters_can_be_read_in_print(drawn: Figure) -> None:
    drawn.draw_without_rendering()
    shown = [text for text in drawn.findobj(Text) if text.get_visible() and text.get_text()]
    assert shown
    assert min(text.get_fontsize() for text in shown) >= SMALL_FONT_SIZE


def test_axes_say_what_they_show(drawn: Figure) -> None:
    for axes in drawn.axes:
        assert axes.get_xlabel() or axes.get_ylabel() or axes.get_title()


def test_colours_are_those_that_everyone_tells_apart(drawn: Figure) -> None:
    ours = [to_rgba(colour) for colour in (*COLOURS, GREY, BLACK)] + layer_colours(512)
    used = [to_rgba(line.get_color()) for line in drawn.findobj(Line2D) if _drawn_by_us(line)]
    for marks in drawn.findobj(Collection):
        assert isinstance(marks, Collection)
        if isinstance(marks, PathCollection) and marks.get_array() is None:
            used += [tuple(colour) for colour in marks.get_facecolor()]
        elif not isinstance(marks, QuadMesh) and marks.get_array() is not None:
            assert marks.get_cmap()(1.0)[:3] == pytest.approx(layer_colours(256)[-1][:3], abs=0.02)
    used += [
        to_rgba(patch.get_facecolor())
        for axes in drawn.axes
        for patch in axes.patches
        if isinstance(patch, Patch) and patch.get_fill()
    ]
    for colour in used:
        near = min(float(np.abs(np.subtract(colour[:3], other[:3])).max()) for other in ours)
        assert near < 0.02, to_hex(colour)


def _drawn_by_us(line: Line2D) -> bool:
    """Not one of an axis, its ticks or its grid."""
    return line.axes is not None and line in line.axes.lines


def test_png_is_as_wide_as_it_says(drawn: Figure, tmp_path: Path) -> None:
    save(drawn, tmp_path / "figure.png")
    with Image.open(tmp_path / "figure.png") as picture:
        assert picture.size == pytest.approx(tuple(300 * drawn.get_size_inches()), abs=1)
        assert picture.info["dpi"] == pytest.approx((300, 300), abs=0.1)


def test_pdf_is_whole_and_its_letters_are_letters(drawn: Figure, tmp_path: Path) -> None:
    save(drawn, tmp_path / "figure.pdf")
    data = (tmp_path / "figure.pdf").read_bytes()
    assert data.startswith(b"%PDF-")
    assert data.rstrip().endswith(b"%%EOF")
    box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", data)
    assert box is not None
    assert [float(end) / 72 for end in box.groups()] == pytest.approx(list(drawn.get_size_inches()), abs=0.01)
    assert b"/Type3" not in data
    assert b"/Subtype /CIDFontType2" in data or b"/Subtype /TrueType" in data


def test_svg_is_well_formed_with_text_as_text_and_no_script(drawn: Figure, tmp_path: Path) -> None:
    save(drawn, tmp_path / "figure.svg")
    root = ElementTree.parse(tmp_path / "figure.svg").getroot()
    assert float(root.attrib["width"].removesuffix("pt")) == pytest.approx(72 * drawn.get_size_inches()[0], abs=0.01)
    kinds = {element.tag.rpartition("}")[2] for element in root.iter()}
    assert "text" in kinds
    assert "script" not in kinds


def test_the_same_run_gives_the_same_file(known: KnownRun, tmp_path: Path) -> None:
    kinds = ("pdf", "svg", "png")
    for name in ("one", "two"):
        figure = draw(known.folder, "token-clouds")
        for kind in kinds:
            save(figure, tmp_path / f"{name}.{kind}")
    for kind in kinds:
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()


def test_hostile_tokens_are_text(known: KnownRun, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(draw(known.folder, "norm-variance-tokens"), tmp_path / "figure.svg")
    root = ElementTree.parse(tmp_path / "figure.svg").getroot()
    texts = ["".join(element.itertext()) for element in root.iter() if element.tag.endswith("}text")]
    joined = "\n".join(texts)
    assert max(map(len, texts)) < 60
    assert not set(joined) & {"\x00", "\u202e"}
    shown = [HOSTILE[0][:23] + "…", HOSTILE[1], "a·b·c", HOSTILE[3], HOSTILE[4], "x" * 23 + "…", HOSTILE[6]]
    assert len([text for text in shown if text in texts]) >= 4  # the frequent ones are chosen


def test_the_users_settings_stay(known: KnownRun) -> None:
    before = dict(mpl.rcParams)
    draw(known.folder, "drift")
    assert dict(mpl.rcParams) == before


def test_records_are_complete() -> None:
    for record in FIGURES:
        assert re.fullmatch(r"[a-z]+(-[a-z]+)*", record.name)
        assert record.shows.endswith(".")
        assert re.search(r"\d{4}|latent geometry", record.answers), record.answers
        assert record.needs or record.measures or record.name == "measure-correlations"
