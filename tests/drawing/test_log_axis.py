"""Ticks of logarithmic axes are plain numbers."""

from __future__ import annotations

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from isotrope.drawing.log_axis import use_log_axis, write_plain_ticks
from isotrope.drawing.style import use_style


@pytest.mark.parametrize("values", [(0.0076, 0.0079, 0.0081), (1e-5, 1e-2, 3.0), (1.0, 9.0)])
def test_ticks_are_numbers_within_the_axis(values: tuple[float, ...]) -> None:
    with use_style():
        figure = Figure()
        axes = figure.subplots()
        axes.plot(values)
        use_log_axis(axes)
        FigureCanvasAgg(figure).draw()
    assert axes.get_yscale() == "log"
    low, high = axes.get_ylim()
    shown = [float(tick.get_text().replace("−", "-")) for tick in axes.get_yticklabels() if tick.get_text()]
    assert len([tick for tick in shown if low <= tick <= high]) >= 2
    assert all(not tick.get_text() for tick in axes.get_yticklabels(minor=True))


def test_ticks_of_all_logarithmic_axes_are_plain_numbers() -> None:
    figure = Figure()
    axes = figure.subplots()
    axes.plot([0.01, 100.0], [1.0, 1000.0])
    axes.set_xscale("log")
    axes.set_yscale("log")
    write_plain_ticks(figure)
    FigureCanvasAgg(figure).draw()
    shown = [label.get_text() for axis in (axes.xaxis, axes.yaxis) for label in axis.get_ticklabels()]
    assert {"0.01", "1", "100", "1000"} <= set(shown)
    assert not any("$" in text for text in shown)
