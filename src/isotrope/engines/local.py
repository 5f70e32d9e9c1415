"""Source to statistics in this process."""

from __future__ import annotations

import time
from collections.abc import Callable

from isotrope.sources.batch import Source
from isotrope.statistics import Collection

#: Called with the units (rows or texts) done so far and their total, None where unknown.
Progress = Callable[[int, int | None], None]


def run(
    source: Source,
    collection: Collection,
    *,
    progress: Progress | None = None,
    keep: Callable[[Collection], None] | None = None,
    every: float = 60.0,
) -> Collection:
    """Add all batches of a source to a collection, from where the collection stands.

    keep: called with the collection about every `every` seconds, to write a checkpoint.
    """
    total = source.total
    last = time.monotonic()
    for batch in source.batches(start=collection.batches):
        collection.update(batch)
        if progress is not None:
            progress(collection.counts[source.unit], total)
        del batch  # before the next one is made: only one is held at a time
        if keep is not None and time.monotonic() - last >= every:
            keep(collection)
            last = time.monotonic()
    return collection
