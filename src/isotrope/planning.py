"""What a scan would cost, before it starts: rows, layers, time, memory and disk."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import islice

from isotrope.sources.batch import Source
from isotrope.sources.encoding import encode
from isotrope.sources.text import TextSource
from isotrope.statistics import Collection, Wanted

#: Batches that are run to measure the rate, and texts that are tokenized to estimate the length of the rest.
_TIMED_BATCHES = 2
_COUNTED_TEXTS = 2_000

#: Seconds for the intervals and nulls of one layer at 384 dimensions; eigenvalue problems grow as the cube.
_FINISH_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Plan:
    """An estimate. rows: of each layer. seconds: of the whole scan. memory, disk: bytes at the peak and at the end."""

    rows: int
    layers: int
    width: int
    seconds: float
    memory: int
    disk: int


def plan(source: Source, wanted: Wanted) -> Plan:
    """Measure the rate on the first batches and scale it up; nothing is written."""
    trial = Collection(wanted)
    begin = time.perf_counter()
    for batch in islice(source.batches(), _TIMED_BATCHES):
        trial.update(batch)
    seconds = time.perf_counter() - begin
    timed = max(1, next(iter(trial.summaries.values())).moments.n) if trial.summaries else 1
    rows = _rows(source)
    layers, d = len(source.layers), source.width
    sample = min(wanted.sample, rows)
    finish = _FINISH_SECONDS * layers * (d / 384) ** 2 if wanted.sample else 0.0
    types = min(rows, 30_000) if wanted.tokens else 0
    statistics = layers * (8 * d * d + 12 * d * types + 4 * d * sample)
    weights = source.describe().get("parameters", 0) * 4
    return Plan(
        rows=rows,
        layers=layers,
        width=d,
        seconds=seconds / timed * rows + finish,
        memory=int(2 * statistics + 3 * weights + 300e6),
        disk=int(statistics + layers * types * 64),
    )


def _rows(source: Source) -> int:
    """Rows of each layer: known for vectors and pooled texts, estimated from the first texts otherwise."""
    if not isinstance(source, TextSource):
        return source.total or 0
    texts = list(islice(source.corpus, _COUNTED_TEXTS))
    encoded = encode(source.loaded, texts, source.max_length)
    count = source.total or len(texts)
    if source.pooling is not None:
        return count
    kept = [int((~e.special).sum()) if source.special_tokens == "drop" else len(e.tokens) for e in encoded]
    return round(sum(kept) / max(len(texts), 1) * count)
