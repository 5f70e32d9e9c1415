"""Source to statistics on a Ray cluster: shards as tasks, back-pressure, and a tree of sums."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, cycle
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.engines.local import Progress, pool_for
from isotrope.engines.ray.merge_tree import Tree, levels
from isotrope.engines.ray.replica import Given, Made, name_of, settled, tighter, told_by
from isotrope.layers import Layer
from isotrope.sources.batch import Batch
from isotrope.statistics import Collection, Wanted

if TYPE_CHECKING:
    from isotrope.engines.ray.workers import Workers

T = TypeVar("T")

#: Shards that a worker has at a time: one to work on, one to go on with. And how far any may be ahead of the first
#: that is not done, for each worker: what is done waits in the cluster's memory.
_HELD, _AHEAD = 2, 4

#: Sums that may be under way, for each of those who add up, before reading waits for them.
_SUMS = 10


class RaySource:
    """The rows of a source that replicas on a cluster hold; its batches are numbered and made as everywhere else.

    What is made of shards is added up on the cluster, in an order that only their number decides, see
    `isotrope.engines.ray.merge_tree`. So the result is the same for any number of workers, and this process never
    holds more than one.
    """

    def __init__(self, workers: Workers, given: Given) -> None:
        self._workers, self._ray, self._replicas = workers, workers.ray, workers.replicas
        about = workers.get(self._replicas[0].about.remote(given))
        self._given = given._replace(known=about.pop("known"))
        self.described: dict[str, Any] = about.pop("described")
        self.layers: list[Layer] = about["layers"]
        self.width: int = about["width"]
        self.total: int | None = about["total"]
        self.unit: str = about["unit"]
        self.shard_size: int = about["shard_size"]
        vars(self).update(about)  # and what only some sources have
        self._tell: Progress | None = None
        self._skipped: dict[int, str] = {}  # shards that could not be read, and why

    @property
    def engine(self) -> dict[str, Any]:
        """Plain data for provenance."""
        bad = {name_of(self, number): why for number, why in sorted(self._skipped.items())}
        return self._workers.engine | {"skipped_shards": bad}

    def telling(self, tell: Progress) -> RaySource:
        """The same source, which tells how far it has come."""
        self._tell = tell
        return self

    def describe(self) -> dict[str, Any]:
        return self.described

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        names: list[str] | None = self._workers.get(self._replicas[0].token_names.remote(self._given, tokens))
        return names

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on, made by the workers and brought here."""
        every = chain.from_iterable(self.mapped(_brought))
        return (batch for number, batch in enumerate(every) if number >= start)

    def mapped(self, make: Made[T]) -> Iterator[T]:
        """What is made of each shard, in their order, brought here one at a time."""
        for made in self._shards(make, 0, [None], ahead=_HELD):
            yield self._workers.get(made)

    def collect(
        self,
        collection: Collection,
        *,
        progress: Progress | None = None,
        keep: Callable[[Collection], None] | None = None,
        every: float = 60.0,
    ) -> Collection:
        """Add all shards to a collection, from where the collection stands; as `isotrope.engines.local.run`."""
        before = collection.counts.copy()  # of what is resumed
        self._skipped |= collection.skipped
        if progress is not None:
            self.telling(lambda done, total: progress(before[self.unit] + done, total))

        def whole(now: Collection) -> Collection:
            now.counts["retried_shards"] = before["retried_shards"] + self._workers.retried
            if self._workers.skip:  # some of those that were read may not be in it yet
                now.skipped = {number: why for number, why in self._skipped.items() if number < now.shards}
                now.counts["skipped_shards"] = len(now.skipped)
            return now

        make = partial(_collected, collection.wanted, len(self.layers))
        onto, known = None, told_by(collection)
        if collection.shards:
            onto = self._ray.put(settled(collection))
            collection.summaries.clear()  # it comes back with the rest: only one is held here at a time
        kept = None if keep is None else lambda now: keep(whole(now))
        return whole(self.summed(make, onto=onto, known=known, first=collection.shards, keep=kept, every=every))

    def summed(
        self,
        make: Made[T],
        *,
        onto: Any = None,
        known: Any = None,
        first: int = 0,
        keep: Callable[[T], None] | None = None,
        every: float = 60.0,
    ) -> T:
        """The sum of what is made of the shards from number `first` on, added to what is there already.

        onto: a reference to that; known: what it tells whoever reads on. keep: called with the sum so far about every
        `every` seconds; going on from there gives the same sum.
        """
        mergers, most = cycle(self._workers.mergers), _SUMS * len(self._workers.mergers)
        told: deque[Any] = deque()
        tells = [known]
        last = time.monotonic()

        def added(*those: Any) -> Any:
            """Their sum, as a task that waits for them by itself."""
            tell, result = next(mergers).merge.options(num_returns=2).remote(*those)
            told.append(tell)
            return result

        tree = Tree(added, levels(self._count), onto)
        for part in self._shards(make, first, tells):
            while told and (len(told) > most or self._ray.wait([told[0]], timeout=0)[0]):
                tells[0] = tighter(tells[0], self._workers.get(told.popleft()))
            if tree.add(part) and keep is not None and time.monotonic() - last >= every:
                keep(self._workers.get(tree.whole))
                last = time.monotonic()
        whole = tree.finished()
        result: T = make(iter(()), None) if whole is None else self._workers.get(whole)
        return result

    @property
    def _count(self) -> int | None:
        """How many shards there are, None where unknown."""
        return None if self.total is None else -(-self.total // self.shard_size)

    def _shards(self, make: Made[T], first: int, known: list[Any], ahead: int = _AHEAD) -> Iterator[Any]:
        """References to what is made of each shard, in order.

        known: its only item is what the sum so far tells whoever reads on. ahead: how many shards for each worker are
        begun at most before the first of them is done and handed out.
        """
        end = self._count
        how = self._ray.put(make)
        begun: dict[Any, tuple[int, Any, Any]] = {}
        done: dict[int, Any] = {}
        load = Counter(dict.fromkeys(self._replicas, 0))
        head = following = first
        units = 0
        while True:
            while (end is None or following < end) and following < head + ahead * len(self._replicas):
                replica = min(self._replicas, key=load.__getitem__)
                if load[replica] == _HELD:
                    break
                facts, made = replica.read.options(num_returns=2).remote(
                    self._given, how, following, known[0], self._workers.skip
                )
                begun[facts] = following, made, replica
                load[replica] += 1
                following += 1
            if not begun:
                return
            ref = self._workers.first(list(begun))
            number, made, replica = begun.pop(ref)
            load[replica] -= 1
            facts = self._workers.get(ref)
            if facts.ended and self.total is None:
                end = number if end is None else min(number, end)
            self._workers.lives(replica, facts.life)
            if facts.bad is not None:
                self._skipped[number] = facts.bad
            units += facts.units
            if self._tell is not None:
                self._tell(units, self.total)
            done[number] = made
            while head in done and (end is None or head < end):
                yield done.pop(head)
                head += 1


def _collected(wanted: Wanted, layers: int, batches: Iterable[Batch], bars: Any) -> Collection:
    """The statistics of one shard."""
    collection = Collection(wanted, shards=1, bars=bars or {})
    with pool_for(layers, threads=1) as pool:
        for batch in batches:
            collection.update(batch, pool)
            del batch
    collection.settle()
    return collection


def _brought(batches: Iterable[Batch], _: Any) -> list[Batch]:
    """Batches as numpy arrays, which can go anywhere."""
    from isotrope.compute.arrays import to_numpy

    return [Batch({k: to_numpy(v) for k, v in b.layers.items()}, b.rows, b.counts) for b in batches]
