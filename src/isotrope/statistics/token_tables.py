"""The tables over token types that a compact run keeps: what measures and figures need, without every type's mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import MergeError, StoreError, Undefined
from isotrope.statistics.saved_arrays import LARGEST_SQUARE, decode_rows, encode_rows, require, require_consistent
from isotrope.statistics.saved_arrays import MOST as MOST_COUNTED
from isotrope.statistics.tokens import Index, TokenStatistics, TokenTable, require_types

#: Types with fewer or more occurrences are left out of regressions, both ends in
#: (Yamagiwa and Shimodaira 2024: 1 ≤ log10 n ≤ 5).
FEWEST, MOST = 10, 100_000

_COLUMNS = ("q", "m", "v", "b", "unit_squares")
_TOTALS = ("mean_square", "unit_square")


def frequent(n: Index) -> NDArray[np.bool_]:
    """Which token types are in the window, from their numbers of occurrences, (k,)."""
    return (n >= FEWEST) & (n <= MOST)


@dataclass(frozen=True, eq=False)
class TokenTables:
    """Tables of all token types and of those in the window, exact, and the means of those in the window.

    It can be read but not merged: a merge needs the mean of every type.

    Attributes:
        table: One row per type.
        window: One row per type in the window, as if there were no others.
        means: Of the types in the window, (k, d), to three digits.
    """

    table: TokenTable
    window: TokenTable
    means: NDArray[np.floating[Any]]

    @classmethod
    def of(cls, tokens: TokenStatistics) -> TokenTables:
        """The tables of token statistics."""
        window = tokens.table_of(frequent(tokens.n))
        return cls(tokens.table, window, tokens.means_of(window.types))

    def __len__(self) -> int:
        """How many token types were seen."""
        return len(self.table.types)

    @property
    def d(self) -> int:
        return int(self.means.shape[1])

    @property
    def types(self) -> Index:
        return self.table.types

    @property
    def n(self) -> Index:
        return self.table.n

    def means_of(self, types: Index) -> NDArray[np.float64]:
        """The means of some token types, which must be in the window, (k,) -> (k, d)."""
        at = np.minimum(np.searchsorted(self.window.types, types), len(self.window.types) - 1)
        if not np.array_equal(self.window.types[at], types):
            raise StoreError(
                f"the run keeps means of types with {FEWEST} to {MOST:,} occurrences; scan with --keep all."
            )
        return self.means[at].astype(np.float64)

    def check(self, other: Any) -> None:
        """Refuse every merge."""
        raise MergeError("the token tables of a compact run cannot be merged; scan with --keep all.")

    def __add__(self, other: Any) -> TokenTables:
        self.check(other)
        return self

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        table, window = self.table, self.window
        return {
            "types": table.types,
            "n": table.n,
            "columns": np.stack([getattr(table, name) for name in _COLUMNS]),
            "totals": np.array([[getattr(t, name) for name in _TOTALS] for t in (table, window)]),
            "window_b": window.b,
            **encode_rows(self.means, self.means.mean(axis=0) if len(self.means) else np.zeros(self.d)),
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> TokenTables:
        """The state that `arrays` returned."""
        types = require_types(arrays, "types")
        n = require(arrays, "n", np.int64, types.shape, least=1, most=MOST_COUNTED)
        columns = require(arrays, "columns", np.float64, (len(_COLUMNS), len(types)), least=0, most=LARGEST_SQUARE)
        totals = require(arrays, "totals", np.float64, (2, len(_TOTALS)), least=0, most=LARGEST_SQUARE)
        keep, means = frequent(n), decode_rows(arrays)
        require_consistent(len(means) == keep.sum(), f"there are {len(means)} saved means of {keep.sum()} token types")
        window_b = require(arrays, "window_b", np.float64, (len(means),), least=0, most=LARGEST_SQUARE)
        whole, window = (dict(zip(_TOTALS, row, strict=True)) for row in totals.tolist())
        table = TokenTable(types=types, n=n, seen=n, **dict(zip(_COLUMNS, columns, strict=True)), **whole)
        return cls(table, table.select(keep)._replace(b=window_b, **window), means)


def table(t: TokenStatistics | TokenTables | TokenTable) -> TokenTable:
    """The table over token types; undefined without tokens."""
    found = t if isinstance(t, TokenTable) else t.table
    if len(found.n) == 0:
        raise Undefined("there are no tokens")
    return found


def in_window(t: TokenStatistics | TokenTables) -> TokenTable:
    """The table of the types in the window, as if there were no others."""
    return table(t.window if isinstance(t, TokenTables) else t.table_of(frequent(t.n)))


def select_types(t: TokenStatistics | TokenTables | TokenTable, at_least: int) -> TokenTable:
    """Select the types that are frequent enough to have a mean and a variance; undefined if they are too few."""
    all_types = table(t)
    keep = frequent(all_types.seen)
    if (found := int(keep.sum())) < at_least:
        raise Undefined(f"needs at least {at_least} token types with {FEWEST} to {MOST:,} occurrences, found {found}")
    return all_types.select(keep)
