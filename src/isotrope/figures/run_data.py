"""What figures read of a run folder, and the error where the run lacks something."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.layers import Layer, resolve_layer
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import saved_summary
from isotrope.statistics import Sample, Summary
from isotrope.statistics.token_tables import FEWEST, MOST

if TYPE_CHECKING:
    import pandas as pd

Vector = NDArray[np.float64]


class TokenTypes(NamedTuple):
    """The token types of one layer that are frequent enough to have a mean and a variance, (k,) each."""

    token: list[str]
    id: NDArray[np.int64]
    n: NDArray[np.int64]
    q: Vector
    m: Vector
    v: Vector


class RunData:
    """A finished run that is read as needed; `layer` is the layer of the figure."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self.findings: Findings = Run(folder).findings()
        self.layers: list[Layer] = self.findings.layers
        self.layer: Layer = self.layers[-1]
        self._summaries: dict[Layer, Summary] = {}

    @cached_property
    def seed(self) -> int:
        """The seed of the run, used for all that is random in a figure."""
        return int(self.findings.provenance.get("settings", {}).get("seed", 0))

    def find_layer(self, asked: str | int | None, default: str | None) -> Layer:
        """A layer by name or number, negative ones from the end; without one the middle or the last."""
        if asked is None:
            return self.layers[len(self.layers) // 2] if default == "middle" else self.layers[-1]
        return resolve_layer(asked, self.layers, self.findings.layer_names, run=f"the run {str(self.folder)!r}")

    def layer_name(self, layer: Layer) -> str:
        """The name of a layer."""
        return self.findings.layer_names.get(str(layer), str(layer))

    def select_layers(self, most: int) -> list[Layer]:
        """Select at most so many layers, evenly spaced, with the first and the last."""
        at = np.unique(np.linspace(0, len(self.layers) - 1, min(most, len(self.layers))).round().astype(int))
        return [self.layers[i] for i in at]

    def readings(self, measure: str) -> list[Reading]:
        """The reading of a measure in each layer, in their order; all rows together."""
        found = {
            r.layer: r
            for r in self.findings.readings
            if (r.measure, r.group, r.variant) == (measure, None, "definition") and r.layer is not None
        }
        return [found.get(layer, Reading(layer, measure, math.nan)) for layer in self.layers]

    def values(self, measure: str) -> Vector:
        """The value of a measure in each layer, NaN where it has none, (layers,)."""
        return np.array([r.value for r in self.readings(measure)])

    def table(self, name: str, layer: Layer) -> pd.DataFrame:
        """The rows of one layer in one of the run's tables."""
        whole = self.findings.tables[name]
        rows: pd.DataFrame = whole[whole["layer"] == str(layer)]
        return rows

    def token_types(self, layer: Layer, at_least: int = 3) -> TokenTypes:
        """The token types with 10 to 100,000 occurrences, as the papers select them."""
        table = self.table("tokens", layer)
        kept = table[(table["n"] >= FEWEST) & (table["n"] <= MOST)]
        if len(kept) < at_least:
            raise InputError(
                f"layer {layer} has {len(kept)} token types with {FEWEST} to {MOST:,} occurrences, "
                f"expected at least {at_least}; scan more text."
            )
        columns = (kept[name].to_numpy() for name in ("id", "n", "Q", "M", "V"))
        return TokenTypes(kept["token"].tolist(), *columns)

    def summary(self, layer: Layer) -> Summary:
        """The statistics of a layer, all groups together."""
        if layer not in self._summaries:
            self._summaries[layer] = saved_summary(self.folder, layer)
        return self._summaries[layer]

    def sample(self, layer: Layer) -> Sample:
        """The sampled rows of a layer."""
        found = self.summary(layer).sample
        assert found is not None  # the figure's record says that it needs one
        return found

    def has(self, need: str) -> bool:
        """Whether the run has what a figure may need, a key of `isotrope.figures.record.NEEDS`."""
        if need in ("spectra", "tokens", "sequence_cdf"):
            return need in self.findings.tables
        if not (self.folder / "statistics" / "index.json").is_file():
            return False
        summary = self.summary(self.layer)
        if need == "sample":
            return summary.sample is not None and summary.sample.n > 1
        return need == "statistics" or summary.sequences is not None
