"""The tables of a run: token types, spectra, and the cumulative curves of sequences' spectra."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.layers import Layer
from isotrope.measures.sequence_spectrum import GRID, mean_cdf
from isotrope.sources.batch import shorten_label
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Moments

if TYPE_CHECKING:
    import pandas as pd

#: Every how manieth point of the cumulative curve is kept.
_THIN = 5


def compute_tables(collection: Collection, source: Source, layers: Sequence[Layer]) -> dict[str, pd.DataFrame]:
    """Compute tidy tables by name; layers are text, because some have names."""
    import pandas as pd

    made: dict[str, list[pd.DataFrame]] = {"spectra": [], "tokens": [], "sequence_cdf": []}
    for layer in layers:
        summary = collection.layer(layer)
        made["spectra"].append(label_layer(layer, _spectra(summary.moments)))
        if summary.tokens is not None and len(summary.tokens):
            t = summary.tokens.table
            names = source.token_names(t.types) or [str(i) for i in t.types]
            names = [shorten_label(name) for name in names]
            columns = {"token": names, "id": t.types, "n": t.n, "Q": t.q, "M": t.m, "V": t.v}
            made["tokens"].append(label_layer(layer, columns))
        if summary.sequences is not None and summary.sample is not None:
            spectra = summary.sample.spectra()
            if len(spectra):
                made["sequence_cdf"].append(label_layer(layer, {"x": GRID[::_THIN], "cdf": mean_cdf(spectra)[::_THIN]}))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in made.items() if parts}


def _spectra(moments: Moments) -> dict[str, Any]:
    """Singular values of the uncentred rows and eigenvalues of the covariance, side by side."""
    covariance = moments.eigenvalues / max(moments.n - 1, 1)
    singular = np.full(moments.d, np.nan)
    singular[: len(moments.singular_values)] = moments.singular_values
    return {"index": np.arange(1, moments.d + 1), "singular_value": singular, "eigenvalue": covariance}


def label_layer(layer: Layer, columns: Mapping[str, Any]) -> pd.DataFrame:
    """A table of these columns with the layer before them."""
    import pandas as pd

    frame: pd.DataFrame = pd.DataFrame({"layer": str(layer), **columns})
    return frame
