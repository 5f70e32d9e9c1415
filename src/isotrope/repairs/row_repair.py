"""Repairs that are fitted to the rows themselves: moments would not say enough."""

from __future__ import annotations

import math
from collections.abc import Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import check_finite, is_tensor, to_float64, to_matrix, to_unit_rows
from isotrope.errors import InputError
from isotrope.repairs.affine import Map
from isotrope.repairs.fit_check import FitCheck, Lengths
from isotrope.repairs.fit_data import find_storage_type, resolve_source, take_sample
from isotrope.repairs.repair import Repair
from isotrope.repairs.spectrum import find_coarsest
from isotrope.sources.batch import Batch
from isotrope.statistics import MomentsAndSample, Sample, prepare_rows

if TYPE_CHECKING:
    from typing_extensions import Self

#: Rows that are taken of files and sources, whose number may be any: enough for clusters and for a flow.
SAMPLE = 20_000

#: The name of the mean of the rows among the saved arrays.
_CENTRE = "fit_mean"

#: Beyond this the square of a number leaves float64's range.
_LARGEST = 1e140


class StoredMap(Map, Protocol):
    """A map that is all of its repair's fitted state."""

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays."""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Any:
        """The map that `arrays` returned."""


M = TypeVar("M", bound=StoredMap)


class RowRepair(Repair, Generic[M]):
    """Fitted to rows in memory, or to a sample of those of a file, a stream or a scan; a kind says how.

    Rows of zeros have no direction and are left out.
    """

    _kind: ClassVar[type[Any]]
    _centre: NDArray[np.float64] | None = None
    _fitted_on: dict[str, Any]
    seed: int

    def _fit_map(self, rows: NDArray[np.floating[Any]]) -> M:
        """The map fitted to finite rows, (n, d)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows (n, d), to a `Sample`, or to a sample of 20,000 rows of files or a source. y: ignored."""
        return self._fit(X, divided=False)

    def fit_unit_rows(self, X: Any) -> Self:
        """Fit to rows divided by their length; `transform` then divides rows by their length, before and after."""
        return self._fit(X, divided=True)

    def _fit(self, X: Any, *, divided: bool) -> Self:
        given, sources = _collect_rows(X, self.seed)
        check_finite(given)
        rows = to_unit_rows(given) if divided else given
        lengths = np.abs(rows).max(axis=1, initial=0.0)
        if not float(lengths.max(initial=0.0)) < _LARGEST:
            raise InputError(f"got numbers beyond {_LARGEST:g}, whose squares are no numbers; scale the rows down.")
        kept = rows if lengths.all() else rows[lengths > 0]
        if len(kept) < 2:
            what = "one row (n_samples=1)" if len(kept) else "no row that is not zero"
            raise InputError(f"got {what}, expected at least two to fit a repair, and better thousands.")
        if (kept == kept[0]).all():
            raise InputError(
                f"all {len(kept):,} rows are the same (n_features={kept.shape[1]}), so there is nothing to repair; "
                "give rows that differ."
            )
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
        self._remember(take_sample(prepare_rows(given)), "both" if divided else "output" if lengths.unit else "none")
        self._store_names(X)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    @property
    def map_(self) -> M:
        """What is done to rows."""
        self._check_is_fitted()
        return self._map

    def name_sources(self, sources: list[dict[str, Any]]) -> None:
        """Say where the rows of the fit are from."""
        self._check_is_fitted()
        self._fitted_on["sources"] = list(sources)

    @property
    def fitted_on_(self) -> dict[str, Any]:
        """What it was fitted on, as plain data."""
        self._check_is_fitted()
        return dict(self._fitted_on)

    @property
    def fit_check_(self) -> FitCheck | None:
        """What rows are compared with, None where the fit does not tell."""
        lengths = Lengths.from_dict(self._fitted_on.get("lengths"))
        if self._centre is None or not lengths.rows:
            return None
        divided = self.normalizes_ in ("input", "both")
        return FitCheck(lengths, self._centre, self._fitted_on["spread"], divided)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole fitted state as named arrays, for saving."""
        return self.map_.arrays() | ({} if self._centre is None else {_CENTRE: self._centre})

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        """Take over the fitted state that `arrays` and `fitted_on_` returned."""
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
