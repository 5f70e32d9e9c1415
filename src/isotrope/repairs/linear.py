"""Repairs that follow from the moments of rows alone: one pass, any order, and one affine map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import check_width
from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map
from isotrope.repairs.fit_check import FitCheck, Lengths
from isotrope.repairs.fit_data import FitData, collect
from isotrope.repairs.repair import Repair
from isotrope.repairs.spectrum import Storage, find_coarsest, resolve_storage_type
from isotrope.statistics import Moments
from isotrope.statistics.saved_arrays import require

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class Solution:
    """The map that moments lead to, the strength of each direction, (r,), and what it is multiplied by, (r,).

    left_alone: how many of the directions are too weak for the rows' storage type, and were left alone.
    """

    affine: Affine
    spectrum: NDArray[np.float64]
    gains: NDArray[np.float64]
    left_alone: int = 0


class LinearRepair(Repair):
    """Fitted on rows, a stream, files, a source or moments: the same map, which a kind of repair gets by `solve`.

    Rows of zeros have no direction and are left out.
    """

    _collected: FitData
    _solution: Solution | None

    def solve(self, moments: Moments, storage: Storage) -> Solution:
        """The repair that follows from moments: a pure function of them, the rows' storage and the parameters."""
        raise NotImplementedError

    @property
    def _of_unit_rows(self) -> bool:
        """Whether it is the moments of unit rows that it is fitted on."""
        return False

    def _fit(self, X: Any, *, divided: bool) -> None:
        found = collect(X, of_unit_rows=self._of_unit_rows or divided)
        self.fit_collected(found, normalize="both" if divided else None)

    def fit_moments(self, moments: Moments, sources: Sequence[dict[str, Any]] = ()) -> Self:
        """Fit on moments, of what the kind of repair is fitted on. sources: plain data on where their rows are from."""
        return self.fit_collected(FitData.from_moments(moments, sources))

    def fit_collected(self, found: FitData, normalize: str | None = None) -> Self:
        """Fit on what was collected; normalize: where rows are divided by their length, by default as they require."""
        solution = self.solve(found.moments, _make_storage(found, self._of_unit_rows or normalize == "both"))
        self._collected, self._solution = found.copy(), solution
        self._remember(found.sample, found.lengths, normalize)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to those fitted on so far; the map is worked out when it is next needed. y: ignored."""
        fitted = self.__sklearn_is_fitted__()
        divided = fitted and self.normalizes_ == "both"
        found = collect(X, of_unit_rows=self._of_unit_rows or divided)
        if fitted:
            check_width(found.moments.scatter, self.moments_.d, type(self).__name__)
            self._check_names(X)
            self._collected.add(found)
        else:
            self._store_names(X)
            self._collected = found.copy()
        self._solution = None
        self._remember(self._collected.sample, self._collected.lengths, "both" if divided else None)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_collected")

    @property
    def moments_(self) -> Moments:
        """The moments of the rows so far, or of their directions where it is fitted on these."""
        self._check_is_fitted()
        return self._collected.moments

    def _get_solution(self) -> Solution:
        self._check_is_fitted()
        if self._solution is None:
            storage = _make_storage(self._collected, self._of_unit_rows or self.normalizes_ == "both")
            self._solution = self.solve(self.moments_, storage)
        return self._solution

    @property
    def n_features_in_(self) -> int:
        return self.moments_.d

    @property
    def affine_(self) -> Affine:
        """The map x -> (x − b) W; refused where the repair is affine in a row's direction, not in the row."""
        found = self.map_
        if not isinstance(found, Affine):
            raise InputError(f"{self!r} is affine in a row's direction, not in the row; use transform.")
        return found

    @property
    def spectrum_(self) -> NDArray[np.float64]:
        """The strength of each direction that the rows have, descending, (r,)."""
        return self._get_solution().spectrum

    @property
    def gains_(self) -> NDArray[np.float64]:
        """What the map multiplies each direction by, (r,)."""
        return self._get_solution().gains

    @property
    def left_alone_(self) -> int:
        """How many directions are weaker than the rounding of the rows' storage type, and are left alone."""
        return self._get_solution().left_alone

    @property
    def map_(self) -> Map:
        return self._make_map(self._get_solution().affine)

    def _make_map(self, affine: Affine) -> Map:
        """What is done to rows, by the affine map that moments lead to."""
        return affine

    @property
    def fit_check_(self) -> FitCheck | None:
        m, divided = self.moments_, self._of_unit_rows or self.normalizes_ in ("input", "both")
        lengths = self._collected.lengths
        if not lengths.rows or m.n == 0:
            return None
        if divided:
            lengths = Lengths(m.n, 1.0, 1.0)
        return FitCheck(lengths, m.mean, float(np.sqrt(m.scatter.trace() / m.n)), divided)

    def name_sources(self, sources: list[dict[str, Any]]) -> None:
        """Say where the rows of the fit are from, and with that how they are stored."""
        storage = find_coarsest([resolve_storage_type(self.moments_, sources), self._collected.storage])
        if storage != self._collected.storage:
            self._solution, self._query_rounding = None, None
        self._collected.sources, self._collected.storage = list(sources), storage

    @property
    def fitted_on_(self) -> dict[str, Any]:
        """What it was fitted on: rows, rows left out, and the sources that say what they are."""
        m = self.moments_
        return {
            "rows": m.n,
            "zero_rows": m.zero,
            "nonfinite_rows": m.nonfinite,
            "storage": self._collected.storage,
            "lengths": self._collected.lengths.to_dict(),
            "sources": self._collected.sources,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole fitted state as named arrays: the moments too, so that a loaded repair can be fitted further."""
        solution = self._get_solution()
        moments = {f"moments.{name}": array for name, array in self.moments_.arrays().items()}
        left_alone = np.array([solution.left_alone], dtype=np.int64)
        directions = {"spectrum": solution.spectrum, "gains": solution.gains, "left_alone": left_alone}
        return moments | solution.affine.arrays() | directions

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        start = "moments."
        moments = Moments.from_arrays(
            {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        )
        sources = list(fitted_on["sources"])
        storage = find_coarsest([fitted_on.get("storage") or resolve_storage_type(moments, sources)])
        self._collected = FitData(moments, sources, storage, Lengths.from_dict(fitted_on.get("lengths")))
        spectrum = require(arrays, "spectrum", np.float64, (None,))
        gains = require(arrays, "gains", np.float64, spectrum.shape)
        known = "left_alone" in arrays  # from version 0.2 on
        left_alone = int(require(arrays, "left_alone", np.int64, (1,), least=0)[0]) if known else 0
        self._solution = Solution(Affine.from_arrays(arrays), spectrum, gains, left_alone)


def _make_storage(found: FitData, divided: bool) -> Storage:
    """How rows are stored; divided: by their length, which makes steps of integers smaller."""
    return Storage(found.storage, float(np.exp(-found.lengths.mean_log)) if divided else 1.0)
