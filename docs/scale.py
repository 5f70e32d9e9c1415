"""Writes docs/scale.md: what a billion vectors, and a model of 70 billion parameters, would cost. python docs/scale.py

Rates are measured here, for half a minute; the rest is computed from them, and the page says which is which.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from isotrope.engines.ray.cluster import MERGED
from isotrope.engines.ray.merge_tree import FAN, Tree, count_levels, merge
from isotrope.engines.ray.source import _AHEAD, _HELD
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import batches_per_shard
from isotrope.sources.vectors.source import _SHARD_BATCHES, default_rows
from isotrope.statistics import Collection, Moments, Sample, Summary, TokenStatistics, Wanted, prepare_rows

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))

from page_words import amount, span, table
from simulated_ray import SEED, Costs, simulated

from machine import describe

LINK = 10e9 / 8  # bytes per second: 10 Gbit/s
WORKERS = 1_000
SAMPLE = 20_000

#: What is assumed of an accelerator: products per second that a forward pass really gets.
ACCELERATOR = 400e12

#: What is assumed of a text: its tokens; and texts in a forward pass, the default.
TOKENS, TEXTS = 512, 32


class Rates(NamedTuple):
    """Measured on one core: seconds per row at a width, as a·d + b·d²; seconds per byte of adding and of packing."""

    linear: float
    square: float
    merge: float
    pack: float

    def row(self, d: int) -> float:
        return self.linear * d + self.square * d * d

    def costs(self, shard: float, fixed: int, row: float, sample: int) -> Costs:
        """What tasks take, with states of so many bytes beside the rows of their sample."""
        return Costs(shard, 1 / LINK, self.pack, self.merge, fixed, row, sample)


# Measured


def best(function: Callable[[], object], times: int = 7) -> float:
    """Seconds of the quickest of some calls."""

    def once() -> float:
        begin = time.perf_counter()
        function()
        return time.perf_counter() - begin

    return min(once() for _ in range(times))


def seconds_of_row(d: int, rows: int) -> float:
    """Seconds that moments and a sample take of one row, all on one core, once a full sample is known."""
    rng = np.random.default_rng(SEED)
    values = rng.standard_normal((rows, d), dtype=np.float32) + np.float32(0.1)
    full = Collection(Wanted(sample=SAMPLE))
    seen = 20 * SAMPLE
    full.update(Batch({0: np.ones((seen, 1), np.float32)}, Rows(np.arange(10**9, 10**9 + seen, dtype=np.uint64))))

    def update() -> None:
        found = Collection(Wanted(sample=SAMPLE), bars=full.sample_bars())
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
    some = prepare_rows(rng.standard_normal((rows, d), dtype=np.float32), Rows(ids))
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
    states = [summary(768, SAMPLE, seed) for seed in range(FAN)]  # their samples are full
    taken = sum(map(size, states))
    with threadpool_limits(1):
        adding = best(lambda: merge(*states)) / taken
    pack = best(lambda: sent(states[0])) / size(states[0])
    return Rates(max(float(linear), 0.0), max(float(square), 0.0), adding, pack)


def sent(state: Any) -> Any:
    """A state packed, copied and unpacked, as Ray does it."""
    buffers: list[pickle.PickleBuffer] = []
    packed = pickle.dumps(state, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(packed, buffers=[bytes(buffer) for buffer in buffers])


# Computed


def bytes_of(d: int, *, sample: int = SAMPLE, types: int = 0) -> dict[str, int]:
    """Bytes of each statistic of one layer, from the arrays of real ones and how they grow."""
    small, known = Moments.empty(64), Sample.empty(64, 10, SEED)
    ids, ones = np.arange(10, dtype=np.uint64), np.ones((10, 64), np.float32)
    of_tokens = prepare_rows(ones, Rows(ids, np.arange(10), np.zeros(10, np.int64), np.zeros(10, bool)))
    known.add(of_tokens if types else prepare_rows(ones, Rows(ids)))
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


def shards_of_vectors(n: int, d: int) -> int:
    """Rows of a shard, as `isotrope.sources.vectors.source` cuts them."""
    batch = default_rows(d)
    return batch * batches_per_shard(-(-n // batch), least=_SHARD_BATCHES)


def merged_really(shards: int = 1_100, d: int = 16) -> tuple[float, bool]:
    """Real statistics of shards, by the engine's tree and one after another: largest difference, and same sample."""
    parts = [summary(d, 50, seed, 200) for seed in range(shards)]
    line = parts[0].copy()
    for part in parts[1:]:
        line += part
    growing = Tree(merge, count_levels(shards))
    for part in parts:
        growing.add(part)
    tree = growing.finish()
    assert tree is not None
    a, b = line.moments.scatter, tree.moments.scatter
    assert line.sample is not None
    assert tree.sample is not None
    same = bool(np.array_equal(line.sample.values, tree.sample.values))
    return float(np.abs(a - b).max() / np.abs(a).max()), same


# The page


