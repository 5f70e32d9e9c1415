"""The style of all matplotlib figures: widths, fonts and colours that everyone can tell apart."""

from __future__ import annotations

import re
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isotrope.errors import MissingExtra

#: Width of one column and of a whole page of a two-column paper, in inches.
COLUMN_WIDTH, PAGE_WIDTH = 3.25, 6.75

#: Font sizes in points: of labels, and the smallest.
FONT_SIZE, SMALL_FONT_SIZE = 8.0, 7.0

#: The colours of Okabe and Ito (2008), which people with any colour vision tell apart, but for their yellow, which
#: white paper swallows.
BLUE, ORANGE, BLACK, SKY, PURPLE, GREEN, AMBER = (
    "#0072B2",
    "#D55E00",
    "#000000",
    "#56B4E9",
    "#CC79A7",
    "#009E73",
    "#E69F00",
)

#: The order in which lines get them: of all, the first three and the first five differ most for every colour vision.
COLOURS = (BLUE, ORANGE, BLACK, SKY, PURPLE, GREEN, AMBER)

#: Null values, zero lines and origins.
GREY = "#767676"

#: Map of numbers to colours that grows in lightness all the way, for every colour vision, and the lightest part of it
#: that is still seen on white.
SEQUENTIAL, LIGHTEST = "viridis", 0.9

#: Map of numbers around zero.
DIVERGING = "PuOr_r"

_SETTINGS: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same letters on every machine
    "font.size": FONT_SIZE,
    "axes.labelsize": FONT_SIZE,
    "axes.titlesize": FONT_SIZE,
    "xtick.labelsize": SMALL_FONT_SIZE,
    "ytick.labelsize": SMALL_FONT_SIZE,
    "legend.fontsize": SMALL_FONT_SIZE,
    "legend.title_fontsize": SMALL_FONT_SIZE,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "lines.linewidth": 1.4,
    "lines.markersize": 3.5,
    "text.parse_math": False,  # a dollar sign in a token is a dollar sign
    "axes.formatter.use_mathtext": False,
    "axes.formatter.limits": (-4, 5),
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "savefig.dpi": 300,
    "pdf.fonttype": 42,  # letters as letters: journals refuse the other kind
    "svg.fonttype": "none",
    "svg.hashsalt": "isotrope",  # the same picture is the same file
}

#: The longest text that is put into a picture.
_LONGEST = 24

#: What tokenizers put in front of a piece to say whether a word begins there.
_MARK = re.compile(r"^(##|[Ġ▁])(?=.)")


@contextmanager
def use_style() -> Iterator[None]:
    """Draw and save in the style of the library, without a change to the user's own settings."""
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise MissingExtra("matplotlib", "figures", "a figure") from error
    with mpl.rc_context(_SETTINGS), warnings.catch_warnings():
        # A letter that the font lacks is drawn as a box; the picture says so by itself.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        yield


def make_colour_map() -> Any:
    """The colours of numbers, from dark to the lightest that is seen on white."""
    import numpy as np
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    return ListedColormap(colormaps[SEQUENTIAL](np.linspace(0, LIGHTEST, 256)))


def format_number(value: float, decimals: int = 2) -> str:
    """Format a number with a true minus sign, and zero without one.

    >>> format_number(-0.034), format_number(-0.001)
    ('−0.03', '0.00')
    """
    return f"{round(value, decimals) + 0.0:.{decimals}f}".replace("-", "−")


def format_token(token: str) -> str:
    """Format a token without the mark of its tokenizer and without invisible characters, and shorten it.

    >>> format_token("##ing"), format_token("Ġthe"), format_token("a\\x00\\u202eb")
    ('ing', 'the', 'a··b')
    """
    seen = "".join("·" if unicodedata.category(c)[0] in "CZ" else c for c in _MARK.sub("", token)[: _LONGEST + 1])
    return seen if len(seen) <= _LONGEST else seen[: _LONGEST - 1] + "…"
