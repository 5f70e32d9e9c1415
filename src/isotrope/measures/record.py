"""The record of a measure: what it needs, what it says, in which range, and the function itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from isotrope.errors import InputError, Undefined
from isotrope.quantization.cells import Cells
from isotrope.registry import Registry
from isotrope.statistics import Image, Moments, Points, QueriedPoints, prepare_rows

#: What a measure is computed from.
Need: TypeAlias = Literal[
    "moments", "tokens", "sequences", "spectra", "sample", "cells", "queries", "texts", "image", "layers"
]

#: What leaves a measure unchanged: a rotation or a scaling of all rows, a shift of all rows by one vector.
Invariance: TypeAlias = Literal["rotation", "scale", "shift"]

#: The group of a measure that names none, by what it needs. A scan has no image of its rows, so that no group has it.
_GROUP_OF: dict[Need, str | None] = {
    "moments": "moments",
    "layers": "moments",
    "tokens": "tokens",
    "sequences": "sequences",
    "spectra": "sequences",
    "sample": "spread",
    "cells": "quantized",
    "queries": "search",
    "texts": "search",
    "image": None,
}

#: The highest power of the rows' lengths that a measure averages, unless it says otherwise, by what it needs. Measures
#: of single sequences and of neighbours are bounded for each of them.
_LENGTH_POWER_OF: dict[Need, int] = {"moments": 2, "tokens": 2}

#: Stands for the power that the table above gives.
_BY_NEED = -1

#: Rows below which most cells of the usual 256 hold too few of them for their counts to be told from chance.
_ENOUGH_FOR_CELLS = 10_000

#: The statistics that rows alone make, and those of two sets of rows with the name of the second.
_OF_ROWS: dict[Need, Any] = {"moments": Moments, "sample": Points}
_OF_TWO_SETS: dict[Need, tuple[Any, str]] = {"image": (Image, "Z"), "queries": (QueriedPoints, "queries")}

Bounds: TypeAlias = tuple[float, float]


class Smooth(NamedTuple):
    """A quantity without corners that a measure is a function of, so that intervals hold at the measure's corner too.

    of: the quantity on a statistic. forward: from a measure's value, and from a quantity nearby that knows the sign.
    back: from the ends of the quantity's interval to those of the measure's.
    """

    of: Callable[[Any], float]
    forward: Callable[[float, float], float]
    back: Callable[[float, float], Bounds]


@dataclass(frozen=True, kw_only=True)
class Record:
    """The description of a measure, without the function itself.

    Args:
        needs: The statistic that it is computed from.
        title: Its name for people.
        says: What the number means, in plain words.
        range: Its bounds, or a function of n, d and the parameters that gives them.
        better: Which way is healthier, None where neither is.
        formula: What it is.
        paper: Whose it is.
        blind: What it does not see.
        wrong: Implementations that are known to give something else.
        name: Its name; by default that of the function.
        group: The group it is in; by default that of its needs.
        invariant: What leaves it unchanged.
        degree: The power of a common scale that it grows with, 2 for a squared length.
        estimate: Whether it estimates a property of the space, and so has an interval.
        slow_bias: Whether its bias shrinks more slowly than 1/n.
        unsure_bias: Whether a sample does not tell its bias.
        at_n: Whether it depends on the number of rows by its nature; its interval is about what so many rows give.
        row_share: Whether it is a share of the rows; its interval is at least as wide as that of independent rows.
        smooth: Where its interval is computed, if not on itself.
        length_power: The highest power of the rows' lengths that it averages, 0 where only directions count; with heavy
            tails of that power its interval is wider, or there is none. By default that of its needs.
        fine_spectrum: Whether it depends on small singular values, which float32 may not resolve.
        null: Its value for isotropic Gaussian rows as a function of n and d; None where it has to be simulated.
        null_rows: Rows that are simulated for its null value at most, where that hardly depends on n; None for all.
        enough: Rows below which its value tells more of their number than of the space, as a function of d.
        note: What to know about its value on a statistic, None where there is nothing.
        variants: Other definitions by name, such as "published".
        parameters: What its name stands for: arguments of the function or, for cells, of the quantizer.
        across: For a measure across layers, the measures whose readings it is computed from.
        cost: Its entry in the table of costs; by default that of its needs.
        headline: Its rank among the numbers at the top of a report, None where it is not among the first.
        per_group: Whether a report shows it for each group.
        relative: Whether it counts as a share of what isotropic rows give.
    """

    needs: Need = field(kw_only=False)
    title: str
    says: str
    range: Bounds | Callable[..., Bounds]
    better: Literal["higher", "lower"] | None
    formula: str
    paper: str
    blind: str
    wrong: str = ""
    name: str = ""
    group: str | None = None
    invariant: tuple[Invariance, ...] = ("rotation",)
    degree: int = 0
    estimate: bool = True
    slow_bias: bool = False
    unsure_bias: bool = False
    at_n: bool = False
    row_share: bool = False
    smooth: Smooth | None = None
    length_power: int = _BY_NEED
    fine_spectrum: bool = False
    null: Callable[[int, int], float] | None = None
    null_rows: int | None = None
    enough: Callable[[int], int] | None = None
    note: Callable[[Any], str | None] | None = None
    variants: Mapping[str, Callable[..., float]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    across: tuple[str, ...] = ()
    cost: str = ""
    headline: int | None = None
    per_group: bool = False
    relative: bool = False


@dataclass(frozen=True, kw_only=True)
class Measure(Record):
    """A measure: a pure function of one statistic, with its record.

    Call it with rows, shape (n, d), or with the statistic that it needs; where it compares rows with their image under
    a repair, or documents with queries, with both.

    Examples:
        >>> from isotrope.measures import lsds, mean_cosine
        >>> mean_cosine(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
        0.33333333...
        >>> X = np.random.default_rng(0).normal(size=(100, 4))
        >>> lsds(X, X * [1, 1, 1, 9]) > lsds(X, X)
        True
    """

    function: Callable[..., float]
    variant: str = "definition"

    def __call__(self, data: Any, image: Any = None, *, variant: str = "definition", **parameters: Any) -> float:
        """The value on rows or on a statistic; NaN where it is undefined."""
        try:
            return self.value(data, image, variant=variant, **parameters)
        except Undefined:
            return float("nan")

    def value(self, data: Any, image: Any = None, *, variant: str = "definition", **parameters: Any) -> float:
        """The value; raises Undefined with the reason where there is none."""
        function = self._variant(variant)
        chosen = {**self.parameters, **parameters}
        statistic = self._statistic(data, image, chosen)
        return float(function(statistic) if self.needs == "cells" else function(statistic, **chosen))

    @property
    def statistic(self) -> tuple[Any, ...]:
        """What tells the statistic that it needs from others: its kind and, for cells, the quantizer's settings."""
        return (self.needs, *(self.parameters.items() if self.needs == "cells" else ()))

    def _statistic(self, data: Any, image: Any, parameters: Mapping[str, Any]) -> Any:
        """What the function takes, made of rows where rows were given."""
        two_sets, other = _OF_TWO_SETS.get(self.needs, (None, None))
        if (image is not None) != (two_sets is not None and _are_rows(data)):
            call = f"{self.name}(X, {other})" if other else f"{self.name}(X)"
            raise InputError(f"{self.name} needs {self.needs}; call it as {call}.")
        if two_sets is not None and image is not None:
            return two_sets.of(_array(data), _array(image))
        if not _are_rows(data):
            return data
        if self.needs not in (*_OF_ROWS, "cells"):
            raise InputError(f"{self.name} cannot be taken from rows alone: it needs {self.needs}.")
        rows = prepare_rows(_array(data))
        return Cells.of(Points.of(rows), **parameters) if self.needs == "cells" else _OF_ROWS[self.needs].of(rows)

    def as_variant(self, name: str) -> Measure:
        """The measure by another of its definitions, as a measure of its own; its null value has to be simulated."""
        return replace(self, function=self._variant(name), variant=name, variants={}, smooth=None, null=None)

    def _variant(self, name: str) -> Callable[..., float]:
        if name == "definition":
            return self.function
        if name not in self.variants:
            known = ", ".join(["definition", *self.variants])
            raise InputError(f"{self.name} has no variant {name!r}; it has: {known}.")
        return self.variants[name]

    def bounds(self, n: int, d: int) -> Bounds:
        """The smallest and largest value possible for n rows of d dimensions."""
        return self.range(n, d, **self.parameters) if callable(self.range) else self.range


def _are_rows(data: Any) -> bool:
    return hasattr(data, "shape") or isinstance(data, list)


def _array(rows: Any) -> Any:
    return np.asarray(rows) if isinstance(rows, list) else rows


MEASURES: Registry[Measure] = Registry("measure")


@dataclass(frozen=True, kw_only=True)
class measure(Record):
    """Register a function as a measure under its own name; the function becomes the measure."""

    better: Literal["higher", "lower"] | None = None
    invariant: tuple[Invariance, ...] = ("rotation", "scale")

    def __call__(self, function: Callable[..., float]) -> Measure:
        by_need = {
            "name": self.name or function.__name__,
            "group": self.group or _GROUP_OF[self.needs],
            "length_power": _LENGTH_POWER_OF.get(self.needs, 0) if self.length_power == _BY_NEED else self.length_power,
        }
        found = Measure(**{**vars(self), **by_need}, function=function)
        object.__setattr__(found, "__doc__", function.__doc__ or self.says)
        MEASURES.add(found.name, found)
        return found


def add_cells_measures(name: str, function: Callable[[Cells], float], **record: Any) -> None:
    """Register `name_additive` and `name_product`, functions of `Cells`; plain `name` stands for the first."""
    for kind in ("additive", "product"):
        measure(
            "cells",
            name=f"{name}_{kind}",
            invariant=(),
            at_n=True,
            enough=lambda d: _ENOUGH_FOR_CELLS,
            parameters={"kind": kind, "codebooks": 4, "size": 256},
            **{"note": Cells.describe, **record, "title": f"{record['title']} ({kind} quantizer)"},
        )(function)
