"""The corpus of a run: how frequent its token types and how long its sequences are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLUE, GREY
from isotrope.figures.record import MARBUT, YAMAGIWA, register_figure
from isotrope.figures.run_data import RunData
from isotrope.statistics.token_tables import FEWEST, MOST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Bars of the histograms.
_COUNT_BARS, _LENGTH_BARS = 40, 64


@register_figure(
    "token-counts",
    shows=(
        "How many token types occur how often, on a logarithmic scale; between the dashed lines are those with 10 to "
        "100,000 occurrences, which the figures over token types show."
    ),
    answers=f"{YAMAGIWA}, Fig. 10; {MARBUT}, Fig. 2, its unigrams",
    needs=("tokens",),
)
def draw_token_counts(run: RunData, figure: Figure) -> None:
    """A histogram over log frequencies."""
    log = np.log10(run.table("tokens", run.layer)["n"].to_numpy())
    axes = figure.subplots()
    axes.hist(log, bins=_COUNT_BARS, color=BLUE)
    for edge in np.log10([FEWEST, MOST]):
        if edge <= log.max():
            axes.axvline(edge, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0)
    axes.set_xlabel("log₁₀ n, occurrences of a token type")
    axes.set_ylabel("token types")


@register_figure(
    "sequence-lengths",
    shows="How many sequences of the corpus have how many tokens, those that the tokenizer adds among them.",
    answers=f"{YAMAGIWA}, Fig. 9; {MARBUT}, Fig. 2, its lengths",
    needs=("lengths",),
)
def draw_sequence_lengths(run: RunData, figure: Figure) -> None:
    """A histogram over lengths, exact: the run counts every length."""
    sequences = run.summary(run.layer).sequences
    assert sequences is not None  # the record says that it needs lengths
    counts = sequences.lengths
    wide = -(-len(counts) // _LENGTH_BARS)
    edges = np.arange(0, len(counts) + wide, wide)
    bars = np.add.reduceat(counts, edges[edges < len(counts)])
    axes = figure.subplots()
    axes.stairs(bars, edges[: len(bars) + 1], fill=True, color=BLUE)
    axes.set_xlim(0, edges[len(bars)])
    axes.set_xlabel("tokens of a sequence")
    axes.set_ylabel("sequences")
