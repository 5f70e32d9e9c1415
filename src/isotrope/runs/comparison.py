"""What changed between runs, by how much, and whether beyond its interval; and which layers belong together."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.layers import Layer

By = Literal["name", "depth"]

#: A layer by its number, in one of several stacks or before the final norm: "6", "encoder.3", "12.before_norm".
_NUMBERED = re.compile(r"(?P<before>(?:.*\.)?)(?P<number>\d+)(?P<after>(?:\.[^\d.][^.]*)*)")

#: The stacks whose layers are hidden states, which a model has all of, whichever were asked for; others are of hooks.
_STACKS = ("*", "*.before_norm", "encoder.*", "decoder.*")


@dataclass(frozen=True)
class Layers:
    """The layers of a run.

    Args:
        names: what each is called, by its label, in order.
        states: how many hidden states the model has, None where that is not known.
    """

    names: Mapping[Layer, str]
    states: int | None = None


@dataclass(frozen=True)
class Alignment:
    """Layers of two runs in pairs.

    Args:
        by: "name" where equal names were paired, "depth" where equal relative depths were.
        pairs: labels of the first and of the second run.
        only_first: labels of the first run that have no partner; only_second: of the second run.
    """

    by: By
    pairs: Sequence[tuple[Layer, Layer]]
    only_first: Sequence[Layer]
    only_second: Sequence[Layer]


@dataclass(frozen=True, slots=True)
class Change:
    """One measure of one layer in two runs.

    Args:
        layer: of the first run, None for a reading across layers.
        beyond: True where the intervals do not touch, None where there is none.
        other_layer: the layer of the second run that it is compared with.
        interval: the smallest and the largest difference that the intervals of both runs allow.
        variant: which definition of the measure.
    """

    layer: Layer | None
    measure: str
    group: str | None
    before: float
    after: float
    beyond: bool | None
    note: str | None = None
    other_layer: Layer | None = None
    interval: tuple[float, float] = (math.nan, math.nan)
    variant: str = "definition"

    @property
    def difference(self) -> float:
        return self.after - self.before

    def describe(self) -> dict[str, Any]:
        """Return the change as plain data."""
        return {
            "layer": self.layer,
            "other_layer": self.other_layer,
            "measure": self.measure,
            "group": self.group,
            "before": self.before,
            "after": self.after,
            "difference": self.difference,
            "beyond": self.beyond,
            "note": self.note,
        }


class Comparison(list[Change]):
    """The changes from one run to another, and how their layers were paired."""

    def __init__(self, changes: Iterable[Change], alignment: Alignment) -> None:
        super().__init__(changes)
        self.alignment = alignment


def compare(runs: Sequence[Findings], align: str | None = None) -> list[Comparison]:
    """The changes from the first run to each of the others, for the readings that they share.

    Args:
        runs: two or more.
        align: "depth" pairs layers of the same relative depth, "name" those of the same name or number; by default
            by name where the runs have the same layers, and by depth otherwise.
    """
    if len(runs) < 2:
        raise InputError("a comparison needs at least two runs.")
    return [_pair(runs[0], other, align) for other in runs[1:]]


def _pair(first: Findings, second: Findings, by: str | None) -> Comparison:
    alignment = align_layers(_layers(first), _layers(second), by)
    partner: dict[Layer | None, Layer | None] = {None: None}
    partner.update(alignment.pairs)
    there = {_key(r, r.layer): r for r in second.readings}
    found = [
        (r, there[key]) for r in first.readings if r.layer in partner and (key := _key(r, partner[r.layer])) in there
    ]
    if not found:
        raise InputError("the runs share no reading: they have no measure of the same layer in common.")
    return Comparison([_change(a, b) for a, b in found], alignment)


def _layers(run: Findings) -> Layers:
    states = run.source.get("states")
    names = {layer: run.layer_names.get(str(layer), str(layer)) for layer in run.layers}
    return Layers(names, states if isinstance(states, int) else None)


def _key(r: Reading, layer: Layer | None) -> tuple[Layer | None, str, str | None, str]:
    return (layer, r.measure, r.group, r.variant)


def _change(a: Reading, b: Reading) -> Change:
    ends = (a.low, a.high, b.low, b.high)
    beyond = None if any(math.isnan(e) for e in ends) else a.high < b.low or b.high < a.low
    note = f"n differs: {a.n:,} and {b.n:,}" if a.n != b.n else None
    interval = (b.low - a.high, b.high - a.low)
    return Change(a.layer, a.measure, a.group, a.value, b.value, beyond, note, b.layer, interval, a.variant)


def align_layers(first: Layers, second: Layers, by: str | None = None) -> Alignment:
    """Pair the layers of two runs, by default by name where both have the same ones and by relative depth otherwise.

    By depth, a layer has a partner if one lies at most half a layer of the shallower model away. Layers of an encoder
    are paired with layers of an encoder, and layers without a number with those of the same name.

    >>> small, large = ({i: str(i) for i in range(n)} for n in (3, 5))
    >>> align_layers(Layers(small), Layers(large))
    Alignment(by='depth', pairs=[(0, 0), (1, 2), (2, 4)], only_first=[], only_second=[1, 3])
    """
    if by not in (None, "name", "depth"):
        raise InputError(f"layers cannot be aligned by {by!r}; say depth or name.")
    same = list(first.names.values()) == list(second.names.values())
    pairs = _by_name(first, second) if by == "name" or (by is None and same) else _by_depth(first, second)
    lefts, rights = {left for left, _ in pairs}, {right for _, right in pairs}
    return Alignment(
        "name" if by == "name" or (by is None and same) else "depth",
        pairs,
        [label for label in first.names if label not in lefts],
        [label for label in second.names if label not in rights],
    )


def _by_name(first: Layers, second: Layers) -> list[tuple[Layer, Layer]]:
    labels = {name: label for label, name in second.names.items()}
    return [(label, labels[name]) for label, name in first.names.items() if name in labels]


def _by_depth(first: Layers, second: Layers) -> list[tuple[Layer, Layer]]:
    stacks, others = _stacks(first), _stacks(second)
    found = dict[Layer, Layer]()
    for one, other in _stack_pairs(list(stacks), list(others)):
        found |= _nearest(stacks[one], others[other])
    numbered = {label for stack in stacks.values() for label in stack.depths}
    found |= {left: right for left, right in _by_name(first, second) if left not in numbered}
    return [(label, found[label]) for label in first.names if label in found]


@dataclass(frozen=True)
class _Stack:
    """Numbered layers: how deep each is, from 0 to 1, and how far two neighbours are apart."""

    depths: dict[Layer, float]
    step: float


def _stacks(layers: Layers) -> dict[str, _Stack]:
    """The numbered layers by what stands around their numbers, such as "encoder."."""
    numbers: dict[str, dict[Layer, int]] = {}
    for label, name in layers.names.items():
        is_mix = "+" in name or ".." in name
        if not is_mix and (parts := _NUMBERED.fullmatch(name)):
            numbers.setdefault(f"{parts['before']}*{parts['after']}", {})[label] = int(parts["number"])
    return {stack: _stack(known, _deepest(stack, known, layers, numbers)) for stack, known in numbers.items()}


def _stack(numbers: dict[Layer, int], deepest: int) -> _Stack:
    if deepest == 0:  # vectors, or a model that has one state only: it is the output
        return _Stack(dict.fromkeys(numbers, 1.0), 1.0)
    return _Stack({label: number / deepest for label, number in numbers.items()}, 1 / deepest)


def _deepest(stack: str, known: dict[Layer, int], layers: Layers, numbers: dict[str, dict[Layer, int]]) -> int:
    """The number of a stack's last layer, whether it was asked for or not; the greatest seen where it is not known."""
    greatest = max(known.values())
    if layers.states is None or stack not in _STACKS:
        return greatest
    decoder = numbers.get("decoder.*", {})
    starts = [label - number for label, number in decoder.items() if isinstance(label, int)]
    if stack == "decoder.*" and starts:
        return max(greatest, layers.states - starts[0] - 1)
    if stack == "encoder.*":
        return max(greatest, starts[0] - 1) if starts else greatest
    return max(greatest, layers.states - 1)


def _stack_pairs(first: list[str], second: list[str]) -> list[tuple[str, str]]:
    """Stacks of the same name; and where one run has a single other one, that and the first other one of the second."""
    pairs = [(stack, stack) for stack in first if stack in second]
    rest, other = ([s for s in some if s not in dict(pairs)] for some in (first, second))
    return [*pairs, (rest[0], other[0])] if rest and other and 1 in (len(rest), len(other)) else pairs


def _nearest(first: _Stack, second: _Stack) -> dict[Layer, Layer]:
    """One partner for each layer, the closest pairs first."""
    reach = max(first.step, second.step) / 2 + 1e-9
    apart = [
        (round(abs(depth - other), 9), i, j, left, right)
        for i, (left, depth) in enumerate(first.depths.items())
        for j, (right, other) in enumerate(second.depths.items())
    ]
    found: dict[Layer, Layer] = {}
    for distance, _, _, left, right in sorted(apart, key=lambda pair: pair[:3]):
        if distance <= reach and left not in found and right not in found.values():
            found[left] = right
    return found
