"""Writes docs/scale.md: what a billion vectors, and a model of 70 billion parameters, would cost. python docs/scale.py

Rates are measured here, for some ten seconds; the rest is computed from them, and the page says which is which.
"""

from __future__ import annotations

import heapq
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isotrope.sources.batch import Batch, Rows
from isotrope.statistics import Collection, Moments, Sample, Summary, TokenStatistics, Wanted, block

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from machine import describe

LINK = 10e9 / 8  # bytes per second: 10 Gbit/s
WORKERS = 1_000
SAMPLE = 20_000
SEED = 0

#: What is assumed of an accelerator: products per second that a forward pass really gets.
ACCELERATOR = 400e12


class Rates(NamedTuple):
    """Measured on one core: seconds per row at a width, as a·d + b·d²; seconds per byte of merging and of packing."""

    linear: float
    square: float
    merge: float
    pack: float

    def row(self, d: int) -> float:
        return self.linear * d + self.square * d * d


# Measured


def best(function: Callable[[], object], times: int = 3) -> float:
    """Seconds of the quickest of some calls."""

    def once() -> float:
        begin = time.perf_counter()
        function()
        return time.perf_counter() - begin

    return min(once() for _ in range(times))


def seconds_of_row(d: int, rows: int) -> float:
    """Seconds that moments and a sample take of one row, all on one core."""
    rng = np.random.default_rng(SEED)
    values = rng.standard_normal((rows, d), dtype=np.float32) + np.float32(0.1)

    def update() -> None:
        found = Collection(Wanted(sample=SAMPLE))
        for start in range(0, rows, 2_048):
            part = values[start : start + 2_048]
            ids = np.arange(start, start + len(part), dtype=np.uint64)
            found.update(Batch({0: part}, Rows(ids), {"rows": len(part)}))

    with threadpool_limits(1):
        return best(update) / rows


def summary(d: int, rows: int, seed: int = SEED, sample: int = SAMPLE) -> Summary:
    """Moments and a sample of so many rows."""
    rng = np.random.default_rng(seed)
    ids = np.arange(seed * 10**9, seed * 10**9 + rows, dtype=np.uint64)
    some = block(rng.standard_normal((rows, d), dtype=np.float32), Rows(ids))
    kept = Sample.empty(d, sample, SEED)
    kept.add(some)
    return Summary(Moments.of(some), sample=kept)


def size(statistic: Any) -> int:
    """Bytes of a statistic's whole state."""
    return sum(array.nbytes for array in statistic.arrays().values())


def measured() -> Rates:
    """The rates of this machine."""
    widths = {768: 16_384, 1_536: 6_144, 3_072: 4_096}
    times = [seconds_of_row(d, rows) for d, rows in widths.items()]
    design = np.array([[d, d * d] for d in widths], float)
    weights = 1.0 / np.array(times)
    linear, square = np.linalg.lstsq(design * weights[:, None], np.ones(len(times)), rcond=None)[0]
    first, second = summary(768, 6_000, 1), summary(768, 6_000, 2)
    with threadpool_limits(1):
        merge = best(lambda: first + second) / size(second)
    from safetensors.numpy import load, save

    arrays = {name: np.ascontiguousarray(array) for name, array in second.arrays().items()}
    pack = best(lambda: load(save(arrays))) / size(second)
    return Rates(max(float(linear), 0.0), max(float(square), 0.0), merge, pack)


# Computed


def bytes_of(d: int, *, sample: int = SAMPLE, types: int = 0) -> dict[str, int]:
    """Bytes of each statistic of one layer, from the arrays of real ones and how they grow."""
    small, known = Moments.empty(64), Sample.empty(64, 10, SEED)
    ids, ones = np.arange(10, dtype=np.uint64), np.ones((10, 64), np.float32)
    of_tokens = block(ones, Rows(ids, np.arange(10), np.zeros(10, np.int64), np.zeros(10, bool)))
    known.add(of_tokens if types else block(ones, Rows(ids)))
    tokens = TokenStatistics.of(of_tokens)
    fixed = size(small) - 8 * (64 * 64 + 2 * 64)
    each_row = (size(known) - known.arrays()["facts"].nbytes) / 10 - 4 * 64
    each_type = size(tokens) / len(tokens)
    of_width = sum(a.dtype.itemsize for a in tokens.arrays().values() if a.ndim == 2)
    found = {
        "moments": fixed + 8 * (d * d + 2 * d),
        "sample": round(sample * (4 * d + each_row)),
        "tokens": round(types * (each_type + of_width * (d - 64))),
    }
    return {name: count for name, count in found.items() if count}


