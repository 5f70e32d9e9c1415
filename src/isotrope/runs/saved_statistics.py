"""The statistics that a run has kept, read in parts: of a large sample no more rows than are wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from isotrope.errors import StoreError
from isotrope.layers import Layer
from isotrope.runs.run import Run
from isotrope.statistics import Moments, Sample, Summary
from isotrope.statistics.saved_arrays import name_file
from isotrope.storage.files import told

_MOMENTS, _SAMPLE = "moments.", "sample."

#: The arrays of a sample that do not have an entry for each of its rows.
_WHOLE = {_SAMPLE + "facts", _SAMPLE + "mean"}


class Stored:
    """A run's moments and sample by layer; groups are added up.

    >>> import tempfile
    >>> import numpy as np
    >>> from isotrope import scan
    >>> folder = tempfile.mkdtemp() + "/run"
    >>> _ = scan(vectors=np.random.default_rng(0).normal(size=(300, 4)), measures="mean_cosine", output=folder)
    >>> kept = Stored(Run(folder)).layer(0, rows=100)
    >>> kept.moments.n, kept.sample.n
    (300, 100)
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._files: dict[Layer, list[Path]] = {}
        for _, layer, path in run.statistics():
            self._files.setdefault(layer, []).append(path)

    @property
    def layers(self) -> list[Layer]:
        return list(self._files)

    def layer(self, layer: Layer, rows: int | None = None) -> Summary:
        """The moments of a layer and the first rows of its sample, which are those of the smallest hash."""
        paths = self._files[layer]
        for path in paths:
            self._run.verify(path)
        first, *others = (_read_summary(path, rows if len(paths) == 1 else None) for path in paths)
        for other in others:
            first += other
        return first if rows is None else shortened(first, rows)

    def moments(self, layer: Layer) -> Moments:
        """The moments of a layer alone."""
        return self.layer(layer, rows=0).moments


def _read_summary(path: Path, rows: int | None) -> Summary:
    with name_file(path):
        return Summary.from_arrays(_read(path, rows))


def _read(path: Path, rows: int | None) -> dict[str, NDArray[Any]]:
    """The arrays of the moments, and of the sample up to so many rows."""
    from safetensors import SafetensorError, safe_open

    with told(path):
        try:
            with safe_open(path, framework="np") as file:
                names = [name for name in file.keys() if name.startswith((_MOMENTS, _SAMPLE))]  # noqa: SIM118
                found = {name: file.get_slice(name) for name in names}
                return {
                    name: part[:] if name.startswith(_MOMENTS) or name in _WHOLE else part[: _most(part, rows)]
                    for name, part in found.items()
                    if rows != 0 or name.startswith(_MOMENTS)
                }
        except SafetensorError as error:
            raise StoreError(f"{str(path)!r} is damaged or cut short ({error}); run the scan again.") from error


def _most(part: Any, rows: int | None) -> int:
    """How many rows of an array are read: a slice of a file must not go beyond its end."""
    held = int(part.get_shape()[0])
    return held if rows is None else min(held, rows)


def shortened(summary: Summary, rows: int) -> Summary:
    """The moments and no more than so many rows of the sample."""
    sample = summary.sample
    if sample is not None and sample.n > rows:
        arrays = {name: array if name == "facts" else array[:rows] for name, array in sample.arrays().items()}
        sample = Sample.from_arrays(arrays)
    return Summary(summary.moments, sample=sample)