def vectors(rates: Rates, n: int = 10**9, d: int = 768) -> str:
    parts = bytes_of(d)
    state, read = sum(parts.values()), 4 * n * d
    seconds, size = n * rates.row(d), shards_of_vectors(n, d)
    shards = -(-n // size)
    costs = rates.costs(size * rates.row(d), parts["moments"], parts["sample"] / SAMPLE, SAMPLE)
    lines = []
    for workers in (1, 10, 100, WORKERS):
        found = simulated(workers, n, size, costs)
        lines.append((
            f"{workers:,}", span(found.seconds), span(found.after), f"{found.retried}", amount(found.sent),
            f"{found.states:,}", amount(found.store), amount(read / workers), span(read / workers / LINK),
        ))  # fmt: skip
    trees = [
        (
            f"{count:,}",
            f"{count_levels(count)}",
            f"{FAN ** count_levels(count):,}",
            f"{-(-count // FAN ** count_levels(count))}",
        )
        for count in (100, 1_000, shards, 10**6)
    ]
    listed = ", ".join(f"{name} {amount(count)}" for name, count in parts.items())
    runs = ("workers of one core", "time", "of it after the last shard", "shards read again", "sent to be added")
    memory = ("states at a time", "object stores together")
    each = ("read by each", "reading alone, at 10 Gbit/s")
    return f"""## A billion vectors of 768

float32, {amount(read)}. One core takes {rates.row(d) * 1e6:.0f} µs for a row (measured, with `--precision fast`;
exact products take about twice that), so all of them take {span(seconds)} of one core (computed). They are cut into
{shards:,} shards of {size:,} rows. The state of a shard is up to {amount(state)} ({listed}, from the real arrays); once
a full sample is known, hardly more than its moments.

{table((*runs, *memory, *each), lines)}

Simulated: the engine's own driver, with a clock instead of a cluster. Every shard sends one state; a worker has
{_HELD} shards at a time, and none is begun more than {_AHEAD} for each worker ahead of the first that is not done.
There is one who adds up for every {MERGED} workers, with a link of its own. The times of shards are spread by a
lognormal of 20 %, and one in a thousand is lost halfway and read again. Reading hides behind the pass as long as it
takes less. What Ray and the driver themselves need for a task is not in it. At the beginning nobody knows a full sample
yet: the first shards of all workers send theirs whole, and that is what fills the object stores and what many workers
wait for.

States are added up {FAN} at a time on each level, and {FAN} of the last level's to the whole, one addition after
another; the number of shards decides how many levels there are:

{table(("shards", "levels", "shards in an addition", "additions to the whole"), trees)}
"""


def model(rates: Rates, layers: int = 81, d: int = 8_192, tokens: int = 10**7, types: int = 128_256) -> str:
    moments, kept = bytes_of(d, sample=0)["moments"], bytes_of(d, types=types)
    small = bytes_of(d, sample=2_000)["sample"]
    forward = 2 * 70e9 * tokens / ACCELERATOR
    core = tokens * layers * rates.row(d)
    product = 2.0 * layers * d * d
    lines = [(name, amount(count), amount(layers * count)) for name, count in kept.items()]
    lines.append(("all", amount(sum(kept.values())), amount(layers * sum(kept.values()))))
    size = TOKENS * TEXTS * batches_per_shard(-(-tokens // (TOKENS * TEXTS)))
    runs = []
    for some in (1, 8, layers):
        costs = rates.costs(size * some * rates.row(d), some * moments, some * small / 2_000, 2_000)
        found = simulated(8, tokens, size, costs)
        state = costs.size(2_000)
        runs.append((f"{some}", amount(state), amount((FAN + 1) * state), amount(found.store), span(found.after)))
    head = ("layers at a time", "state", "held by one who adds up", "object stores together", "after the last shard")
    return f"""## 80 layers of 8,192

A model of 70 billion parameters has {layers} layers with its embeddings; {tokens:,} tokens of text, {types:,} types.

{table(("statistic", "one layer", "all layers"), lines)}

All of it at once does not fit a common machine: the token statistics alone take {amount(layers * kept["tokens"])}.
What does fit: some layers at a time (`--layers`) and the moments alone (`--measures moments --sample 2000`). Every
shard sends a state, so that on a cluster too it takes few layers at a time; another pass costs another forward pass.
Simulated for 8 workers and {-(-tokens // size)} shards, of texts of {TOKENS} tokens:

{table(head, runs)}

- Forward passes, computed at an assumed {ACCELERATOR / 1e12:.0f} TFLOP/s of an accelerator: {span(forward)} of one.
- The moments' products are {product / 1e9:.1f} GFLOP for a token beside the model's 140: {product / 140e9:.1%} more
  where they run on the accelerator too.
- On CPU cores, computed from the measured rate: {rates.row(d) * 1e3:.1f} ms for a row of 8,192, {span(core)} of one
  core in all. To keep pace with one accelerator it takes {core / forward:,.0f} cores; with fewer, measure fewer layers
  or tokens: 100,000 tokens, twelve times as many rows as dimensions, take {span(core * 1e5 / tokens)} of one core.
"""


def page(rates: Rates) -> str:
    difference, same = merged_really()
    about = describe().splitlines()[0]
    return f"""# Limits on paper

What runs larger than this machine would cost. Measured on one core of {about}: moments and a sample of {SAMPLE:,} rows
of float32 take {rates.linear * 1e9:.1f} ns · d + {rates.square * 1e12:.1f} ps · d² for a row of width d (from widths
768, 1,536 and 3,072), once a full sample is known; adding up states with full samples takes {span(rates.merge * 1e9)}
for a GB, packing and unpacking them {span(rates.pack * 1e9)}. Everything else is computed from these rates, from the
bytes of real statistics, and from links of 10 Gbit/s. Written by `docs/scale.py`.

Done and not computed: moments and samples of 1,100 shards (50 rows of width 16 each), added up by the engine's tree and
one after another. The largest difference is {difference:.0e} of the largest entry, and the samples are
{"the same" if same else "NOT the same"}.

{vectors(rates)}
{model(rates)}"""


def main() -> None:
    Path(__file__).with_name("scale.md").write_text(page(measured()), encoding="utf-8")


if __name__ == "__main__":
    main()
