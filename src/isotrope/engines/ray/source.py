"""Source to statistics on a Ray cluster: shards as tasks of workers, back-pressure, and a tree of sums."""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import cycle
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.engines.ray.cluster import TRIES, count_unplaced, start_workers
from isotrope.engines.ray.merge_tree import Tree, count_levels, merge_bars
from isotrope.engines.ray.replica import Given, Made, map_shard, name_shard, reduce_shard, use_absolute_paths
from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.sources.batch import Batch
from isotrope.sources.input import Input
from isotrope.sources.row_names import RowName
from isotrope.sources.source import Reduction, Source

T = TypeVar("T")
R = TypeVar("R", bound=Reduction)

#: Shards that a worker has at a time: one to work on, one to go on with. And how far any may be ahead of the first
#: that is not done, for each worker: what is done waits in the cluster's memory.
_HELD, _AHEAD = 2, 4

#: Sums that may be under way, for each of those who add up, before reading waits for them.
_SUMS = 10

#: Seconds between looks at what is waited for, and seconds that workers may be without a place to run meanwhile.
_LOOK, _PLACE = 5.0, 60.0


@contextmanager
def ray_workers(*, address: str | None, workers: int | None, gpus_per_worker: float, skip: bool) -> Iterator[Workers]:
    """Workers on a cluster. skip: leave shards out that cannot be read."""
    with start_workers(address, workers, gpus_per_worker) as (ray, lives, mergers):
        yield Workers(ray, lives, mergers, skip=skip)


class Workers:
    """Replicas on a cluster, those who add up what they make, and what became of their shards.

    retried: shards that were begun again because their worker was lost.
    """

    def __init__(self, ray: Any, lives: dict[Any, str], mergers: list[Any], *, skip: bool) -> None:
        self.ray, self.replicas, self.mergers, self.skip = ray, list(lives), mergers, skip
        self._lives = lives
        self.retried = 0
        self._readings = 0

    @property
    def engine(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return {
            "name": "ray",
            "version": self.ray.__version__,
            "workers": len(self.replicas),
            "retried_shards": self.retried,
            "skipped_shards": {},
        }

    def open(self, reading: Input) -> RaySource:
        """The source of a reading on all of them; a model that one of them has loaded already stays loaded."""
        self._readings += 1
        return RaySource(self, Given(self._readings, self.ray.put(use_absolute_paths(reading))))

    def lives(self, replica: Any, life: str) -> None:
        """Take note of who read a shard: one that takes a lost one's place has begun its first shard again."""
        self.retried += life != self._lives[replica]
        self._lives[replica] = life

    def first(self, references: list[Any]) -> Any:
        """The first of some references that is there, unless workers find no place to run: Ray would wait for ever."""
        since = None
        while not (found := self.ray.wait(references, num_returns=1, timeout=_LOOK)[0]):
            now, lost = time.monotonic(), count_unplaced(self.replicas)
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
                f"the cluster lost a worker or what it had made {TRIES} times over ({reason}); "
                "it may be out of memory: try fewer workers or a smaller --batch-size."
            ) from error


