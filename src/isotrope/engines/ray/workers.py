"""A Ray cluster that reads sources: replicas as actors, those who add up what they make, and what becomes of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isotrope.engines.ray.cluster import connect, count_unplaced, count_workers, place_workers, start_actors
from isotrope.engines.ray.replica import Given, Merger, Replica, use_absolute_paths
from isotrope.engines.ray.source import RaySource
from isotrope.errors import InputError
from isotrope.sources.input import Input

#: Times that a task whose worker was lost is begun again: one that kills every worker must not go on for ever, and one
#: lost machine alone may use up half a dozen.
_TRIES = 20

#: Seconds between looks at what is waited for, and seconds that workers may be without a place to run meanwhile.
_LOOK, _PLACE = 5.0, 60.0

#: Workers for each of those who add up what they make.
_MERGED = 16


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
                f"the cluster lost a worker or what it had made {_TRIES} times over ({reason}); "
                "it may be out of memory: try fewer workers or a smaller --batch-size."
            ) from error


@contextmanager
def ray_workers(*, address: str | None, workers: int | None, gpus_per_worker: float, skip: bool) -> Iterator[Workers]:
    """Workers on a cluster. skip: leave shards out that cannot be read."""
    with connect(address, workers) as ray:
        count = count_workers(ray, workers, gpus_per_worker)
        again = {"max_restarts": -1, "max_task_retries": _TRIES}
        # They hold no CPU, so that one whose machine is lost finds a place where all CPUs have their workers already.
        reader = ray.remote(num_cpus=0, num_gpus=gpus_per_worker, **again)(Replica)
        merger = ray.remote(num_cpus=0, **again)(Merger)
        where = ["DEFAULT"] * count if gpus_per_worker else place_workers(ray, count)  # Ray knows which GPUs are free
        readers = [reader.options(scheduling_strategy=place).remote() for place in where]
        mergers = [merger.remote() for _ in range(-(-count // _MERGED))]
        try:
            yield Workers(ray, start_actors(ray, readers), list(start_actors(ray, mergers)), skip=skip)
        finally:
            for actor in (*readers, *mergers):
                ray.kill(actor)
