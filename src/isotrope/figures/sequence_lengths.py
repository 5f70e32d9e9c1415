"""How long the sequences of the corpus are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLUE
from isotrope.figures.record import MARBUT, YAMAGIWA, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

#: Bars that fit into a column.
_BARS = 64


@figure(
    "sequence-lengths",
    shows="How many sequences of the corpus have how many tokens, those that the tokenizer adds among them.",
    answers=f"{YAMAGIWA}, Fig. 9; {MARBUT}, Fig. 2, its lengths",
    needs=("lengths",),
)
def sequence_lengths(run: RunData, figure: Figure) -> None:
    """A histogram over lengths, exact: the run counts every length."""
    sequences = run.summary(run.layer).sequences
    assert sequences is not None  # the record says that it needs lengths
    counts = sequences.lengths
    wide = -(-len(counts) // _BARS)
    edges = np.arange(0, len(counts) + wide, wide)
    bars = np.add.reduceat(counts, edges[edges < len(counts)])
    axes = figure.subplots()
    axes.stairs(bars, edges[: len(bars) + 1], fill=True, color=BLUE)
    axes.set_xlim(0, edges[len(bars)])
    axes.set_xlabel("tokens of a sequence")
    axes.set_ylabel("sequences")
