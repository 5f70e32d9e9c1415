"""What one pass over a source collects: summaries of layers and groups, or moments and a sample of one space."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.threads import open_pool
from isotrope.errors import InputError, MergeError
from isotrope.layers import Layer
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Reduction
from isotrope.statistics.duplicates import Duplicates
from isotrope.statistics.moments import Moments
from isotrope.statistics.row_lengths import RowLengths
from isotrope.statistics.sample import Sample
from isotrope.statistics.sequences import SequenceStatistics
from isotrope.statistics.summary import Summary
from isotrope.statistics.tokens import TokenStatistics
from isotrope.statistics.usable_rows import on_cpu_as_numpy, prepare_rows

if TYPE_CHECKING:
    from typing_extensions import Self

#: More groups than this are surely a column of ids or of texts, not of groups.
MOST_GROUPS = 1_000


class Wanted(NamedTuple):
    """The statistics to keep besides the moments, and the size and seed of the sample.

    duplicates: whether every row is hashed to find equal ones.
    """

    tokens: bool = False
    sequences: bool = False
    sample: int = 0
    seed: int = 0
    duplicates: bool = False

    def empty(self, d: int, known: Rows) -> Summary:
        """An empty summary with the statistics that are wanted and that the rows allow."""
        return Summary(
            Moments.empty(d),
            TokenStatistics.empty(d) if self.tokens and known.token is not None else None,
            SequenceStatistics.empty(d) if self.sequences and known.position is not None else None,
            Sample.empty(d, self.sample, self.seed) if self.sample else None,
            RowLengths.empty(d),
            Duplicates.empty(d) if self.duplicates else None,
        )


@dataclass(eq=False)
class Collection(Reduction):
    """The summaries of a run by (group, layer), with what the source counted and the batches seen.

    Without groups the group is None. `+` merges the collections of several workers; `+=` reuses memory and holds
    no more than one layer twice. shards: how many whole shards of the source it holds, where it was read in shards;
    skipped: the numbers of those that count as empty because they could not be read, and why.
    bars: of the samples of others that it will be merged with, see `Collection.sample_bars`; they keep it small.
    """

    wanted: Wanted
    summaries: dict[tuple[str | None, Layer], Summary] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    shards: int = 0
    bars: Mapping[tuple[str | None, Layer], int] = field(default_factory=dict)
    skipped: dict[int, str] = field(default_factory=dict)

    def update(self, batch: Batch, pool: Executor | None = None) -> None:
        """Add one batch to every layer it carries; with a pool, large products run in its threads."""
        groups: list[tuple[str | None, NDArray[Any] | None]] = [(None, None)]
        if batch.rows.group is not None:
            groups = [*batch.rows.group.members()]
        jobs = []
        for group, index in groups:
            known = batch.rows if index is None else batch.rows.take(index)
            for layer, rows in batch.layers.items():
                part = rows if index is None else rows[index]
                jobs.append((self._summary(group, layer, int(rows.shape[1]), known), part, known))
        finish = None
        for summary, part, known in jobs:
            # As a numpy array, which shares a CPU tensor's memory: torch would fight the pool for the same cores.
            after = summary.begin(part if pool is None else on_cpu_as_numpy(part), known, pool)
            if finish is not None:  # of the layer before: its product had the time of this layer's other statistics
                finish()
            finish = after
        if finish is not None:
            finish()
        self.counts.update(batch.counts)
        self.batches += 1

    def _summary(self, group: str | None, layer: Layer, d: int, known: Rows) -> Summary:
        key = (group, layer)
        if key not in self.summaries:
            if group is not None:
                _check_groups({*self.groups(), group})
            summary = self.wanted.empty(d, known)
            if summary.sample is not None:
                summary.sample.lower_bar(self.bars.get(key))
            self.summaries[key] = summary
        return self.summaries[key]

    def sample_bars(self) -> dict[tuple[str | None, Layer], int]:
        """The bars of its full samples: a collection that it is merged with need not keep rows above them."""
        samples = {key: summary.sample for key, summary in self.summaries.items() if summary.sample is not None}
        return {key: sample.bar for key, sample in samples.items() if sample.bar is not None}

    def empty(self, bars: Mapping[Any, int] | None = None) -> Collection:
        """Return an empty collection of the same statistics; bars: see `sample_bars`."""
        return Collection(self.wanted, bars=bars or {})

    @contextmanager
    def open_pool(self, layers: int, threads: int | None = None) -> Iterator[Executor | None]:
        """Open threads for the large products of several layers; one layer alone uses all cores by itself."""
        if layers < 2:
            yield None
            return
        with open_pool(threads or os.cpu_count() or 1) as pool:
            yield pool

    def count_done(self, unit: str) -> int:
        """Count the units (rows, texts) of the source that it holds already."""
        return self.counts[unit]

    def note_shards(self, retried: int, skipped: Mapping[int, str] | None) -> None:
        """Record how many shards were read again and which were skipped, None where none may be."""
        self.counts["retried_shards"] = retried
        if skipped is not None:  # some of those that were read may not be in it yet
            self.skipped = {number: why for number, why in skipped.items() if number < self.shards}
            self.counts["skipped_shards"] = len(self.skipped)

    def clear(self) -> None:
        """Let go of the summaries, once they were sent elsewhere."""
        self.summaries.clear()

    def settle(self) -> None:
        """Put the samples in order, after which they can be read from several threads."""
        for summary in self.summaries.values():
            summary.settle()

    def count_rows(self) -> tuple[Counter[Layer], Counter[Layer]]:
        """Count the usable rows of each layer, and those that were left out."""
        usable: Counter[Layer] = Counter()
        left_out: Counter[Layer] = Counter()
        for (_, layer), summary in self.summaries.items():
            usable[layer] += summary.moments.n
            left_out[layer] += summary.moments.zero + summary.moments.nonfinite
        return usable, left_out

    def groups(self) -> list[str]:
        """The names of the groups, sorted; empty without groups."""
        return sorted({group for group, _ in self.summaries if group is not None})

    def layer(self, layer: Layer, group: str | None = None) -> Summary:
        """The summary of one layer: of one group, or of all rows."""
        if group is not None or (None, layer) in self.summaries:
            return self.summaries[group, layer]
        first, *others = (self.summaries[g, layer] for g in self.groups() if (g, layer) in self.summaries)
        total = first.copy()
        for part in others:
            total += part
        return total

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for sending; what is not numbers is in one of them as JSON."""
        about = {
            "wanted": self.wanted,
            "keys": list(self.summaries),
            "counts": self.counts,
            "batches": self.batches,
            "shards": self.shards,
            "skipped": list(self.skipped.items()),
        }
        parts = {i: summary.arrays() for i, summary in enumerate(self.summaries.values())}
        named = {f"{i}.{name}": array for i, part in parts.items() for name, array in part.items()}
        return {"about": np.frombuffer(json.dumps(about).encode(), np.uint8), **named}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Collection:
        """The state that `arrays` returned."""
        about = json.loads(arrays["about"].tobytes())
        parts: list[dict[str, NDArray[Any]]] = [{} for _ in about["keys"]]
        for key, array in arrays.items():
            number, _, name = key.partition(".")
            if name:
                parts[int(number)][name] = array
        summaries = {(g, k): Summary.from_arrays(p) for (g, k), p in zip(about["keys"], parts, strict=True)}
        wanted = Wanted(*about["wanted"])
        counted = Counter(about["counts"]), about["batches"], about["shards"]
        return cls(wanted, summaries, *counted, skipped=dict(about["skipped"]))

    def check(self, other: Collection) -> None:
        """Refuse what cannot be merged."""
        if self.wanted != other.wanted:
            raise MergeError(f"cannot merge runs that keep {self.wanted} and {other.wanted}.")
        _check_groups({group for group, _ in (*self.summaries, *other.summaries)} - {None})
        for key in self.summaries.keys() & other.summaries.keys():
            self.summaries[key].check(other.summaries[key])

    def __add__(self, other: Collection) -> Collection:
        self.check(other)
        summaries = {key: summary.copy() for key, summary in self.summaries.items()}
        counted = self.counts.copy(), self.batches, self.shards
        result = Collection(self.wanted, summaries, *counted, skipped=self.skipped.copy())
        result += other
        return result

    def __iadd__(self, other: Collection) -> Collection:
        self.check(other)
        for key, summary in other.summaries.items():
            if key in self.summaries:
                self.summaries[key] += summary
            else:
                self.summaries[key] = summary.copy()
        self.counts.update(other.counts)  # not `+`, which forgets counts of zero
        self.batches += other.batches
        self.shards += other.shards
        self.skipped |= other.skipped
        return self


