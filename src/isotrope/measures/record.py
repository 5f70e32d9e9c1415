"""The record of a measure: what it needs, what it says, in which range, and the function itself."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from isotrope.errors import InputError, Undefined
from isotrope.quantization import check_settings
from isotrope.quantization.cells import Cells
from isotrope.registry import Registry
from isotrope.statistics import Image, Moments, Points, block

#: What a measure is computed from.
Need: TypeAlias = Literal["moments", "tokens", "sequences", "spectra", "sample", "cells", "image", "layers"]

#: What leaves a measure unchanged: a rotation or a scaling of all rows, a shift of all rows by one vector.
Invariance: TypeAlias = Literal["rotation", "scale", "shift"]

#: The groups that `--measures` accepts.
GROUPS = ("moments", "tokens", "sequences", "spread", "neighbours", "quantized")

#: The group of a measure that names none, by what it needs. A scan has no image of its rows, so that no group has it.
_GROUP_OF: dict[Need, str | None] = {
    "moments": "moments",
    "layers": "moments",
    "tokens": "tokens",
    "sequences": "sequences",
    "spectra": "sequences",
    "sample": "spread",
    "cells": "quantized",
    "image": None,
}

#: The highest power of the rows' lengths that a measure averages, unless it says otherwise, by what it needs. Measures
#: of single sequences and of neighbours are bounded for each of them.
_LENGTH_POWER_OF: dict[Need, int] = {"moments": 2, "tokens": 2}

#: The statistics that rows alone make.
_OF_ROWS: dict[Need, Any] = {"moments": Moments, "sample": Points}

Bounds: TypeAlias = tuple[float, float]


class Smooth(NamedTuple):
    """A quantity without corners that a measure is a function of, so that intervals hold at the measure's corner too.

    of: the quantity on a statistic. forward: from a measure's value, and from a quantity nearby that knows the sign.
    back: from the ends of the quantity's interval to those of the measure's.
    """

    of: Callable[[Any], float]
    forward: Callable[[float, float], float]
    back: Callable[[float, float], Bounds]


@dataclass(frozen=True)
class Measure:
    """One measure: a pure function of one statistic, with all that there is to say about it.

    Call it with rows, shape (n, d), or with the statistic that it needs; where it compares rows with their image under
    a repair, with both:

    >>> from isotrope.measures import lsds, mean_cosine
    >>> mean_cosine(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    0.33333333...
    >>> X = np.random.default_rng(0).normal(size=(100, 4))
    >>> lsds(X, X * [1, 1, 1, 9]) > lsds(X, X)
    True

    needs: the statistic. group: the group it is in, None for none.
    says: what the number means, in plain words. formula, paper: what it is, and whose.
    range: bounds, or a function of n, d and the parameters that gives them. better: which way is healthier, None where
        neither is. invariant: what leaves it unchanged. degree: power of a common scale that it grows with (2 for a
        squared length).
    blind: what it does not see. wrong: implementations that are known to give something else.
    estimate: whether it estimates a property of the space and so has an interval. slow_bias: its bias shrinks more
        slowly than 1/n. unsure_bias: a sample does not tell its bias. at_n: it depends on the number of
        rows by its nature, and its interval is about what so many rows give. smooth: where its interval is taken, if
        not on itself. length_power: highest power of the rows' lengths that it averages, 0 where only directions
        count; with heavy tails of that power its interval is wider, or there is none.
    null: its value for isotropic Gaussian rows where there is a closed form, as a function of (n, d); simulated
        otherwise.
    enough: rows below which its value tells more of their number than of the space, as a function of d. note: what to
        know of its value on a statistic, None if nothing.
    variants: other definitions by name, such as "published". parameters: those that its name stands for, of the
        function or, for cells, of the quantizer.
    """

    name: str
    needs: Need
    group: str | None
    function: Callable[..., float]
    title: str
    says: str
    range: Bounds | Callable[..., Bounds]
    better: Literal["higher", "lower"] | None
    formula: str
    paper: str
    blind: str
    invariant: frozenset[Invariance] = frozenset({"rotation"})
    degree: int = 0
    estimate: bool = True
    slow_bias: bool = False
    unsure_bias: bool = False
    at_n: bool = False
    smooth: Smooth | None = None
    length_power: int = 0
    null: Callable[[int, int], float] | None = None
    enough: Callable[[int], int] | None = None
    note: Callable[[Any], str | None] | None = None
    wrong: str = ""
    variants: Mapping[str, Callable[..., float]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

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
        if (image is not None) != (self.needs == "image" and _are_rows(data)):
            pair = f"{self.name}(X, Z)" if self.needs == "image" else f"{self.name}(X)"
            raise InputError(f"{self.name} needs {self.needs}; call it as {pair}.")
        if image is not None:
            return Image.of(_array(data), _array(image))
        if not _are_rows(data):
            return data
        if self.needs not in (*_OF_ROWS, "cells"):
            raise InputError(f"{self.name} cannot be taken from rows alone: it needs {self.needs}.")
        rows = block(_array(data))
        return Cells.of(Points.of(rows), **parameters) if self.needs == "cells" else _OF_ROWS[self.needs].of(rows)

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


def measure(
    needs: Need,
    *,
    title: str,
    says: str,
    range: Bounds | Callable[..., Bounds],
    better: Literal["higher", "lower"] | None,
    formula: str,
    paper: str,
    blind: str,
    name: str | None = None,
    group: str | None = None,
    invariant: tuple[Invariance, ...] = ("rotation",),
    degree: int = 0,
    estimate: bool = True,
    slow_bias: bool = False,
    unsure_bias: bool = False,
    at_n: bool = False,
    smooth: Smooth | None = None,
    length_power: int | None = None,
    null: Callable[[int, int], float] | None = None,
    enough: Callable[[int], int] | None = None,
    note: Callable[[Any], str | None] | None = None,
    wrong: str = "",
    variants: Mapping[str, Callable[..., float]] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., float]], Measure]:
    """Register a function as a measure under its own name; the function becomes the record."""

    def register(function: Callable[..., float]) -> Measure:
        record = Measure(
            name=name or function.__name__,
            needs=needs,
            group=group or _GROUP_OF[needs],
            function=function,
            title=title,
            says=says,
            range=range,
            better=better,
            formula=formula,
            paper=paper,
            blind=blind,
            invariant=frozenset(invariant),
            degree=degree,
            estimate=estimate,
            slow_bias=slow_bias,
            unsure_bias=unsure_bias,
            at_n=at_n,
            smooth=smooth,
            length_power=_LENGTH_POWER_OF.get(needs, 0) if length_power is None else length_power,
            null=null,
            enough=enough,
            note=note,
            wrong=wrong,
            variants=variants or {},
            parameters=parameters or {},
        )
        object.__setattr__(record, "__doc__", function.__doc__ or says)
        MEASURES.add(record.name, record)
        return record

    return register


#: Settings of a quantizer at the end of a name: codebooks and cells of each.
_SETTINGS = re.compile(r"(\w+)_(\d+)x(\d+)")


def get(name: str) -> Measure:
    """The measure under the name that was asked for; a family takes its parameters from the name.

    A quantized measure without its quantizer's name is the additive one's.

    >>> get("explained_variance_7").parameters
    {'k': 7}
    >>> get("point_patchiness").name, get("point_patchiness").parameters["kind"]
    ('point_patchiness', 'additive')
    >>> get("point_patchiness_product_8x64").parameters
    {'kind': 'product', 'codebooks': 8, 'size': 64}
    >>> get("isoscor")
    Traceback (most recent call last):
    isotrope.errors.InputError: there is no measure 'isoscor'; did you mean 'isoscore'?
    """
    if found := _SETTINGS.fullmatch(name):
        base = get(found[1])
        if base.needs == "cells":
            check_settings(codebooks=int(found[2]), size=int(found[3]))
            settings = {**base.parameters, "codebooks": int(found[2]), "size": int(found[3])}
            return replace(base, name=f"{base.name}_{found[2]}x{found[3]}", parameters=settings)
    if name not in MEASURES and f"{name}_additive" in MEASURES:
        return replace(MEASURES.get(f"{name}_additive"), name=name)
    stem, _, number = name.rpartition("_")
    family = f"{stem}_1"
    if name not in MEASURES and number.isdigit() and int(number) > 0 and family in MEASURES:
        base = MEASURES.get(family)
        return replace(base, name=name, parameters={"k": int(number)}, title=base.title.replace("1", number))
    return MEASURES.get(name)


def select(names: str | list[str] | None) -> list[Measure]:
    """The measures named, a group standing for all of its own; None or "all" for every group.

    >>> [m.name for m in select("isoscore, eee")]
    ['isoscore', 'eee']
    >>> len(select("quantized")), len(select("quantized_8x64"))
    (16, 16)
    """
    parts = ["all"] if names is None else names.split(",") if isinstance(names, str) else list(names)
    chosen: dict[str, Measure] = {}
    for part in (p.strip() for p in parts if p.strip()):
        if part == "all":
            found = [m for m in MEASURES if m.group is not None]
        elif part in GROUPS:
            found = [m for m in MEASURES if m.group == part]
        elif (of := _SETTINGS.fullmatch(part)) and of[1] == "quantized":
            found = [get(f"{m.name}_{of[2]}x{of[3]}") for m in select("quantized")]
        elif part not in MEASURES and (close := difflib.get_close_matches(part, GROUPS, n=1, cutoff=0.8)):
            raise InputError(f"there is no group of measures {part!r}; did you mean {close[0]!r}?")
        else:
            found = [get(part)]
        chosen |= {m.name: m for m in found}
    if not chosen:
        raise InputError(f"no measure was named; known groups: {', '.join(GROUPS)}.")
    return list(chosen.values())


def refuse_images(chosen: Iterable[Measure]) -> None:
    """Refuse measures that compare rows with their image under a repair."""
    for m in chosen:
        if m.needs == "image":
            raise InputError(
                f"{m.name} compares rows with their image under a repair, and there is none here; "
                f"call isotrope.measures.{m.name}(X, Z)."
            )