def depth(workers: int, fan: int) -> int:
    """Levels of a tree that joins `fan` at a time.

    >>> [depth(n, 8) for n in (1, 8, 9, 1_000)]
    [0, 1, 2, 4]
    """
    levels = 0
    while workers > 1:
        workers = -(-workers // fan)
        levels += 1
    return levels


def tree_seconds(workers: int, fan: int, count: int, rates: Rates) -> float:
    """Seconds from the last worker's end to the one result: on each level a node takes in fan - 1 others."""
    total = 0.0
    while workers > 1:
        total += (min(fan, workers) - 1) * join_seconds(count, rates)
        workers = -(-workers // fan)
    return total


def join_seconds(count: int, rates: Rates) -> float:
    """Seconds to pack, send and add one state."""
    return count / LINK + count * (rates.merge + rates.pack)


class Outcome(NamedTuple):
    """Of a simulated run: seconds in all, seconds after the last shard, shards tried again, bytes sent."""

    seconds: float
    after: float
    retried: int
    sent: int


def simulated(
    workers: int,
    shards: int,
    shard: float,
    count: int,
    rates: Rates,
    *,
    fan: int = 8,
    slow: float = 0.2,
    fail: float = 0.001,
) -> Outcome:
    """Shards handed to whoever is free, some slow and some failing and tried again; then the tree, as states come in.

    slow: deviation of the logarithm of a shard's time. fail: share of shards that are lost, halfway on average.
    """
    rng = np.random.default_rng(SEED)
    free = [(0.0, worker) for worker in range(workers)]
    heapq.heapify(free)
    ends = np.zeros(workers)
    waiting, retried = shards, 0
    while waiting:
        now, worker = heapq.heappop(free)
        took = shard * (rng.lognormal(-slow * slow / 2, slow) if slow else 1.0)
        if rng.random() < fail:
            took *= rng.random()
            retried += 1
        else:
            waiting -= 1
        ends[worker] = now + took
        heapq.heappush(free, (now + took, worker))
    last, level = float(ends.max()), ends
    while len(level) > 1:
        level = np.array([_joined(level[i : i + fan], count, rates) for i in range(0, len(level), fan)])
    return Outcome(float(level[0]), float(level[0]) - last, retried, (workers - 1) * count)


def _joined(ready: np.ndarray, count: int, rates: Rates) -> float:
    """When a node has added the states of its group, one after another as they come in; one is its own."""
    first, *others = np.sort(ready)
    for other in others:
        first = max(first, other) + join_seconds(count, rates)
    return float(first)


def merged_really(workers: int = WORKERS, fan: int = 8, d: int = 16) -> tuple[float, bool]:
    """Real statistics of so many workers, merged by the tree and one after another: largest difference, same sample."""
    parts = [summary(d, 50, seed, 200) for seed in range(workers)]
    line = parts[0].copy()
    for part in parts[1:]:
        line += part
    while len(parts) > 1:
        joined = []
        for start in range(0, len(parts), fan):
            node = parts[start].copy()
            for other in parts[start + 1 : start + fan]:
                node += other
            joined.append(node)
        parts = joined
    tree = parts[0]
    a, b = line.moments.scatter, tree.moments.scatter
    assert line.sample is not None
    assert tree.sample is not None
    same = bool(np.array_equal(line.sample.values, tree.sample.values))
    return float(np.abs(a - b).max() / np.abs(a).max()), same


# The page


def span(seconds: float) -> str:
    """A duration in words.

    >>> [span(s) for s in (0.02, 7, 300, 7_200, 400_000)]
    ['20 ms', '7.0 s', '5.0 min', '2.0 h', '4.6 days']
    """
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        if seconds >= (2 * length if unit == "days" else length):
            return f"{seconds / length:.1f} {unit}"
    return f"{seconds * 1e3:.0f} ms"


def amount(count: float) -> str:
    """Bytes in words.

    >>> [amount(n) for n in (900, 5e6, 3.07e12)]
    ['900 B', '5.0 MB', '3.1 TB']
    """
    for unit, length in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.1f} {unit}"
    return f"{count:.0f} B"


def table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def vectors(rates: Rates, n: int = 10**9, d: int = 768) -> str:
    parts = bytes_of(d)
    state, read = sum(parts.values()), 4 * n * d
    seconds = n * rates.row(d)
    shards = 20_000
    lines = []
    for workers in (1, 10, 100, WORKERS):
        found = simulated(workers, shards, seconds / shards, state, rates)
        lines.append((
            f"{workers:,}", span(found.seconds), span(found.after), f"{found.retried}", amount(found.sent),
            amount(read / workers), span(read / workers / LINK),
        ))  # fmt: skip
    fans = [
        (f"{fan}", f"{depth(WORKERS, fan)}", span(tree_seconds(WORKERS, fan, state, rates)),
         amount((fan - 1) * state * depth(WORKERS, fan)), amount(2 * state))
        for fan in (2, 4, 8, 32, WORKERS)
    ]  # fmt: skip
    listed = ", ".join(f"{name} {amount(count)}" for name, count in parts.items())
    runs = ("workers of one core", "time", "of it after the last shard", "shards tried again", "sent to merge")
    each = ("read by each", "reading alone, at 10 Gbit/s")
    return f"""## A billion vectors of 768

float32, {amount(read)}. One core takes {rates.row(d) * 1e6:.0f} µs for a row (measured, with `--precision fast`;
exact products take about twice that), so all of them take {span(seconds)} of one core (computed). The state of a worker
is {amount(state)} ({listed}, from the real arrays), whatever the number of rows.

{table((*runs, *each), lines)}

Simulated: {shards:,} shards handed to whoever is free, their times spread by a lognormal of 20 %, one in a thousand
lost halfway and done again, then a tree that joins eight at a time. Reading hides behind the pass as long as it takes
less.

What the tree costs after the last shard, by how many states a node joins, for {WORKERS:,} workers:

{table(("joined at a time", "levels", "time", "into the busiest link", "held by a node"), fans)}

The last line is no tree: one process takes in all. Few states per node win, because a node has one link.
"""


def model(rates: Rates, layers: int = 81, d: int = 8_192, tokens: int = 10**7, types: int = 128_256) -> str:
    moments = bytes_of(d, sample=0)["moments"]
    kept = bytes_of(d, types=types)
    forward = 2 * 70e9 * tokens / ACCELERATOR
    core = tokens * layers * rates.row(d)
    product = 2.0 * layers * d * d
    lines = [(name, amount(count), amount(layers * count)) for name, count in kept.items()]
    lines.append(("all", amount(sum(kept.values())), amount(layers * sum(kept.values()))))
    small = bytes_of(d, sample=2_000)["sample"]
    state = layers * (moments + small)
    fans = [
        (
            f"{workers:,}",
            f"{depth(workers, 8)}",
            amount((workers - 1) * state),
            span(tree_seconds(workers, 8, state, rates)),
        )
        for workers in (8, 64, WORKERS)
    ]
    return f"""## 80 layers of 8,192

A model of 70 billion parameters has {layers} layers with its embeddings; {tokens:,} tokens of text, {types:,} types.

{table(("statistic", "one layer", "all layers"), lines)}

All of it at once does not fit a common machine: the token statistics alone take {amount(layers * kept["tokens"])}.
What does fit: some layers at a time (`--layers`), the moments alone (`--measures moments --sample 2000`:
{amount(state)} for all layers), or a state spread over the workers that hold the model's layers. A second pass costs
another forward pass.

- Forward passes, computed at an assumed {ACCELERATOR / 1e12:.0f} TFLOP/s of an accelerator: {span(forward)} of one.
- The moments' products are {product / 1e9:.1f} GFLOP for a token beside the model's 140: {product / 140e9:.1%} more
  where they run on the accelerator too.
- On CPU cores, computed from the measured rate: {rates.row(d) * 1e3:.1f} ms for a row of 8,192, {span(core)} of one
  core in all. To keep pace with one accelerator it takes {core / forward:,.0f} cores; with fewer, measure fewer layers
  or tokens: 100,000 tokens, twelve times as many rows as dimensions, take {span(core * 1e5 / tokens)} of one core.

The tree for moments and a sample of 2,000 of all layers, eight states joined at a time:

{table(("workers", "levels", "sent", "time after the last shard, at 10 Gbit/s"), fans)}
"""


def page(rates: Rates) -> str:
    difference, same = merged_really()
    about = describe().splitlines()[0]
    return f"""# Limits on paper

What runs larger than this machine would cost. Measured on one core of {about}: moments and a sample of {SAMPLE:,} rows
of float32 take {rates.linear * 1e9:.1f} ns · d + {rates.square * 1e12:.1f} ps · d² for a row of width d (from widths
768, 1,536 and 3,072); adding a state takes {span(rates.merge * 1e9)} for a GB, packing and unpacking it
{span(rates.pack * 1e9)}. Everything else is computed from these rates, from the bytes of real statistics, and from
links of 10 Gbit/s. Written by `docs/scale.py`.

Done and not computed: moments and samples of {WORKERS:,} workers (50 rows of width 16 each), merged by the tree and one
after another. The largest difference is {difference:.0e} of the largest entry, and the samples are
{"the same" if same else "NOT the same"}.

{vectors(rates)}
{model(rates)}"""


def main() -> None:
    Path(__file__).with_name("scale.md").write_text(page(measured()), encoding="utf-8")


if __name__ == "__main__":
    main()
