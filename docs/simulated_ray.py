"""A Ray cluster on paper: the engine's own driver runs on it, and a clock is set forward by what tasks would take."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from isotrope.engines.ray.cluster import MERGED
from isotrope.engines.ray.replica import Facts, Given
from isotrope.engines.ray.source import RaySource, Workers

SEED = 0


class Costs(NamedTuple):
    """What tasks take: seconds to read a shard, to send a byte, to pack it and unpack it, and to add it.

    fixed: bytes of a state beside its sample; row: bytes of a sampled row; sample: rows of a full one.
    """

    shard: float
    send: float
    pack: float
    merge: float
    fixed: int
    row: float
    sample: int

    def size(self, kept: float) -> float:
        """Bytes of a state with so many sampled rows."""
        return self.fixed + self.row * kept

    def join(self, taken: float, made: float) -> float:
        """Seconds to take in so many bytes of states, add them up, and pack the sum."""
        return taken * (self.send + self.pack / 2 + self.merge) + made * self.pack / 2


class State(NamedTuple):
    """What is made of some rows: how many they are, and how many of them the sample has kept."""

    rows: int
    kept: float
    full: bool

    def sample_bars(self) -> dict[str, float]:
        """The share of all rows that can still enter a full sample."""
        return {"share": self.kept / self.rows} if self.full else {}


class Ref:
    """A reference to what is there from some time on; with the last one what it stands for is gone, as in Ray."""

    def __init__(self, ray: SimulatedRay, value: Any, ready: float) -> None:
        self._ray, self.value, self.ready, self.used = ray, value, ready, ready

    def __del__(self) -> None:
        if isinstance(self.value, State):
            self._ray.held.append((self.ready, max(self.used, self._ray.now), self._ray.costs.size(self.value.kept)))


class _Method:
    def __init__(self, function: Callable[..., Any]) -> None:
        self.remote = function

    def options(self, **_: Any) -> _Method:
        return self


class Reader:
    """A worker of one core, which reads its shards one after another, some slower, some lost halfway and read again."""

    def __init__(self, ray: SimulatedRay, rows: int, shard_size: int) -> None:
        self._ray, self._rows, self._size, self._free, self._life = ray, rows, shard_size, 0.0, 0
        self.about, self.read = _Method(self._about), _Method(self._read)

    def _about(self, _: Given) -> Ref:
        known = {"layers": [0], "width": 1, "total": self._rows, "unit": "rows", "shard_size": self._size}
        known |= {"layer_names": {}, "batch_rows": None, "dtype": None, "parts": 1}
        return Ref(self._ray, {"values": known, "described": {}, "identity": ()}, 0.0)

    def _read(self, _: Given, how: Ref, number: int, hint: Any, skip: bool) -> tuple[Ref, Ref]:
        ray = self._ray
        rows = min(self._size, self._rows - number * self._size)
        took = ray.slowness() * ray.costs.shard * rows / self._size
        if ray.rng.random() < ray.fail:
            took *= 1 + ray.rng.random()
            self._life += 1
        kept = min(ray.costs.sample, rows * (hint or {}).get("share", 1.0))
        state = State(rows, kept, kept == ray.costs.sample)
        took += ray.costs.size(kept) * ray.costs.pack / 2
        self._free = max(self._free, ray.now) + took
        ray.read = max(ray.read, self._free)
        return Ref(ray, Facts(rows, False, str(self._life), None), self._free), Ref(ray, state, self._free)


class Adder:
    """One who takes in states over its one link and adds them up, in the order in which it is asked to."""

    def __init__(self, ray: SimulatedRay) -> None:
        self._ray, self._free = ray, 0.0
        self.merge = _Method(self._merge)

    def _merge(self, *refs: Ref) -> tuple[Ref, Ref]:
        ray, states = self._ray, [ref.value for ref in refs]
        taken = sum(ray.costs.size(state.kept) for state in states)
        kept = min(ray.costs.sample, sum(state.kept for state in states))
        rows = sum(state.rows for state in states)
        whole = State(rows, kept, kept == ray.costs.sample)
        begin = max(ray.now, self._free, *(ref.ready for ref in refs))
        self._free = begin + ray.costs.join(taken, ray.costs.size(kept))
        for ref in refs:
            ref.used = max(ref.used, self._free)
        ray.merges += 1
        ray.sent += taken
        return Ref(ray, whole.sample_bars(), self._free), Ref(ray, whole, self._free)


class SimulatedRay:
    """The part of the module `ray` that a source needs, with a clock that is set forward to what is waited for.

    slow: deviation of the logarithm of a shard's time. fail: share of shards whose worker is lost, halfway on average.
    """

    def __init__(self, costs: Costs, *, slow: float = 0.2, fail: float = 0.001) -> None:
        self.costs, self.slow, self.fail = costs, slow, fail
        self.rng = np.random.default_rng(SEED)
        self.now = self.read = self.sent = 0.0
        self.merges = 0
        self.held: list[tuple[float, float, float]] = []  # from, to, and bytes of every state

    def slowness(self) -> float:
        return float(self.rng.lognormal(-self.slow * self.slow / 2, self.slow)) if self.slow else 1.0

    def put(self, value: Any) -> Ref:
        return Ref(self, value, self.now)

    def get(self, reference: Ref) -> Any:
        self.now = max(self.now, reference.ready)
        if isinstance(reference.value, State):
            self.now += self.costs.size(reference.value.kept) * (self.costs.send + self.costs.pack / 2)
        return reference.value

    def wait(self, references: list[Ref], num_returns: int = 1, timeout: float | None = None) -> tuple[Any, None]:
        first = min(references, key=lambda ref: ref.ready)
        if first.ready > self.now and timeout == 0:
            return [], None
        self.now = max(self.now, first.ready)
        return [first], None

    def workers(self, count: int, rows: int, shard_size: int) -> Workers:
        readers: dict[Any, str] = {Reader(self, rows, shard_size): "0" for _ in range(count)}
        return Workers(self, readers, [Adder(self) for _ in range(-(-count // MERGED))], skip=False)


class Outcome(NamedTuple):
    """Of a simulated run: seconds in all and after the last shard; shards read again; sums; bytes sent to them.

    states, store: how many states, and bytes of them, the cluster held at a time at most.
    """

    seconds: float
    after: float
    retried: int
    merges: int
    sent: float
    states: int
    store: float


def simulated(workers: int, rows: int, shard_size: int, costs: Costs, **chance: float) -> Outcome:
    """The engine's own driver, from the first shard to the one result, by so many workers."""
    ray = SimulatedRay(costs, **chance)
    there = ray.workers(workers, rows, shard_size)
    source = RaySource(there, Given(1, None))
    found: State = source.sum_shards(lambda *_: State(0, 0.0, False))
    assert found.rows == rows
    states, store = _most(ray.held)
    return Outcome(ray.now, ray.now - ray.read, there.retried, ray.merges, ray.sent, states, store)


def _most(held: list[tuple[float, float, float]]) -> tuple[int, float]:
    """How many of what is held from one time to another, and bytes of it, there are at once at most.

    >>> _most([(0.0, 2.0, 10.0), (1.0, 3.0, 5.0), (2.0, 4.0, 1.0)])
    (2, 15.0)
    """
    changes = [(end, -1, -size) for _, end, size in held] + [(begin, 1, size) for begin, _, size in held]
    counts, sizes = zip(*((count, size) for _, count, size in sorted(changes)), strict=True)
    return int(np.cumsum(counts).max()), float(np.cumsum(sizes).max())
