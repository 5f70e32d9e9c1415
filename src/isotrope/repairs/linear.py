"""Repairs that follow from the moments of rows alone: one pass, any order, and one affine map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.repairs.affine import Affine
from isotrope.repairs.collecting import collect
from isotrope.repairs.repair import Map, Repair
from isotrope.statistics import Moments
from isotrope.statistics.saved_arrays import require

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, eq=False)
class Solution:
    """The map that moments lead to, the strength of each direction, (r,), and what it is multiplied by, (r,)."""

    affine: Affine
    spectrum: NDArray[np.float64]
    gains: NDArray[np.float64]


class LinearRepair(Repair):
    """Fitted on rows, a stream, files, a source or moments: the same map, which a kind of repair gets by `solve`.

    Rows of zeros have no direction and are left out. moments_: of the rows so far. affine_: the map. spectrum_,
    gains_: the strength of each direction, descending, and by what the map multiplies it.
    """

    moments_: Moments
    _solution: Solution | None
    _sources: list[dict[str, Any]]

    def solve(self, moments: Moments) -> Solution:
        """The repair that follows from moments: a pure function of them and of the parameters."""
        raise NotImplementedError

    @property
    def _of_unit_rows(self) -> bool:
        """Whether it is the moments of unit rows that it is fitted on."""
        return False

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit on rows (n, d), a path, a source or moments, and forget what was fitted before. y: ignored."""
        moments, sources = collect(X, of_unit_rows=self._of_unit_rows)
        self.fit_moments(moments, sources)
        self._note_names(X)
        return self

    def fit_moments(self, moments: Moments, sources: Sequence[dict[str, Any]] = ()) -> Self:
        """Fit on moments, of what the kind of repair is fitted on. sources: plain data on where their rows are from."""
        solution = self.solve(moments)
        self.moments_, self._sources, self._solution = moments.copy(), list(sources), solution
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Add rows to those fitted on so far; the map is worked out when it is next needed. y: ignored."""
        moments, sources = collect(X, of_unit_rows=self._of_unit_rows)
        if not self.__sklearn_is_fitted__():
            self.moments_, self._sources = moments.copy(), sources
            self._note_names(X)
        else:
            self._refuse_other_width(moments)
            self._check_names(X)
            self.moments_ += moments
            self._sources = self._sources + sources
        self._solution = None
        return self

    def _refuse_other_width(self, moments: Moments) -> None:
        if moments.d != self.moments_.d:
            raise InputError(
                f"X has {moments.d} features, but {type(self).__name__} is expecting {self.moments_.d} features as "
                "input; give rows of the width it was fitted on."
            )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "moments_")

    def _solved(self) -> Solution:
        self._refuse_unfitted()
        if self._solution is None:
            self._solution = self.solve(self.moments_)
        return self._solution

    @property
    def n_features_in_(self) -> int:
        """The number of columns d that it was fitted on."""
        self._refuse_unfitted()
        return self.moments_.d

    @property
    def affine_(self) -> Affine:
        """The map x -> (x − b) W."""
        return self._solved().affine

    @property
    def spectrum_(self) -> NDArray[np.float64]:
        """The strength of each direction that the rows have, descending, (r,)."""
        return self._solved().spectrum

    @property
    def gains_(self) -> NDArray[np.float64]:
        """What the map multiplies each direction by, (r,)."""
        return self._solved().gains

    @property
    def map_(self) -> Map:
        """What is done to rows."""
        return self.affine_

    @property
    def fitted_on_(self) -> dict[str, Any]:
        """What it was fitted on: rows, rows left out, and the sources that say what they are."""
        self._refuse_unfitted()
        m = self.moments_
        return {"rows": m.n, "zero_rows": m.zero, "nonfinite_rows": m.nonfinite, "sources": self._sources}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole fitted state as named arrays: the moments too, so that a loaded repair can be fitted further."""
        solution = self._solved()
        moments = {f"moments.{name}": array for name, array in self.moments_.arrays().items()}
        return moments | solution.affine.arrays() | {"spectrum": solution.spectrum, "gains": solution.gains}

    def restore(self, arrays: Mapping[str, NDArray[Any]], fitted_on: Mapping[str, Any]) -> None:
        """Take over the fitted state that `arrays` and `fitted_on_` returned."""
        start = "moments."
        moments = {name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)}
        self.moments_ = Moments.from_arrays(moments)
        self._sources = list(fitted_on["sources"])
        spectrum = require(arrays, "spectrum", np.float64, (None,))
        gains = require(arrays, "gains", np.float64, spectrum.shape)
        self._solution = Solution(Affine.from_arrays(arrays), spectrum, gains)


def refuse_without_spread(m: Moments) -> None:
    """Refuse what has no geometry to repair: no rows, one row, or the same row again and again."""
    if m.n < 2:
        what = "one row (n_samples=1)" if m.n else "no row that is not zero"
        raise InputError(f"got {what}, expected at least two to fit a repair.")
    if m.constant:
        raise InputError(
            f"all {m.n:,} rows are the same (n_features={m.d}), so there is nothing to repair; give rows that differ."
        )
