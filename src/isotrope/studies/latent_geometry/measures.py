"""The rows of the last layer, and the measures of the latent-geometry paper as its authors computed them."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.measures import get
from isotrope.pipeline import Progress
from isotrope.quantization.cells import Cells
from isotrope.sources.batch import Batch
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.models.load import Loaded
from isotrope.statistics import Moments, Points, prepare_rows
from isotrope.studies.latent_geometry.published import TABLE_2

#: Rows that the authors' figures come from: quantized measures depend on their number.
MOST_ROWS = 116_667

#: The corpus in the folder of the data, next to the authors' files: their figures are of WikiText-2 and Penn Treebank.
CORPUS = Path("wikitext-2") / "valid.txt"


def read_last_layer(
    reading: Input, loaded: Loaded, texts: list[str], most: int, progress: Progress
) -> NDArray[np.floating[Any]]:
    """Read the token rows of texts, (n, d), with special tokens, and sample `most` of them."""
    source = reading.over(open_corpus(texts), loaded)
    source = source.with_progress(lambda done, _: progress("reading texts", done, len(texts)))
    all_rows = np.concatenate([rows for batch in source.map(Batch.to_numpy) for rows in batch.layers.values()])
    if len(all_rows) > most:
        all_rows = all_rows[np.sort(np.random.default_rng(0).choice(len(all_rows), size=most, replace=False))]
    return all_rows


def compute_measures(rows: NDArray[np.floating[Any]], *, seed: int = 0) -> dict[str, float]:
    """Compute all measures of Table 2 on rows, (n, d), in their published variants; each quantizer is trained once.

    A measure is NaN where it is undefined, as for rows that noise has made too similar for a quantizer.
    """
    usable = prepare_rows(rows)
    points = Points.of(usable)
    statistics: dict[Any, Any] = {"moments": Moments.of(usable), "sample": points}
    for kind in ("additive", "product"):
        with suppress(Undefined):
            statistics[kind] = Cells.of(points, kind, seed=seed)
    found = {}
    for name in TABLE_2:
        measure = get(name)
        statistic = statistics.get(measure.parameters["kind"] if measure.needs == "cells" else measure.needs)
        variant = "published" if "published" in measure.variants else "definition"
        found[name] = math.nan if statistic is None else measure(statistic, variant=variant)
    return found
