"""Repairs that are fitted to the rows themselves: moments would not say enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import check_finite, check_width, is_tensor, to_float64, to_matrix, to_unit_rows
from isotrope.compute.threads import slice_rows
from isotrope.errors import InputError
from isotrope.repairs.fit_check import FitCheck, Lengths
from isotrope.repairs.fit_data import check_spread, find_storage_type, resolve_source, take_sample
from isotrope.repairs.repair import Repair
from isotrope.repairs.spectrum import find_coarsest
from isotrope.sources.batch import Batch
from isotrope.statistics import MomentsAndSample, Sample, prepare_rows

if TYPE_CHECKING:
    from typing_extensions import Self

Matrix = NDArray[np.float64]

#: Rows mapped at once.
_ROWS = 8192

#: Rows that are taken of files and sources, whose number may be any: enough for clusters and for a flow.
SAMPLE = 20_000

#: The name of the mean of the rows among the saved arrays.
_CENTRE = "fit_mean"

#: Beyond this the square of a number leaves float64's range.
_LARGEST = 1e140


class StoredMap:
    """A map of rows to rows of the same width, in float64 and a few at a time: all of its repair's fitted state."""

    @property
    def width(self) -> int:
        """The number of columns that it takes and gives."""
        raise NotImplementedError

    @property
    def columns(self) -> int:
        """The number of columns that it takes and gives."""
        return self.width

    def __call__(self, rows: Any) -> Any:
        """The images of rows: numpy to numpy, torch to torch, each float type to itself."""
        return self._map_rows(rows, self._map_block)

    def _map_block(self, x: Matrix) -> Matrix:
        """The images of a few rows."""
        raise NotImplementedError

    def inverse(self) -> Callable[[Any], Any]:
        """What brings rows back; refused with a reason where nothing can."""
        raise NotImplementedError

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        raise NotImplementedError

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The map that `arrays` returned."""
        raise NotImplementedError

    def _map_rows(self, rows: Any, function: Callable[[Matrix], Matrix]) -> Any:
        """Apply a function of a few rows to rows, numpy to numpy, torch to torch, each float type to itself."""
        x = to_matrix(rows)
        if is_tensor(x):
            return x.new_tensor(self._map_rows(to_float64(x), function))
        parts = (function(part).astype(x.dtype) for part in self._iterate_blocks(x))
        return np.concatenate([np.empty((0, self.width), x.dtype), *parts])

    def _iterate_blocks(self, rows: Any) -> Iterator[Matrix]:
        """Rows in float64, a few at a time."""
        x = to_matrix(rows)
        check_width(x, self.width, "this map")
        check_finite(x)
        for part in slice_rows(len(x), _ROWS):
            yield to_float64(x[part])


M = TypeVar("M", bound=StoredMap)


class RowRepair(Repair, Generic[M]):
    """Fitted to rows in memory, to a `Sample`, or to a sample of 20,000 rows of files or a source; a kind says how.

    Rows of zeros have no direction and are left out.
    """

    _kind: ClassVar[type[Any]]
    _centre: NDArray[np.float64] | None = None
    _fitted_on: dict[str, Any]
    seed: int

    def _fit_map(self, rows: NDArray[np.floating[Any]]) -> M:
        """The map fitted to finite rows, (n, d)."""
        raise NotImplementedError

    def _fit(self, X: Any, *, divided: bool) -> None:
        given, sources = _collect_rows(X, self.seed)
        check_finite(given)
        rows = to_unit_rows(given) if divided else given
        largest = np.abs(rows).max(axis=1, initial=0.0)
        if not float(largest.max(initial=0.0)) < _LARGEST:
            raise InputError(f"got numbers beyond {_LARGEST:g}, whose squares are no numbers; scale the rows down.")
        kept = rows if largest.all() else rows[largest > 0]
        check_spread(len(kept), kept.shape[1], constant=bool((kept == kept[:1]).all()))
        self._map = self._fit_map(kept)
        lengths = Lengths.of(np.linalg.norm(kept.astype(np.float64), axis=1))
        self._centre = kept.mean(axis=0, dtype=np.float64)
        self._fitted_on = {
            "rows": len(kept),
            "zero_rows": len(rows) - len(kept),
            "nonfinite_rows": 0,
            "storage": _find_storage(X, sources),
            "lengths": lengths.to_dict(),
            "spread": float(np.sqrt(np.square(kept - self._centre).sum(axis=1).mean())),
            "sources": sources,
        }
        self._remember(take_sample(prepare_rows(given)), lengths, "both" if divided else None)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    @property
    def map_(self) -> M:
        self._check_is_fitted()
        return self._map

    def name_sources(self, sources: list[dict[str, Any]]) -> None:
        self._check_is_fitted()
        self._fitted_on["sources"] = list(sources)

    @property
    def fitted_on_(self) -> dict[str, Any]:
        self._check_is_fitted()
        return dict(self._fitted_on)

    @property
    def fit_check_(self) -> FitCheck | None:
        lengths = Lengths.from_dict(self._fitted_on.get("lengths"))
        if self._centre is None or not lengths.rows:
            return None
        divided = self.normalizes_ in ("input", "both")
        return FitCheck(lengths, self._centre, self._fitted_on["spread"], divided)

    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.map_.arrays() | ({} if self._centre is None else {_CENTRE: self._centre})

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        self._map = self._kind.from_arrays(arrays)
        self._fitted_on = dict(fitted_on)
        self._centre = arrays.get(_CENTRE)
        if Lengths.from_dict(fitted_on.get("lengths")).rows and not 0 <= fitted_on["spread"] < math.inf:
            raise TypeError(f"the spread is {fitted_on['spread']!r}")


def _find_storage(X: Any, sources: list[dict[str, Any]]) -> str:
    """The type in which rows are stored, as far as it is known."""
    if isinstance(X, Sample):  # which a run may keep in a narrower type than the rows had
        return "float64" if X.values.dtype.itemsize == 8 else "float32"
    return find_coarsest(str(sources[0].get("dtype", "float32")).split(", ")) if sources else find_storage_type(X)


def _collect_rows(X: Any, seed: int) -> tuple[NDArray[np.floating[Any]], list[dict[str, Any]]]:
    """Rows to fit to, (n, d), float32 or float64, and the descriptions of where they come from."""
    if isinstance(X, Sample):
        return X.values, [{"kind": "sample", "size": X.size, "seed": X.seed, "sequences": X.sequences}]
    source, described = resolve_source(X)
    if not described:
        rows = to_matrix(X)
        return to_float64(rows) if is_tensor(rows) or rows.dtype.itemsize not in (4, 8) else rows, []
    found = source.reduce(_SampledRows.empty_for(source.width, SAMPLE, seed))
    sample, nonfinite = found.sample, found.moments.nonfinite
    if nonfinite:
        raise InputError(f"{nonfinite:,} of the rows hold NaN or inf, expected numbers: correct or remove them.")
    return sample.values, [source.describe() | {"sampled": {"size": SAMPLE, "seed": seed, "rows": sample.sequences}}]


class _SampledRows(MomentsAndSample):
    """A sample of rows; of their moments only how many rows are not finite."""

    def update(self, batch: Batch, pool: Executor | None = None) -> None:
        for rows in batch.layers.values():
            usable = prepare_rows(rows, batch.rows)
            self.moments.nonfinite += usable.nonfinite
            self.sample.add(usable)