@dataclass(eq=False)
class MomentsAndSample(Reduction):
    """Moments of all rows of a source of one layer and a sample of them, for `Source.reduce`.

    >>> from isotrope.sources.vectors.source import ArraySource
    >>> found = ArraySource(np.eye(3)).reduce(MomentsAndSample.empty_for(3, sample=2))
    >>> found.moments.n, found.sample.n
    (3, 2)
    """

    moments: Moments
    sample: Sample

    @classmethod
    def empty_for(cls, width: int, sample: int, seed: int = 0) -> Self:
        """Return an empty one for rows of a width, with a sample of a size."""
        return cls(Moments.empty(width), Sample.empty(width, sample, seed))

    def update(self, batch: Batch, pool: Executor | None = None) -> None:
        for rows in batch.layers.values():
            usable = prepare_rows(rows, batch.rows)
            self.moments += Moments.of(usable)
            self.sample.add(usable)

    def empty(self, bars: Mapping[Any, int] | None = None) -> Self:
        return self.empty_for(self.sample.d, self.sample.size, self.sample.seed)

    def __add__(self, other: Self) -> Self:
        return type(self)(self.moments + other.moments, self.sample + other.sample)

    def settle(self) -> None:
        self.sample.settle()


def _check_groups(groups: set[Any]) -> None:
    if len(groups) > MOST_GROUPS:
        raise InputError(
            f"the group column has more than {MOST_GROUPS:,} different values; "
            "name a column with few values, such as a language or a label."
        )
