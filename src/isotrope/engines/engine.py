"""Where a source is read: in this process, or on a Ray cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.sources.vectors.unreadable_files import SKIP_UNOPENED, refuse_choice

if TYPE_CHECKING:
    from isotrope.engines.ray.workers import Workers
    from isotrope.sources.text.encoder import Encoder

ENGINES = ("local", "ray")

#: The smallest share of a GPU that Ray can count.
_LEAST_SHARE = 1e-4


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Where a source is read: engine "local", in this process, or "ray", by the workers of a cluster.

    With `bad_files="skip"` of what is read, shards of vectors that cannot be read are skipped and named.

    Args:
        engine: "local" or "ray".
        address: Of the cluster, "auto" for the one that runs here; None for RAY_ADDRESS, without that one of its own.
        workers: How many, of one CPU each; None for all that have room.
        gpus_per_worker: Such as 1 or 0.5.
    """

    engine: str = "local"
    address: str | None = None
    workers: int | None = None
    gpus_per_worker: float = 0.0

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
        for field in fields(self):
            if self.engine == "local" and getattr(self, field.name) != field.default:
                name = field.name.replace("_", "-")
                raise InputError(f"the engine local has no use for --{name}; leave it out, or add --engine ray.")

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> Engine:
        """The fields that are among the given arguments of a function or a command."""
        return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})

    @contextmanager
    def open(self, reading: Input) -> Iterator[Source]:
        """The source of a reading, on this engine."""
        if self.engine == "local":
            yield reading.open()
        else:
            refuse_choice(reading.bad_files)
            skip = reading.bad_files == "skip"
            with self._workers(skip=skip) as workers:
                yield workers.open(replace(reading, bad_files=SKIP_UNOPENED) if skip else reading)

    @contextmanager
    def encoder(self, reading: Input) -> Iterator[Encoder]:
        """What makes rows of texts, on this engine."""
        from isotrope.sources.text.encoder import Encoder

        if self.engine == "local":
            yield Encoder(reading)
        else:
            with self._workers(skip=False) as workers:
                yield Encoder(reading, workers)

    def _workers(self, *, skip: bool) -> AbstractContextManager[Workers]:
        from isotrope.engines.ray.workers import ray_workers

        return ray_workers(
            address=self.address,
            workers=self.workers,
            gpus_per_worker=self.gpus_per_worker,
            skip=skip,
        )
