"""Repairs that follow from the moments of rows alone: one pass, any order, and one affine map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine, Map
from isotrope.repairs.fit_check import FitCheck, Lengths
from isotrope.repairs.fit_data import FitData, collect
from isotrope.repairs.repair import Repair
from isotrope.repairs.spectrum import Storage, find_coarsest, resolve_storage_type
from isotrope.statistics import Moments, Sample
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

    Rows of zeros have no direction and are left out. moments_: of the rows so far. affine_: the map. spectrum_,
    gains_: the strength of each direction, descending, and by what the map multiplies it.
    """

    moments_: Moments
    _solution: Solution | None
    _sources: list[dict[str, Any]]
    _storage: str
    _lengths: Lengths

    def solve(self, moments: Moments, storage: Storage) -> Solution:
        """The repair that follows from moments: a pure function of them, the rows' storage and the parameters."""
        raise NotImplementedError

    @property
    def _of_unit_rows(self) -> bool:
        """Whether it is the moments of unit rows that it is fitted on."""
        return False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on rows (n, d), a path, a source, moments or a summary, and forget earlier fits. y: ignored."""
        self.fit_collected(collect(X, of_unit_rows=self._of_unit_rows))
        self._store_names(X)
        return self

    def fit_unit_rows(self, X: Any) -> Self:
        """Fit on rows divided by their length; `transform` then divides rows by their length, before and after."""
        self.fit_collected(collect(X, of_unit_rows=True), normalize="both")
        self._store_names(X)
        return self

    def fit_moments(self, moments: Moments, sources: Sequence[dict[str, Any]] = ()) -> Self:
        """Fit on moments, of what the kind of repair is fitted on. sources: plain data on where their rows are from."""
        storage, lengths = resolve_storage_type(moments, sources), Lengths.from_moments(moments)
        return self.fit_collected(FitData(moments, list(sources), storage, lengths, None))

    def fit_collected(self, found: FitData, normalize: str | None = None) -> Self:
        """Fit on what was collected; normalize: where rows are divided by their length, by default as they require."""
        unit_rows = self._of_unit_rows or normalize == "both"
        solution = self.solve(found.moments, _make_storage(found.storage, found.lengths, unit_rows))
        self.moments_, self._sources, self._solution = found.moments.copy(), list(found.sources), solution
        self._storage, self._lengths = found.storage, found.lengths
        self._remember(found.sample, normalize or ("output" if found.lengths.unit else "none"))
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to those fitted on so far; the map is worked out when it is next needed. y: ignored."""
        begun = self.__sklearn_is_fitted__()
        divided = begun and self.normalizes_ == "both"
        found = collect(X, of_unit_rows=self._of_unit_rows or divided)
        if not begun:
            self.moments_, self._sources = found.moments.copy(), found.sources
            self._storage, self._lengths, sample = found.storage, found.lengths, found.sample
            self._store_names(X)
        else:
            self._check_same_width(found.moments)
            self._check_names(X)
            self.moments_ += found.moments
            self._sources = self._sources + found.sources
            self._storage = find_coarsest([self._storage, found.storage])
            self._lengths, sample = self._lengths + found.lengths, _merge_samples(self._sample, found.sample)
        self._solution = None
        self._remember(sample, "both" if divided else "output" if self._lengths.unit else "none")
        return self

    def _check_same_width(self, moments: Moments) -> None:
        if moments.d != self.moments_.d:
            raise InputError(
                f"X has {moments.d} features, but {type(self).__name__} is expecting {self.moments_.d} features as "
                "input; give rows of the width it was fitted on."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    def _get_solution(self) -> Solution:
        self._check_is_fitted()
        if self._solution is None:
            storage = _make_storage(self._storage, self._lengths, self._of_unit_rows or self.normalizes_ == "both")
            self._solution = self.solve(self.moments_, storage)
        return self._solution

    @property
    def n_features_in_(self) -> int:
        """The number of columns d that it was fitted on."""
        self._check_is_fitted()
        return self.moments_.d

    @property
    def affine_(self) -> Affine:
        """The map x -> (x − b) W."""
        return self._get_solution().affine

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
        """What is done to rows."""
        return self.affine_

    @property
    def fit_check_(self) -> FitCheck | None:
        """What rows are compared with, None where the fit does not tell."""
        m, divided = self.moments_, self._of_unit_rows or self.normalizes_ in ("input", "both")
        if not self._lengths.rows or m.n == 0:
            return None
        lengths = Lengths(m.n, 1.0, 1.0) if divided else self._lengths
        return FitCheck(lengths, m.mean, float(np.sqrt(m.scatter.trace() / m.n)), divided)

    def name_sources(self, sources: list[dict[str, Any]]) -> None:
        """Say where the rows of the fit are from, and with that how they are stored."""
        self._check_is_fitted()
        self._sources = list(sources)
        storage = find_coarsest([self._storage, resolve_storage_type(self.moments_, sources)])
        if storage != self._storage:
            self._storage, self._solution, self._query_rounding = storage, None, None

    @property
    def fitted_on_(self) -> dict[str, Any]:
        """What it was fitted on: rows, rows left out, and the sources that say what they are."""
        self._check_is_fitted()
        m = self.moments_
        return {
            "rows": m.n,
            "zero_rows": m.zero,
            "nonfinite_rows": m.nonfinite,
            "storage": self._storage,
            "lengths": self._lengths.to_dict(),
            "sources": self._sources,
        }

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole fitted state as named arrays: the moments too, so that a loaded repair can be fitted further."""
        solution = self._get_solution()
        moments = {f"moments.{name}": array for name, array in self.moments_.arrays().items()}
        left_alone = np.array([solution.left_alone], dtype=np.int64)
        directions = {"spectrum": solution.spectrum, "gains": solution.gains, "left_alone": left_alone}
        return moments | solution.affine.arrays() | directions

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        """Take over the fitted state that `arrays` and `fitted_on_` returned."""
        start = "moments."
        moments = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        self.moments_ = Moments.from_arrays(moments)
        self._sources = list(fitted_on["sources"])
        self._storage = find_coarsest([fitted_on.get("storage") or resolve_storage_type(self.moments_, self._sources)])
        self._lengths = Lengths.from_dict(fitted_on.get("lengths"))
        spectrum = require(arrays, "spectrum", np.float64, (None,))
        gains = require(arrays, "gains", np.float64, spectrum.shape)
        known = "left_alone" in arrays  # from version 0.2 on
        left_alone = int(require(arrays, "left_alone", np.int64, (1,), least=0)[0]) if known else 0
        self._solution = Solution(Affine.from_arrays(arrays), spectrum, gains, left_alone)


def _make_storage(kind: str, lengths: Lengths, divided: bool) -> Storage:
    """How rows are stored; divided: by their length, which makes steps of integers smaller."""
    return Storage(kind, float(np.exp(-lengths.mean_log)) if divided else 1.0)


def _merge_samples(one: Sample | None, other: Sample | None) -> Sample | None:
    """Both samples as one, None where rows of either are not known."""
    return None if one is None or other is None else one + other


def check_spread(m: Moments) -> None:
    """Refuse what has no geometry to repair: no rows, one row, or the same row again and again."""
    if m.n < 2:
        what = "one row (n_samples=1)" if m.n else "no row that is not zero"
        raise InputError(f"got {what}, expected at least two to fit a repair.")
    if m.constant:
        raise InputError(
            f"all {m.n:,} rows are the same (n_features={m.d}), so there is nothing to repair; give rows that differ."
        )
