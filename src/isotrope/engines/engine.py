"""Where a source is read: in this process, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from isotrope.errors import InputError
from isotrope.options import find_changes, option

if TYPE_CHECKING:
    from isotrope.engines.ray.source import Workers
    from isotrope.sources.input import Input
    from isotrope.sources.source import Source
    from isotrope.sources.text.encoder import Encoder

ENGINES = ("local", "ray")

#: The smallest share of a GPU that Ray can count.
_LEAST_SHARE = 1e-4


_PANEL = "Engine"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Where a source is read: in this process, or by the workers of a cluster.

    With `bad_files="skip"` of what is read, workers skip and name shards of vectors that cannot be read.

    Args:
        engine: "local", this process, or "ray", a cluster.
        address: The address of the cluster, "auto" for the one that runs here; None for RAY_ADDRESS, and without that
            for a cluster of its own.
        workers: How many workers, of one CPU each; None for all that have room.
        gpus_per_worker: GPUs of each worker, such as 1 or 0.5.
    """

    engine: str = option("local", "local (this process) or ray (a cluster).", panel=_PANEL)
    address: str | None = option(
        None, "Of a Ray cluster: auto, HOST:PORT.", panel=_PANEL, shown="$RAY_ADDRESS, or one here"
    )
    workers: int | None = option(None, "Workers of one CPU each.", panel=_PANEL, type=int, shown="all that have room")
    gpus_per_worker: float = option(0.0, "GPUs of each worker, e.g. 1 or 0.5.", panel=_PANEL)

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise InputError(f"there is no engine {self.engine!r}; say {' or '.join(ENGINES)}.")
        if self.workers is not None and self.workers < 1:
            raise InputError(f"got {self.workers} workers, expected at least 1.")
        gpus = self.gpus_per_worker
        if not (gpus == 0 or _LEAST_SHARE <= gpus <= 1 or (gpus > 1 and float(gpus).is_integer())):
            raise InputError(
                f"got {gpus} GPUs per worker, expected 0, a share of one from {_LEAST_SHARE:g} to 1, or a whole number."
            )
        if self.engine == "local" and (changes := find_changes(self)):
            name = next(iter(changes)).replace("_", "-")
            raise InputError(f"the engine local has no use for --{name}; leave it out, or add --engine ray.")

    @contextmanager
    def open(self, reading: Input) -> Iterator[Source]:
        """Open the source of a reading on this engine."""
        if self.engine == "local":
            yield reading.open()
        else:
            from isotrope.sources.vectors.unreadable_files import SKIP_UNOPENED, check_bad_files

            check_bad_files(reading.bad_files)
            skip = reading.bad_files == "skip"
            with self._workers(reading, skip=skip) as workers:
                yield workers.open(replace(reading, bad_files=SKIP_UNOPENED) if skip else reading)

    @contextmanager
    def encoder(self, reading: Input) -> Iterator[Encoder]:
        """Open an encoder of texts on this engine."""
        from isotrope.sources.text.encoder import Encoder

        if self.engine == "local":
            yield Encoder(reading)
        else:
            with self._workers(reading, skip=False) as workers:
                yield Encoder(reading, workers)

    def _workers(self, reading: Input, *, skip: bool) -> AbstractContextManager[Workers]:
        if reading.endpoint is not None:
            raise InputError("an endpoint is asked by this process; leave out --engine ray, and set --concurrency.")
        from isotrope.engines.ray.source import ray_workers

        return ray_workers(
            address=self.address,
            workers=self.workers,
            gpus_per_worker=self.gpus_per_worker,
            skip=skip,
        )
