"""What runs on the workers of a cluster: a replica of the source, which reads shards, and what is made of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from uuid import uuid4

from isotrope.compute.threads import limit_threads
from isotrope.errors import InputError, IsotropeError, describe_error
from isotrope.sources.batch import Batch
from isotrope.sources.input import Input
from isotrope.sources.row_names import RowName
from isotrope.sources.source import Reduction, Source

T = TypeVar("T")
R = TypeVar("R", bound=Reduction)

#: What is made of the batches of a shard; the second argument is the bars of the sum so far.
Made = Callable[[Iterable[Batch], Any], T]


class Given(NamedTuple):
    """A number that tells readings apart, a reference to the reading, and the identity of its source.

    Ray brings the reading to a worker only where it is asked for, once, and not with every shard.
    """

    which: int
    reading: Any
    identity: tuple[Any, ...] | None = None


class Facts(NamedTuple):
    """What became of a shard.

    Attributes:
        units: How many were read (rows, texts).
        ended: Whether it lies beyond the end of the input.
        life: Random number of the worker process that read it, new after a restart.
        bad: Why it was skipped, None where it was not.
    """

    units: int
    ended: bool
    life: str
    bad: str | None


class Replica:
    """One worker: opens the source once, a model too, and reads the shards that it is given.

    It is told what to read with every task, so that one that takes the place of a lost one needs to know nothing.
    """

    def __init__(self) -> None:
        self._source: Source | None = None
        self._which: int | None = None
        self._life = uuid4().hex
        # Said by us, before a model is loaded, because Ray counts threads by CPUs and the cluster may say otherwise.
        os.environ["OMP_NUM_THREADS"] = "1"

    def ping(self) -> str:
        """Its life: who answers is there."""
        return self._life

    def _open(self, given: Given) -> Source:
        """The source of a reading, the one that is known; one of other texts by the same model keeps the model."""
        if self._source is None or self._which != given.which:
            import ray

            reading: Input = ray.get(given.reading)
            loaded = None if self._source is None else self._source.loaded
            source = reading.open() if loaded is None else reading.rows_over(reading.open_corpus(), loaded)
            if given.identity not in (None, find_identity(source)):
                self._source = None  # whoever asks again may find it as it was
                raise InputError(
                    f"a worker finds {_in_words(source)} and the first one found others: files have changed, or could "
                    "not be opened for a moment; check them, and go on with --resume."
                )
            self._source, self._which = source, given.which
        return self._source

    def about(self, given: Given) -> dict[str, Any]:
        """All that there is to know of the source without reading it."""
        source = self._open(given)
        values = {
            "layers": source.layers,
            "width": source.width,
            "unit": source.unit,
            "total": source.total,
            "layer_names": source.layer_names,
            "batch_rows": source.batch_rows,
            "dtype": source.dtype,
            "parts": source.parts,
            "shard_size": source.shard_size,
            "has_names": source.has_names,
        }
        return {"values": values, "described": source.describe(), "identity": find_identity(source)}

    def token_names(self, given: Given, tokens: Any) -> list[str] | None:
        return self._open(given).token_names(tokens)

    def check_names(self, given: Given) -> None:
        self._open(given).check_names()

    def find_names(self, given: Given, rows: Any) -> Mapping[int, RowName]:
        return self._open(given).find_names(rows)

    def measure_texts(self, given: Given, rows: Any) -> Mapping[int, int]:
        return self._open(given).measure_texts(rows)

    def read(self, given: Given, make: Made[T], number: int, bars: Any, skip: bool) -> tuple[Facts, T]:
        """What is made of one shard, whole or not at all. skip: one that cannot be read counts as empty."""
        source = self._open(given)
        seen = _Seen(source.shard(number), source.unit)
        try:
            with limit_threads(None):
                made = make(seen, bars)
        except (MemoryError, KeyboardInterrupt):
            raise
        except Exception as error:
            if not (skip and seen.reading):  # what cannot be made of rows that were read is no bad shard
                raise _name_shard_in(source, number, error) from error
            return Facts(seen.units, False, self._life, describe_error(error)), make(iter(()), bars)
        return Facts(seen.units, not seen.batches, self._life, None), made


class _Seen:
    """The same batches, counted. reading: whether the next one is being read, and not one being used."""

    def __init__(self, batches: Iterator[Batch], unit: str) -> None:
        self._rest, self._unit = batches, unit
        self.batches = self.units = 0
        self.reading = False

    def __iter__(self) -> Iterator[Batch]:
        self.reading = True
        for batch in self._rest:
            self.reading = False
            self.batches += 1
            self.units += batch.counts.get(self._unit, 0)
            yield batch
            del batch  # before the next one is made: only one is held at a time
            self.reading = True
        self.reading = False


def find_identity(source: Source) -> tuple[Any, ...]:
    """What decides the numbers of rows: where replicas differ in it, they would read rows twice or not at all."""
    return source.total, source.shard_size, tuple(source.left_out)


def _in_words(source: Source) -> str:
    total, _, left_out = find_identity(source)
    return f"{total or 0:,} {source.unit}" + (f" without {', '.join(left_out)}" if left_out else "")


def name_shard(source: Any, number: int) -> str:
    """A shard in words."""
    first = number * source.shard_size
    last = min(first + source.shard_size, source.total or first + source.shard_size)
    return f"shard {number:,} ({source.unit} {first:,} to {last - 1:,})"


def _name_shard_in(source: Source, number: int, error: Exception) -> Exception:
    """The error with the shard's name, where it is one of the input; others as they are."""
    if not isinstance(error, (IsotropeError, OSError, ValueError)):
        return error
    return InputError(f"{name_shard(source, number)} cannot be read: {describe_error(error)}.")


