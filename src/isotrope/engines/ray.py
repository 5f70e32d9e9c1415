"""Source to statistics on a Ray cluster: replicas as actors, shards as tasks, a tree of sums, and back-pressure."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain, cycle
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.engines.cluster import joined, number_of_workers, places, ready, without_place
from isotrope.engines.local import Progress, pool_for
from isotrope.engines.replica import (
    Facts,
    Made,
    Merger,
    Replica,
    name_of,
    reachable,
    settled,
    tighter,
    told_by,
)
from isotrope.errors import InputError
from isotrope.sources.batch import Batch, Layer
from isotrope.sources.inputs import Input
from isotrope.statistics import Collection, Wanted

T = TypeVar("T")

#: Shards, or sums, that are added up in one task; and sums that are added to the whole at once.
_FAN = 4

#: Shards that a worker has at a time: one to work on, one to go on with. And how far any may be ahead of the first
#: that is not done, for each worker: what is done waits in the cluster's memory.
_HELD, _AHEAD = 2, 4

#: Times that a task whose worker was lost is begun again: one that kills every worker must not go on for ever, and one
#: lost machine alone may use up half a dozen.
_TRIES = 50

#: Seconds between looks at what is waited for, and seconds that workers may be without a place to run meanwhile.
_LOOK, _PLACE = 5.0, 60.0

#: Workers for each of those who add up what they make.
_MERGED = 16

#: Sums that may be under way before reading waits for them.
_SUMS = 10


class Workers:
    """Replicas on a cluster, those who add up what they make, and what became of their shards.

    retried: shards that were begun again because their worker was lost. skipped: names of shards that could not be
    read, and why.
    """

    def __init__(self, ray: Any, lives: dict[Any, str], mergers: list[Any], *, skip: bool) -> None:
        self.ray, self.replicas, self.mergers, self.skip = ray, list(lives), mergers, skip
        self._lives = lives
        self.retried = 0
        self.skipped: dict[str, str] = {}
        self._readings = 0

    @property
    def engine(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return {
            "name": "ray",
            "version": self.ray.__version__,
            "workers": len(self.replicas),
            "retried_shards": self.retried,
            "skipped_shards": dict(self.skipped),
        }

    def open(self, reading: Input) -> RaySource:
        """The source of a reading on all of them; a model that one of them has loaded already stays loaded."""
        self._readings += 1
        return RaySource(self, self.ray.put((self._readings, reachable(reading))))

    def lives(self, replica: Any, life: str) -> None:
        """Take note of who read a shard: one that takes a lost one's place has begun its first shard again."""
        self.retried += life != self._lives[replica]
        self._lives[replica] = life

    def first(self, references: list[Any]) -> Any:
        """The first of some references that is there, unless workers find no place to run: Ray would wait for ever."""
        since = None
        while not (found := self.ray.wait(references, num_returns=1, timeout=_LOOK)[0]):
            now, lost = time.monotonic(), without_place((*self.replicas, *self.mergers))
            since = (since or now) if lost else None
            if since is not None and now - since >= _PLACE:
                raise InputError(
                    f"a machine of the cluster was lost and {lost} of {len(self.replicas)} workers find no place to "
                    "run on; go on with --resume and fewer --workers, or when the machine is back."
                )
        return found[0]

    def get(self, reference: Any) -> Any:
        """What a reference stands for; an error of a worker's as if it had happened here."""
        self.first([reference])
        try:
            return self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            cause = error.cause if isinstance(error, self.ray.exceptions.RayTaskError) else error
            if not isinstance(cause, self.ray.exceptions.RayError):
                raise cause from None
            reason = f"{type(cause).__name__}: {str(cause).strip().splitlines()[0].rstrip('.:')[:200]}"
            raise InputError(
                f"the cluster lost a worker or what it had made {_TRIES} times over ({reason}); "
                "it may be out of memory: try fewer workers or a smaller --batch-size."
            ) from error


