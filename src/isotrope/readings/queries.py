"""Queries that search the rows of a scan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.sources.source import Source
from isotrope.statistics import Collection, Sample, Wanted
from isotrope.storage.redaction import mask_facts

#: Queries that are sampled at most: the mean of so many is known well enough, and all documents are compared with each.
_MOST_QUERIES = 5_000

#: What is recorded of queries, of what their source describes.
_FACTS = ("files", "column", "corpus")


class SearchInputs(NamedTuple):
    """What is known of a search besides its documents: sampled queries, and characters of each text by row number."""

    queries: Sample | None = None
    text_lengths: Mapping[int, int] = MappingProxyType({})


#: Neither queries nor texts.
NO_SEARCH = SearchInputs()


@dataclass(frozen=True, eq=False)
class Queries:
    """Queries that search the rows of a scan: their statistics, and plain facts on where they are from."""

    collection: Collection
    facts: dict[str, Any]

    def check(self, source: Source) -> None:
        """Raise an error unless they are of the width and the layers of the rows that they search."""
        widths = {summary.moments.d for summary in self.collection.summaries.values()}
        if widths != {source.width}:
            found = " and ".join(f"{width:,}" for width in sorted(widths))
            raise InputError(
                f"the queries have {found} dimensions and the documents {source.width:,}; give vectors of one model."
            )

    def find_sample(self, layer: Layer) -> Sample | None:
        """Find the sampled queries of a layer."""
        return self.collection.layer(layer).sample


def collect_queries(source: Source, seed: int, progress: Callable[[str, float, float | None], None]) -> Queries:
    """Read queries and sample them.

    Args:
        source: The queries: one row for each.
        seed: Selects the sampled ones.
        progress: Called with what is going on, how much is done, and of how much.
    """
    announced = source.with_progress(lambda done, total: progress("reading queries", done, total))
    wanted = Wanted(tokens=False, sequences=False, sample=_MOST_QUERIES, seed=seed)
    found = announced.reduce(Collection(wanted))
    if not any(summary.moments.n for summary in found.summaries.values()):
        raise InputError("there is no query that is a usable row; give at least one that is neither zero nor NaN.")
    found.settle()
    rows = max(summary.moments.n for summary in found.summaries.values())
    facts = mask_facts(source.describe())
    return Queries(found, {name: facts[name] for name in _FACTS if name in facts} | {"rows": rows})
