"""The one reader of the statistics that a run keeps; of a large sample it reads no more rows than are wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.layers import Layer
from isotrope.runs.retention import StatisticFiles
from isotrope.runs.run import Run
from isotrope.statistics import Moments, Sample, Summary
from isotrope.statistics.saved_arrays import name_file
from isotrope.storage.files import name_path_in_errors

_MOMENTS, _SAMPLE = "moments.", "sample."

#: The arrays of a sample that do not have an entry for each of its rows.
_WHOLE = {_SAMPLE + "facts", _SAMPLE + "mean"}

#: Reads the statistics of one file: all of them, or the moments and so many rows of the sample.
_Reader = Callable[[int | None, bool], Summary]


class SavedStatistics:
    """The statistics of a finished run by layer; those of several groups are added up.

    Examples:
        >>> import tempfile
        >>> from isotrope import scan
        >>> folder = tempfile.mkdtemp() + "/run"
        >>> _ = scan(vectors=np.random.default_rng(0).normal(size=(300, 4)), measures="mean_cosine", output=folder)
        >>> found = SavedStatistics.of_run(Run(folder)).load_sample(0, rows=100)
        >>> found.moments.n, found.sample.n
        (300, 100)
    """

    def __init__(self, readers: Mapping[Layer, list[_Reader]]) -> None:
        self._readers = readers

    @classmethod
    def of_run(cls, run: Run) -> SavedStatistics:
        """The statistics in a run folder, read when they are needed and checked before."""
        readers: dict[Layer, list[_Reader]] = {}
        for _, layer, path in run.statistics():
            readers.setdefault(layer, []).append(partial(_read_file, run, path))
        return cls(readers)

    @classmethod
    def of_arrays(cls, files: StatisticFiles) -> SavedStatistics:
        """The same statistics where they are still in memory."""
        readers: dict[Layer, list[_Reader]] = {}
        for name, (_, layer) in files.contents.items():
            readers.setdefault(layer, []).append(partial(_read_memory, files.arrays[name]))
        return cls(readers)

    @property
    def layers(self) -> list[Layer]:
        return list(self._readers)

    def load(self, layer: Layer) -> Summary:
        """Load all statistics of a layer."""
        return self._sum(layer, None, whole=True)

    def load_sample(self, layer: Layer, rows: int) -> Summary:
        """Load the moments of a layer and the first rows of its sample, which are those of the smallest hash."""
        several = len(self._readers[layer]) > 1
        return limit_sample(self._sum(layer, None if several else rows, whole=False), rows)

    def _sum(self, layer: Layer, rows: int | None, *, whole: bool) -> Summary:
        first, *others = (read(rows, whole) for read in self._readers[layer])
        for other in others:
            first += other
        return first


def saved_moments(run: str | Path, layer: Layer | None = None) -> Moments:
    """Read the moments of one layer, of all groups together, from a run folder.

    Args:
        run: The run folder.
        layer: The layer; None if the run has only one.
    """
    return saved_summary(run, layer).moments


def saved_summary(run: str | Path, layer: Layer | None = None) -> Summary:
    """All statistics of one layer that a scan has left in its run folder, all groups together.

    Args:
        run: The run folder.
        layer: As the run names it; a run of a single layer needs none.
    """
    saved = SavedStatistics.of_run(Run(run))
    layers = saved.layers
    wanted = layers[0] if layer is None and len(layers) == 1 else layer
    if wanted is None or wanted not in layers:
        names = ", ".join(map(str, layers))
        raise InputError(f"the run {str(run)!r} has the layers {names}, got {layer!r}; name one of them.")
    return saved.load(wanted)


def _read_file(run: Run, path: Path, rows: int | None, whole: bool) -> Summary:
    from safetensors import SafetensorError, safe_open

    run.verify(path)
    with name_file(path), name_path_in_errors(path):
        try:
            with safe_open(path, framework="np") as file:
                names = file.keys()
                if whole:
                    return Summary.from_arrays({name: file.get_tensor(name) for name in names})
                return Summary.from_arrays(_select({name: file.get_slice(name) for name in names}, rows))
        except SafetensorError as error:
            raise StoreError(f"{str(path)!r} is damaged or cut short ({error}); run the scan again.") from error


def _read_memory(arrays: Mapping[str, NDArray[Any]], rows: int | None, whole: bool) -> Summary:
    found = arrays if whole else _select(arrays, rows)
    # Copies: what is read may be changed, when groups are added up.
    return Summary.from_arrays({name: np.array(part) for name, part in found.items()})


def _select(arrays: Mapping[str, Any], rows: int | None) -> dict[str, NDArray[Any]]:
    """The arrays of the moments and of the sample, of that up to so many rows; from slices of a file too."""
    return {
        name: part[:] if name.startswith(_MOMENTS) or name in _WHOLE else part[: _count_rows(part, rows)]
        for name, part in arrays.items()
        if name.startswith(_MOMENTS) or (name.startswith(_SAMPLE) and rows != 0)
    }


def _count_rows(part: Any, rows: int | None) -> int:
    """How many rows of an array are read: a slice of a file must not go beyond its end."""
    there = int((part.shape if isinstance(part, np.ndarray) else part.get_shape())[0])
    return there if rows is None else min(there, rows)


def limit_sample(summary: Summary, rows: int) -> Summary:
    """The moments and no more than so many rows of the sample."""
    sample = summary.sample
    if sample is not None and sample.n > rows:
        arrays = {name: array if name == "facts" else array[:rows] for name, array in sample.arrays().items()}
        sample = Sample.from_arrays(arrays)
    return Summary(summary.moments, sample=sample)
