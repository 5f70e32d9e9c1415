"""All statistics of one layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from isotrope.errors import MergeError
from isotrope.sources.batch import Rows
from isotrope.statistics.duplicates import Duplicates
from isotrope.statistics.moments import Moments, gram
from isotrope.statistics.row_lengths import RowLengths
from isotrope.statistics.sample import Sample
from isotrope.statistics.saved_arrays import build_damage_error, require_consistent
from isotrope.statistics.sequences import SequenceStatistics
from isotrope.statistics.token_tables import TokenTables
from isotrope.statistics.tokens import TokenStatistics
from isotrope.statistics.usable_rows import prepare_rows

_KINDS: dict[str, Any] = {
    "moments": Moments,
    "tokens": TokenStatistics,
    "sequences": SequenceStatistics,
    "sample": Sample,
    "lengths": RowLengths,
    "duplicates": Duplicates,
}

#: What summaries of earlier versions do not hold: a sum with one of these does not hold it either.
_MAY_BE_MISSING = {"lengths", "duplicates"}


@dataclass(eq=False)
class Summary:
    """Moments of one layer's rows and, where wanted and possible, tokens, sequences, a sample, lengths and duplicates.

    A value with `+`; `+=` reuses memory.
    """

    moments: Moments
    tokens: TokenStatistics | TokenTables | None = None
    sequences: SequenceStatistics | None = None
    sample: Sample | None = None
    lengths: RowLengths | None = None
    duplicates: Duplicates | None = None

    def update(self, rows: Any, known: Rows) -> None:
        """Add rows, shape (n, d), with what is known of each."""
        self.begin(rows, known)()

    def begin(self, rows: Any, known: Rows, pool: Executor | None = None) -> Callable[[], None]:
        """Add rows to all but the moments, whose large product a pool may compute meanwhile; the result adds them."""
        usable = prepare_rows(rows, known)
        product = None if pool is None else pool.submit(gram, usable.centred)
        # What may refuse the rows comes first, so that nothing has changed where it does.
        more = {name: _KINDS[name].of(usable) for name in self.parts().keys() - {"moments", "sample"}}
        for name, part in more.items():
            getattr(self, name).check(part)
        if self.sample is not None:
            self.sample.add(usable)
        self._add(more)

        def finish() -> None:
            self.moments += Moments.of(usable, None if product is None else product.result())

        return finish

    def parts(self) -> dict[str, Any]:
        """The statistics that it holds, by name."""
        return {name: part for name, part in vars(self).items() if part is not None}

    def check(self, other: Summary) -> None:
        """Refuse what cannot be merged."""
        mine, theirs = self.parts(), other.parts()
        if (mine.keys() ^ theirs.keys()) - _MAY_BE_MISSING:
            raise MergeError(f"cannot merge a summary of {', '.join(theirs)} with a summary of {', '.join(mine)}.")
        for name in mine.keys() & theirs.keys():
            mine[name].check(theirs[name])

    def __add__(self, other: Summary) -> Summary:
        self.check(other)
        mine, theirs = self.parts(), other.parts()
        return Summary(**{name: part + theirs[name] for name, part in mine.items() if name in theirs})

    def __iadd__(self, other: Summary) -> Summary:
        self.check(other)
        theirs = other.parts()
        for name in self.parts().keys() - theirs.keys():
            setattr(self, name, None)
        self._add({name: theirs[name] for name in self.parts()})
        return self

    def _add(self, parts: Mapping[str, Any]) -> None:
        for name, part in parts.items():
            merged = getattr(self, name)
            merged += part
            setattr(self, name, merged)

    def settle(self) -> None:
        """Put the sample in order, after which it can be read from several threads."""
        if self.sample is not None:
            self.sample.settle()

    def copy(self) -> Summary:
        return Summary.from_arrays(self.arrays())

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The whole state as named arrays, for saving."""
        parts = {name: part.arrays() for name, part in self.parts().items()}
        return {f"{name}.{key}": array for name, part in parts.items() for key, array in part.items()}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Summary:
        """The state that `arrays` returned."""
        parts: dict[str, dict[str, NDArray[Any]]] = {}
        for key, array in arrays.items():
            name, _, rest = key.partition(".")
            parts.setdefault(name, {})[rest] = array
        try:
            kinds = _KINDS | ({"tokens": TokenTables} if "columns" in parts.get("tokens", ()) else {})  # a compact run
            summary = cls(**{name: kinds[name].from_arrays(part) for name, part in parts.items()})
        except (KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
            raise build_damage_error(f"the saved statistics are not those of a layer ({error!r})") from error
        widths = {name: part.d for name, part in summary.parts().items() if hasattr(part, "d")}
        require_consistent(
            len(set(widths.values())) == 1, f"the saved statistics are of rows of different widths ({widths})"
        )
        return summary
