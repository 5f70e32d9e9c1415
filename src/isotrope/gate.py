"""Gates: a small grammar for conditions on readings, such as `layer[-1].mean_cosine > 0.5`."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}

_GRAMMAR = re.compile(
    r"""\s*(?:(?P<scope>any|all|layer\[\s*(?P<layer>[^\]\s]{1,40})\s*\])\s*\.\s*)?
        (?P<measure>[a-z][a-z0-9_]{0,80})
        (?:\.(?P<end>low|high))?
        \s*(?P<compare>>=|<=|==|!=|>|<)\s*
        (?P<number>[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,3})?)\s*""",
    re.VERBOSE,
)

_EXAMPLES = "mean_cosine > 0.5, layer[-1].mean_cosine > 0.5, any.mean_cosine.low > 0.9, all.isoscore < 0.1"


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition under which a run fails: scope ("any", "all" or a layer), measure, which end, comparison, number."""

    text: str
    scope: str
    measure: str
    end: str
    compare: str
    number: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a gate's condition holds (the run fails), and the sentence that says so."""

    failed: bool
    text: str


def parse(text: str) -> Gate:
    """The gate that an expression means; without a layer it means the last one.

    >>> parse("any.mean_cosine.low > 0.9").scope
    'any'
    >>> parse("mean_cosine above 0.5")
    Traceback (most recent call last):
    isotrope.errors.InputError: the gate 'mean_cosine above 0.5' cannot be read; write it like one of: ...
    """
    found = _GRAMMAR.fullmatch(text) if len(text) <= 400 else None
    if found is None:
        raise InputError(f"the gate {text[:200]!r} cannot be read; write it like one of: {_EXAMPLES}.")
    scope = found["layer"] if found["layer"] else found["scope"] or "-1"
    return Gate(
        text.strip(), scope, found["measure"], found["end"] or "value", found["compare"], float(found["number"])
    )


def check(gate: Gate, findings: Findings) -> Outcome:
    """Whether the run fails the gate; a reading that is undefined decides nothing and is refused."""
    readings = _readings(gate, findings)
    values = []
    for r in readings:
        value = float(getattr(r, gate.end))
        if math.isnan(value):
            why = r.reason or "it has no interval, for which there are too few sequences"
            raise InputError(f"the gate {gate.text!r} cannot be decided: {_name(r, gate)} is undefined ({why}).")
        values.append(value)
    compare = _COMPARE[gate.compare]
    hits = [(r, v) for r, v in zip(readings, values, strict=True) if compare(v, gate.number)]
    failed = len(hits) == len(readings) if gate.scope == "all" else bool(hits)
    shown = hits or list(zip(readings, values, strict=True))
    numbers = ", ".join(f"{_name(r, gate)} = {v:.4g}" for r, v in shown[:5]) + (" ..." if len(shown) > 5 else "")
    return Outcome(failed, f"gate {gate.text!r} {'fails' if failed else 'passes'}: {numbers}.")


def _readings(gate: Gate, findings: Findings) -> list[Reading]:
    if gate.scope in ("any", "all"):
        found = [
            r
            for r in findings.readings
            if r.measure == gate.measure and r.group is None and r.variant == "definition" and r.layer is not None
        ]
        if not found:
            raise InputError(f"the gate {gate.text!r} cannot be decided: the run has no reading of {gate.measure!r}.")
        return found
    across = [r for r in findings.readings if r.measure == gate.measure and r.layer is None]
    if across:
        return across
    try:
        layer: int | str = int(gate.scope)
    except ValueError:
        layer = gate.scope
    return [findings.get(gate.measure, layer)]


def _name(reading: Reading, gate: Gate) -> str:
    end = "" if gate.end == "value" else f".{gate.end}"
    return f"{reading.measure}{end}" if reading.layer is None else f"layer[{reading.layer}].{reading.measure}{end}"