def map_shard(function: Callable[[Batch], T], batches: Iterable[Batch], _: Any) -> list[T]:
    """What a function makes of each batch of a shard."""
    made = []
    for batch in batches:
        made.append(function(batch))
        del batch
    return made


def reduce_shard(empty: R, layers: int, batches: Iterable[Batch], bars: Any) -> R:
    """The batches of one shard, added up."""
    part = empty.empty(bars)
    part.shards = 1
    with part.open_pool(layers, threads=1) as pool:
        for batch in batches:
            part.update(batch, pool)
            del batch
        part.settle()
    return part


def use_absolute_paths(reading: Input) -> Input:
    """The same input with files named from the root, so that workers in other folders find them."""
    from isotrope.sources.media.corpus import kind_of

    if isinstance(reading.text, str) and reading.text == "-":
        raise InputError("workers cannot read this process's standard input; write the text to a file and name it.")
    names = ["model", "vectors", "token_weights"]
    # A list is of texts, though one of them may happen to be the name of a file, unless it is one of images or sounds.
    if not isinstance(reading.text, (list, tuple)) or kind_of(reading.text) is not None:
        names.append("text")
    places = {name: _absolute(getattr(reading, name)) for name in names}
    columns = {name: _absolute_column(getattr(reading, name)) for name in ("id_column", "text_column")}
    return replace(reading, **places, **columns)


def _absolute_column(given: Any) -> Any:
    """A file of ids or texts, `FILE` or `FILE:COLUMN`, named from the root; the name of a column has no ending."""
    if not isinstance(given, (str, Path)):
        return given
    path, colon, column = str(given).rpartition(":")
    if colon and os.path.isfile(path):
        return f"{_absolute(path)}:{column}"
    return _absolute(given) if Path(given).suffix and os.path.isfile(given) else given


def _absolute(place: Any) -> Any:
    if isinstance(place, (list, tuple)) and all(isinstance(one, (str, os.PathLike)) for one in place):
        return [_absolute(one) for one in place]
    if isinstance(place, (str, Path)) and os.path.exists(os.path.expanduser(place)):
        return type(place)(os.path.abspath(os.path.expanduser(place)))
    return place