class RaySource(Source):
    """The rows of a source that replicas on a cluster hold; its batches are numbered and made as everywhere else.

    What is made of shards is added up on the cluster, in an order that only their number decides, see
    `isotrope.engines.ray.merge_tree`. So the result is the same for any number of workers, and this process never
    holds more than one.
    """

    # Properties of other sources; here they are values that a replica has sent.
    total: int | None = None
    shard_size: int = 0
    layer_names: Mapping[Layer, str] = MappingProxyType({})
    parts: int = 1
    has_names: bool = False

    def __init__(self, workers: Workers, given: Given) -> None:
        self._workers, self._ray, self._replicas = workers, workers.ray, workers.replicas
        self._about = workers.get(self._replicas[0].about.remote(given))
        self._given = given._replace(identity=self._about["identity"])
        for name, value in self._about["values"].items():
            setattr(self, name, value)
        self._skipped: dict[int, str] = {}  # shards that could not be read, and why

    @property
    def engine(self) -> dict[str, Any]:
        """Plain data for provenance."""
        bad = {name_shard(self, number): why for number, why in sorted(self._skipped.items())}
        return self._workers.engine | {"skipped_shards": bad}

    def describe(self) -> dict[str, Any]:
        return dict(self._about["described"])

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        names: list[str] | None = self._workers.get(self._replicas[0].token_names.remote(self._given, tokens))
        return names

    def check_names(self) -> None:
        self._workers.get(self._replicas[0].check_names.remote(self._given))

    def find_names(self, rows: NDArray[np.uint64]) -> Mapping[int, RowName]:
        names: Mapping[int, RowName] = self._workers.get(self._replicas[0].find_names.remote(self._given, rows))
        return names

    def measure_texts(self, rows: NDArray[np.uint64]) -> Mapping[int, int]:
        lengths: Mapping[int, int] = self._workers.get(self._replicas[0].measure_texts.remote(self._given, rows))
        return lengths

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on, made by the workers and brought here."""
        return (batch for number, batch in enumerate(self.map(Batch.to_numpy)) if number >= start)

    def map(self, function: Callable[[Batch], T]) -> Iterator[T]:
        """What the workers make of each batch, in order, brought here one shard at a time."""
        for made in self._shards(partial(map_shard, function), 0, [None], ahead=_HELD):
            yield from self._workers.get(made)

    def reduce(self, result: R, *, keep: Callable[[R], None] | None = None, every: float = 60.0) -> R:
        """Add all shards to a result, from where it stands; see `Source.reduce`."""
        retried, done = result.count_done("retried_shards"), result.count_done(self.unit)
        self._skipped |= result.skipped

        def whole(now: R) -> R:
            now.note_shards(retried + self._workers.retried, self._skipped if self._workers.skip else None)
            return now

        make = partial(reduce_shard, result.empty(), len(self.layers))
        onto, known = None, result.sample_bars()
        if result.shards:
            result.settle()  # what arrives cannot be written to
            onto = self._ray.put(result)
            result.clear()  # it comes back with the rest: only one is held here at a time
        kept = None if keep is None else lambda now: keep(whole(now))
        first = result.shards
        return whole(self.sum_shards(make, onto=onto, known=known, first=first, done=done, keep=kept, every=every))

    def sum_shards(
        self,
        make: Made[T],
        *,
        onto: Any = None,
        known: Any = None,
        first: int = 0,
        done: int = 0,
        keep: Callable[[T], None] | None = None,
        every: float = 60.0,
    ) -> T:
        """The sum of what is made of the shards from number `first` on, added to what is there already.

        Args:
            make: What is made of the batches of a shard.
            onto: A reference to what is there already.
            known: The bars of its samples.
            first: The first shard that it does not hold.
            done: The units that it holds.
            keep: Called with the sum so far about every `every` seconds; going on from there gives the same sum.
            every: Seconds between these calls.
        """
        mergers, most = cycle(self._workers.mergers), _SUMS * len(self._workers.mergers)
        merging: deque[Any] = deque()
        bars = [known]
        last = time.monotonic()

        def add(*those: Any) -> Any:
            """Their sum, as a task that waits for them by itself."""
            found, total = next(mergers).merge.options(num_returns=2).remote(*those)
            merging.append(found)
            return total

        tree = Tree(add, count_levels(self._count), onto)
        for part in self._shards(make, first, bars, done=done):
            while merging and (len(merging) > most or self._ray.wait([merging[0]], timeout=0)[0]):
                bars[0] = merge_bars(bars[0], self._workers.get(merging.popleft()))
            if tree.add(part) and keep is not None and time.monotonic() - last >= every:
                keep(self._workers.get(tree.whole))
                last = time.monotonic()
        whole = tree.finish()
        result: T = make(iter(()), None) if whole is None else self._workers.get(whole)
        return result

    @property
    def _count(self) -> int | None:
        """How many shards there are, None where unknown."""
        return None if self.total is None else -(-self.total // self.shard_size)

    def _shards(
        self, make: Made[T], first: int, bars: list[Any], *, ahead: int = _AHEAD, done: int = 0
    ) -> Iterator[Any]:
        """References to what is made of each shard, in order.

        Args:
            make: What is made of the batches of a shard.
            first: The number of the first shard.
            bars: Its only item is the bars of the sum so far.
            ahead: How many shards for each worker are started at most before the first of them is done.
            done: Units of the shards before.
        """
        end = self._count
        how = self._ray.put(make)
        started: dict[Any, tuple[int, Any, Any]] = {}
        ready: dict[int, Any] = {}
        load = Counter(dict.fromkeys(self._replicas, 0))
        head = following = first
        while True:
            while (end is None or following < end) and following < head + ahead * len(self._replicas):
                replica = min(self._replicas, key=load.__getitem__)
                if load[replica] == _HELD:
                    break
                facts, made = replica.read.options(num_returns=2).remote(
                    self._given, how, following, bars[0], self._workers.skip
                )
                started[facts] = following, made, replica
                load[replica] += 1
                following += 1
            if not started:
                return
            ref = self._workers.first(list(started))
            number, made, replica = started.pop(ref)
            load[replica] -= 1
            facts = self._workers.get(ref)
            if facts.ended and self.total is None:
                end = number if end is None else min(number, end)
            self._workers.lives(replica, facts.life)
            if facts.bad is not None:
                self._skipped[number] = facts.bad
            done += facts.units
            if self._progress is not None:
                self._progress(done, self.total)
            ready[number] = made
            while head in ready and (end is None or head < end):
                yield ready.pop(head)
                head += 1
