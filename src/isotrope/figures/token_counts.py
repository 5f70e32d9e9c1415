"""How frequent the token types of the corpus are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from isotrope.drawing.style import BLUE, GREY
from isotrope.figures.record import MARBUT, YAMAGIWA, figure
from isotrope.statistics.token_tables import FEWEST, MOST

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from isotrope.figures.run_data import RunData

_BARS = 40


@figure(
    "token-counts",
    shows=(
        "How many token types occur how often, on a logarithmic scale; between the dashed lines are those with 10 to "
        "100,000 occurrences, which the figures over token types show."
    ),
    answers=f"{YAMAGIWA}, Fig. 10; {MARBUT}, Fig. 2, its unigrams",
    needs=("tokens",),
)
def token_counts(run: RunData, figure: Figure) -> None:
    """A histogram over log frequencies."""
    log = np.log10(run.table("tokens", run.layer)["n"].to_numpy())
    axes = figure.subplots()
    axes.hist(log, bins=_BARS, color=BLUE)
    for edge in np.log10([FEWEST, MOST]):
        if edge <= log.max():
            axes.axvline(edge, color=GREY, linestyle=(0, (4, 3)), linewidth=1.0)
    axes.set_xlabel("log₁₀ n, occurrences of a token type")
    axes.set_ylabel("token types")
