"""The texts of the study: how many are read and left out, and how many words they have (Fig. 9)."""

from __future__ import annotations

import math
from collections import Counter
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from isotrope.drawing.style import BLUE
from isotrope.sources.corpora.selection import SelectedCorpus
from isotrope.studies.figures import make_figure
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.result import Table
from isotrope.studies.runner import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Sentences of the paper (Section 5.1.2).
PRINTED_SENTENCES = 739_106

#: Bars of the histogram.
_BARS = 30


def count_words(options: NormVarianceOptions) -> Results:
    """Fig. 9: how many texts of how many words are read, in each group."""
    counts, lengths = [], []
    for group in options.groups:
        corpus = options.select_corpus(group)
        words = Counter(len(text.text.split()) for text in corpus)
        left_out = (corpus.left_out if isinstance(corpus, SelectedCorpus) else None) or {}
        named = {} if group is None else {"group": group}
        counts.append(
            named
            | {"texts": words.total(), "printed": PRINTED_SENTENCES if group is None else math.nan}
            | {f"left out by {name.replace('_', ' ')}": left_out.get(name, 0) for name in ("share", "max_words")}
        )
        lengths += [named | {"words": length, "texts": words[length]} for length in sorted(words)]
    tables = [
        Table("texts", "Texts that are read and left out (printed: sentences of BookCorpus)", pd.DataFrame(counts)),
        Table("lengths", "How many texts have how many words (Fig. 9)", pd.DataFrame(lengths), shown=False),
    ]
    title = "How many texts have how many words, those of more than the most left out (Fig. 9)."
    return Results(tables, (), [make_figure("text-lengths", title, partial(draw_lengths, tables[1].frame))])


def draw_lengths(lengths: pd.DataFrame, figure: Figure) -> None:
    """Draw a histogram of the texts by their words, on a logarithmic axis as in the paper."""
    axes = figure.subplots()
    edges = np.linspace(0.5, float(lengths["words"].max()) + 0.5, _BARS + 1)
    axes.hist(lengths["words"], bins=edges.tolist(), weights=lengths["texts"], color=BLUE)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.8)
    axes.set_xlabel("words of a text")
    axes.set_ylabel("texts")