@contextmanager
def ray_workers(*, address: str | None, workers: int | None, gpus_per_worker: float, skip: bool) -> Iterator[Workers]:
    """Workers on a cluster. skip: leave shards out that cannot be read."""
    with joined(address, workers) as ray:
        count = number_of_workers(ray, workers, gpus_per_worker)
        again = {"max_restarts": -1, "max_task_retries": _TRIES}
        # They hold no CPU, so that one whose machine is lost finds a place where all CPUs have their workers already.
        reader = ray.remote(num_cpus=0, num_gpus=gpus_per_worker, **again)(Replica)
        merger = ray.remote(num_cpus=0, **again)(Merger)
        where = ["DEFAULT"] * count if gpus_per_worker else places(ray, count)  # Ray knows which GPUs are free
        readers = [reader.options(scheduling_strategy=place).remote() for place in where]
        mergers = [merger.remote() for _ in range(-(-count // _MERGED))]
        try:
            yield Workers(ray, ready(ray, readers), list(ready(ray, mergers)), skip=skip)
        finally:
            for actor in (*readers, *mergers):
                ray.kill(actor)


class RaySource:
    """The rows of a source that replicas on a cluster hold; its batches are numbered and made as everywhere else.

    What is made of shards is added up on the cluster, in an order that only their numbers decide: four and four, and
    sums of sums to the whole. So the result is the same for any number of workers, and this process never holds more
    than one.
    """

    def __init__(self, workers: Workers, given: Any) -> None:
        self._workers, self._given = workers, given
        self._ray, self._replicas = workers.ray, workers.replicas
        about = workers.get(self._replicas[0].about.remote(given))
        self.described: dict[str, Any] = about.pop("described")
        self.layers: list[Layer] = about["layers"]
        self.width: int = about["width"]
        self.total: int | None = about["total"]
        self.unit: str = about["unit"]
        self.shard_size: int = about["shard_size"]
        vars(self).update(about)  # and what only some sources have
        self._tell: Progress | None = None

    @property
    def engine(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return self._workers.engine

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
        if progress is not None:
            self.telling(lambda done, total: progress(before[self.unit] + done, total))

        def whole(now: Collection) -> Collection:
            now.counts["retried_shards"] = before["retried_shards"] + self._workers.retried
            if self._workers.skip:
                now.counts["skipped_shards"] = before["skipped_shards"] + len(self._workers.skipped)
            return now

        make = partial(_collected, collection.wanted, len(self.layers))
        onto = collection if collection.shards else None
        kept = None if keep is None else lambda now: keep(whole(now))
        return whole(self.summed(make, onto=onto, first=collection.shards, keep=kept, every=every))

    def summed(
        self,
        make: Made[T],
        *,
        onto: T | None = None,
        first: int = 0,
        keep: Callable[[T], None] | None = None,
        every: float = 60.0,
    ) -> T:
        """The sum of what is made of the shards from number `first` on, added to what is there already.

        keep: called with the sum so far about every `every` seconds; going on from there gives the same sum.
        """
        mergers = cycle(self._workers.mergers)
        whole = None if onto is None else self._ray.put(settled(onto))
        known = [told_by(onto)]
        told: deque[Any] = deque()
        parts: list[Any] = []
        sums: list[Any] = []
        last = time.monotonic()

        def added(*those: Any) -> Any:
            """Their sum, as a task that waits for them by itself."""
            tells, result = next(mergers).merge.options(num_returns=2).remote(*those)
            told.append(tells)
            return result

        for part in self._shards(make, first, known):
            parts.append(part)
            while told and (len(told) > _SUMS or self._ray.wait([told[0]], timeout=0)[0]):
                known[0] = tighter(known[0], self._workers.get(told.popleft()))
            if len(parts) == _FAN:
                sums.append(added(*parts))
                parts.clear()
            if len(sums) == _FAN:
                whole = added(*sums) if whole is None else added(whole, *sums)
                sums.clear()
                if keep is not None and time.monotonic() - last >= every:
                    keep(self._workers.get(whole))
                    last = time.monotonic()
        if parts:
            sums.append(added(*parts))
        if sums:
            whole = added(*sums) if whole is None else added(whole, *sums)
        result: T = make(iter(()), None) if whole is None else self._workers.get(whole)
        return result

    def _shards(self, make: Made[T], first: int, known: list[Any], ahead: int = _AHEAD) -> Iterator[Any]:
        """References to what is made of each shard, in order.

        known: its only item is what the sum so far tells whoever reads on. ahead: how many shards for each worker are
        begun at most before the first of them is done and handed out.
        """
        end = None if self.total is None else -(-self.total // self.shard_size)
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
                end = min(number, end or number)
            self._workers.lives(replica, facts.life)
            self._note(number, facts)
            units += facts.units
            if self._tell is not None:
                self._tell(units, self.total)
            done[number] = made
            while head in done and (end is None or head < end):
                yield done.pop(head)
                head += 1

    def _note(self, number: int, facts: Facts) -> None:
        if facts.bad is not None:
            self._workers.skipped[name_of(self, number)] = facts.bad


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
    from isotrope.statistics.block import to_numpy

    return [Batch({k: to_numpy(v) for k, v in b.layers.items()}, b.rows, b.counts) for b in batches]
