"""Source to statistics in this process."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager

from isotrope.compute.threads import open_pool
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
    with pool_for(len(source.layers)) as pool:
        for batch in source.batches(start=collection.batches):
            collection.update(batch, pool)
            if progress is not None:
                progress(collection.counts[source.unit], total)
            del batch  # before the next one is made: only one is held at a time
            if keep is not None and time.monotonic() - last >= every:
                keep(collection)
                last = time.monotonic()
    return collection


@contextmanager
def pool_for(layers: int, threads: int | None = None) -> Iterator[Executor | None]:
    """Threads for the large products of several layers, each on one core; one layer alone uses all cores by itself."""
    if layers < 2:
        yield None
        return
    with open_pool(threads or os.cpu_count() or 1) as pool:
        yield pool
