"""How alike the tokens of a sequence are, layer by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from isotrope.drawing.curve import curve, layer_axis
from isotrope.drawing.style import COLOURS
from isotrope.figures.record import YAN, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_LINES = (
    ("sequence_uniformity", "tokens of a sequence", "o"),
    ("cls_uniformity", "first token to the others", "s"),
    ("mean_cosine", "all tokens", "^"),
)


@figure(
    "uniformity",
    shows=(
        "Mean cosine between the tokens of a sequence, between its first token and the others, and between all tokens "
        "of the corpus, in every layer, with 95 % intervals."
    ),
    answers=f"{YAN}, Fig. 2, for every layer",
    measures=tuple(measure for measure, _, _ in _LINES),
)
def uniformity(run: RunData, figure: Figure) -> None:
    """Three curves over layers."""
    axes = figure.subplots()
    for (measure, label, marker), colour in zip(_LINES, COLOURS, strict=False):
        readings = run.readings(measure)
        low, high = [r.low for r in readings], [r.high for r in readings]
        curve(axes, [r.value for r in readings], low=low, high=high, label=label, colour=colour, marker=marker)
    layer_axis(axes, run.layers, run.findings.layer_names)
    axes.set_ylabel("mean cosine")
    axes.legend()
