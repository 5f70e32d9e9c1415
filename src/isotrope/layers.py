"""Which layers are meant by `all`, `0,6,-1`, `encoder.3`, `1+-1`, `4..-1` or `30.before_norm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


def choose(spec: str | int | Sequence[int | str], names: Sequence[str]) -> list[Choice]:
    """The layers that a specification asks for, among the states of a model.

    spec: "all"; numbers, negative from the end; names; numbers joined by + for the average of layers, with
    .. between the first and the last of several; a number or `L` followed by `.before_norm` for the last state before
    the model's final norm.

    >>> [c.label for c in choose("0,-1,1+-1", state_names(7))]
    [0, 6, '1+6']
    >>> choose("7", state_names(7))
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
    try:
        number = int(text)
    except ValueError:
        number = count
    if not -count <= number < count:
        also = "" if names[0] == "0" else f", by name {names[0]} to {names[-1]}"
        raise InputError(
            f"there is no layer {text!r}: the model has layers 0 to {count - 1} (or {-count} to -1){also}."
        )
    return number % count
