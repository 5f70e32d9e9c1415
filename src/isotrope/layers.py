"""The one resolver of layers: `all`, `0,6,-1`, `encoder.3`, `1+-1`, `4..-1` or `30.before_norm`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from isotrope.errors import InputError

#: A layer's number, or its name where a number does not say it ("30.before_norm", "1+6").
Layer: TypeAlias = int | str

BEFORE_NORM = ".before_norm"

#: Between the first and the last of several layers that are joined.
TO = ".."


@dataclass(frozen=True, slots=True)
class Choice:
    """One layer to report: its label, the states it is made of, and whether before the final norm."""

    label: Layer
    states: tuple[int, ...]
    before_norm: bool = False


def state_names(encoder: int, decoder: int = 0) -> list[str]:
    """Names of all hidden states: plain numbers, or encoder.0.. then decoder.0.. where there are both.

    >>> state_names(2, 1)
    ['encoder.0', 'encoder.1', 'decoder.0']
    """
    if not decoder:
        return [str(i) for i in range(encoder)]
    return [f"encoder.{i}" for i in range(encoder)] + [f"decoder.{i}" for i in range(decoder)]


def find_layer(
    asked: str | int, layers: Sequence[Layer], names: Mapping[str, str] = MappingProxyType({})
) -> Layer | None:
    """Find one of the layers that a model or a run has, None where it has no such layer.

    Args:
        asked: A label or a name of a layer, or a negative number that counts from the end.
        layers: The labels of the layers, in order.
        names: Names of layers by label, where they have others.

    >>> find_layer("-1", [0, 6, "1+6"]), find_layer("encoder.3", [3], {"3": "encoder.3"}), find_layer(5, [0, 6])
    ('1+6', 3, None)
    """
    text = str(asked).strip()
    for layer in layers:
        if text in (str(layer), names.get(str(layer))):
            return layer
    try:
        number = int(text)
    except ValueError:
        return None
    if number in layers:  # written as "+6" or "06"
        return number
    return layers[number] if -len(layers) <= number < 0 else None


def resolve_layer(
    asked: str | int, layers: Sequence[Layer], names: Mapping[str, str] = MappingProxyType({}), *, run: str
) -> Layer:
    """Find a layer as `find_layer` does, or raise the error that calls the run by its name and lists its layers.

    >>> resolve_layer("7", [0, 6], run="the first run")
    Traceback (most recent call last):
    isotrope.errors.InputError: the first run has no layer '7'; it has 0, 6.
    """
    found = find_layer(asked, layers, names)
    if found is None:
        raise InputError(f"{run} has no layer {str(asked)!r}; it has {', '.join(map(str, layers))}.")
    return found


def resolve_layers(spec: str | int | Sequence[int | str], names: Sequence[str]) -> list[Choice]:
    """Find the layers that a specification asks for, among the hidden states of a model.

    Args:
        spec: "all"; numbers, negative from the end; names; numbers joined by + for the average of layers, with ..
            between the first and the last of several; a number or `L` followed by `.before_norm` for the last state
            before the model's final norm.
        names: Names of all hidden states, see `state_names`.

    >>> [c.label for c in resolve_layers("0,-1,1+-1", state_names(7))]
    [0, 6, '1+6']
    >>> resolve_layers("7", state_names(7))
    Traceback (most recent call last):
    isotrope.errors.InputError: there is no layer '7': the model has layers 0 to 6 (or -7 to -1).
    """
    if spec == "all":
        return [Choice(i, (i,)) for i in range(len(names))]
    items = spec.split(",") if isinstance(spec, str) else [spec] if isinstance(spec, int) else list(spec)
    chosen: dict[Layer, Choice] = {}
    for item in (str(i).strip() for i in items):
        choice = _one(item, names)
        chosen[choice.label] = choice
    if not chosen:
        raise InputError("no layer was named; say all, or numbers such as 0,6,-1.")
    return list(chosen.values())


def _one(item: str, names: Sequence[str]) -> Choice:
    if item.endswith(BEFORE_NORM):
        stem = item.removesuffix(BEFORE_NORM)
        last = len(names) - 1
        if stem != "L" and _number(stem, names) != last:
            raise InputError(f"only the last layer has a state before the final norm: say {last}{BEFORE_NORM}.")
        return Choice(f"{last}{BEFORE_NORM}", (last,), before_norm=True)
    parts = [_range(part, names) for part in item.split("+")]
    states = tuple(state for part in parts for state in part)
    if len(states) == 1:
        return Choice(states[0], states)
    return Choice("+".join(f"{p[0]}{TO}{p[-1]}" if len(p) > 1 else str(p[0]) for p in parts), states)


def _range(text: str, names: Sequence[str]) -> range:
    """The states from the first to the last of `4..-1`, or the only one of `4`."""
    first, between, last = text.partition(TO)
    low = _number(first, names)
    high = _number(last, names) if between else low
    if high < low:
        raise InputError(f"the layers {text!r} run from {low} to {high}; name the lower one first.")
    return range(low, high + 1)


def _number(text: str, names: Sequence[str]) -> int:
    text = text.strip()
    count = len(names)
    if text in names:
        return names.index(text)
    number = find_layer(text, range(count))
    if not isinstance(number, int):
        also = "" if names[0] == "0" else f", by name {names[0]} to {names[-1]}"
        raise InputError(
            f"there is no layer {text!r}: the model has layers 0 to {count - 1} (or {-count} to -1){also}."
        )
    return number
