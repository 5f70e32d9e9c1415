"""Repairs that are fitted to the rows themselves: moments would not say enough."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.repair import Map, Repair
from isotrope.repairs.rows import float64, is_tensor, matrix, refuse_nonfinite
from isotrope.statistics import Sample

if TYPE_CHECKING:
    from typing_extensions import Self

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
    """Fitted to rows in memory, or to the `Sample` of a stream or a scan; a kind says how."""

    _kind: ClassVar[type[Any]]

    def _fitted(self, rows: NDArray[np.floating[Any]]) -> M:
        """The map fitted to finite rows, (n, d)."""
        raise NotImplementedError

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit to rows, (n, d), numpy or torch, or to a `Sample` of rows."""
        rows = matrix(X.values if isinstance(X, Sample) else X)
        refuse_nonfinite(rows)
        values = float64(rows) if is_tensor(rows) or rows.dtype == np.float16 else rows
        if len(values) < 2:
            raise InputError(f"got n_samples={len(values)} row(s), expected at least 2, and better thousands.")
        if not float(np.abs(values).max()) < _LARGEST:
            raise InputError(f"got numbers beyond {_LARGEST:g}, whose squares are no numbers; scale the rows down.")
        if (values == values[0]).all():
            raise InputError(f"the {len(values):,} rows are all the same, so there is nothing to fit; give other rows.")
        self._map = self._fitted(values)
        self._fitted_on = {"rows": len(values)}
        if isinstance(X, Sample):
            self._fitted_on |= {"sample_seed": X.seed, "sequences": X.taken, "sequences_in_all": X.sequences}
        self._note_names(X)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_map")

    @property
    def map_(self) -> M:
        """What is done to rows."""
        self._refuse_unfitted()
        return self._map

    @property
    def fitted_on_(self) -> dict[str, Any]:
        """What it was fitted on, as plain data."""
        self._refuse_unfitted()
        return dict(self._fitted_on)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole fitted state as named arrays, for saving."""
        return self.map_.arrays()

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        """Take over the fitted state that `arrays` and `fitted_on_` returned."""
        self._map = self._kind.from_arrays(arrays)
        self._fitted_on = dict(fitted_on)
