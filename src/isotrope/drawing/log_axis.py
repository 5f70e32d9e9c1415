"""Logarithmic axes with plain numbers at their ticks."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: An axis that spans a smaller factor has ticks at round numbers instead of powers of ten.
_NARROW = 30.0


def use_log_axis(axes: Axes) -> None:
    """Make the vertical axis logarithmic; the usual ticks are written for TeX, which figures do not use."""
    from matplotlib.ticker import MaxNLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    if high < _NARROW * low:
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.yaxis.set_major_formatter("{x:.3g}")
    else:
        axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter(NullFormatter())


def write_plain_ticks(figure: Figure) -> None:
    """Give plain numbers to all logarithmic axes of a figure that still have ticks written for TeX."""
    from matplotlib.ticker import LogFormatter, NullFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter("{x:g}")
            if isinstance(axis.get_minor_formatter(), LogFormatter):
                axis.set_minor_formatter(NullFormatter())
