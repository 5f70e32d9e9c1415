"""The record of a measure: what it needs, what it says, in which range, and the function itself."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from isotrope.errors import InputError, Undefined
from isotrope.registry import Registry
from isotrope.statistics import Moments, block

#: What a measure is computed from.
Need: TypeAlias = Literal["moments", "tokens", "sequences", "spectra", "layers"]

#: What leaves a measure unchanged: a rotation or a scaling of all rows, a shift of all rows by one vector.
Invariance: TypeAlias = Literal["rotation", "scale", "shift"]

#: The groups that `--measures` accepts, and the needs each stands for.
GROUPS: dict[str, tuple[Need, ...]] = {
    "moments": ("moments", "layers"),
    "tokens": ("tokens",),
    "sequences": ("sequences", "spectra"),
}

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

    Call it with rows, shape (n, d), or with the statistic that it needs:

    >>> from isotrope.measures import mean_cosine
    >>> mean_cosine(np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]))
    0.33333333...

    needs: the statistic. says: what the number means, in plain words. range: bounds, or a function of n, d and the
    parameters that gives them. better: which way is healthier, None where neither is. invariant: what leaves it
    unchanged. degree: power of a common scale that it grows with (2 for a squared length). estimate: whether it
    estimates a property of the space and so has an interval. slow_bias: its bias shrinks more slowly than 1/n.
    unsure_bias: a sample does not tell how its bias shrinks. smooth: where its interval is taken, if not on itself.
    null: its value for isotropic Gaussian rows where there is a closed form, as a function of (n, d); simulated
    otherwise. variants: other definitions by name, such as "published".
    """

    name: str
    needs: Need
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
    smooth: Smooth | None = None
    null: Callable[[int, int], float] | None = None
    variants: Mapping[str, Callable[..., float]] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, data: Any, *, variant: str = "definition", **parameters: Any) -> float:
        """The value on rows or on a statistic; NaN where it is undefined."""
        try:
            return self.value(data, variant=variant, **parameters)
        except Undefined:
            return float("nan")

    def value(self, data: Any, *, variant: str = "definition", **parameters: Any) -> float:
        """The value; raises Undefined with the reason where there is none."""
        if hasattr(data, "shape") or isinstance(data, list):
            if self.needs != "moments":
                raise InputError(f"{self.name} cannot be taken from rows alone: it needs {self.needs}.")
            data = Moments.of(block(np.asarray(data) if isinstance(data, list) else data))
        return float(self._variant(variant)(data, **{**self.parameters, **parameters}))

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
    invariant: tuple[Invariance, ...] = ("rotation",),
    degree: int = 0,
    estimate: bool = True,
    slow_bias: bool = False,
    unsure_bias: bool = False,
    smooth: Smooth | None = None,
    null: Callable[[int, int], float] | None = None,
    variants: Mapping[str, Callable[..., float]] | None = None,
    parameters: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., float]], Measure]:
    """Register a function as a measure under its own name; the function becomes the record."""

    def register(function: Callable[..., float]) -> Measure:
        record = Measure(
            name=name or function.__name__,
            needs=needs,
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
            smooth=smooth,
            null=null,
            variants=variants or {},
            parameters=parameters or {},
        )
        object.__setattr__(record, "__doc__", function.__doc__ or says)
        MEASURES.add(record.name, record)
        return record

    return register


def get(name: str) -> Measure:
    """The measure of that name; a family takes its parameter from the name (`explained_variance_7`).

    >>> get("explained_variance_7").parameters
    {'k': 7}
    >>> get("isoscor")
    Traceback (most recent call last):
    isotrope.errors.InputError: there is no measure 'isoscor'; did you mean 'isoscore'?
    """
    stem, _, number = name.rpartition("_")
    family = f"{stem}_1"
    if name not in MEASURES and number.isdigit() and int(number) > 0 and family in MEASURES:
        base = MEASURES.get(family)
        return replace(base, name=name, parameters={"k": int(number)}, title=base.title.replace("1", number))
    return MEASURES.get(name)


def select(names: str | list[str] | None) -> list[Measure]:
    """The measures named, a group standing for all of its own; None for every group.

    >>> [m.name for m in select("isoscore, eee")]
    ['isoscore', 'eee']
    """
    if names is None or names == "all":
        return list(MEASURES)
    parts = names.split(",") if isinstance(names, str) else list(names)
    chosen: dict[str, Measure] = {}
    for part in (p.strip() for p in parts if p.strip()):
        if part == "all":
            found = list(MEASURES)
        elif part in GROUPS:
            found = [m for m in MEASURES if m.needs in GROUPS[part]]
        elif part not in MEASURES and (close := difflib.get_close_matches(part, GROUPS, n=1, cutoff=0.8)):
            raise InputError(f"there is no group of measures {part!r}; did you mean {close[0]!r}?")
        else:
            found = [get(part)]
        chosen |= {m.name: m for m in found}
    if not chosen:
        raise InputError(f"no measure was named; known groups: {', '.join(GROUPS)}.")
    return list(chosen.values())
