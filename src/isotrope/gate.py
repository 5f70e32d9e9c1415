"""Gates: a small grammar for conditions on readings, such as `layer[-1].mean_cosine > 0.5`.

In a comparison of two runs, `now.`, `baseline.` and `change.` before a measure say which value is meant, and tests have
`.effect`, `.p` and `.corrected`: `change.mean_cosine > 0.05`, `mean_shift.p < 0.01`.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.formats.names import is_vectors
from isotrope.layers import find_layer

#: What each sign compares, and in words what holds where it is true.
_COMPARE: dict[str, tuple[Callable[[float, float], bool], str]] = {
    ">": (operator.gt, "above"),
    ">=": (operator.ge, "at or above"),
    "<": (operator.lt, "below"),
    "<=": (operator.le, "at or below"),
    "==": (operator.eq, "equal to"),
    "!=": (operator.ne, "different from"),
}

_GRAMMAR = re.compile(
    r"""\s*(?:(?P<scope>any|all|layer\[\s*(?!any\b|all\b)(?P<layer>[^\]\s]{1,40})\s*\])\s*\.\s*)?
        (?:(?P<side>now|baseline|change)\s*\.\s*)?
        (?P<measure>[a-z][a-z0-9_]{0,80}(?:\.(?:effect|p|corrected))?)
        (?:\.(?P<end>low|high))?
        \s*(?P<compare>>=|<=|==|!=|>|<)\s*
        (?P<number>[+-]?(?:\d{1,30}(?:\.\d{0,30})?|\.\d{1,30})(?:[eE][+-]?\d{1,2})?)\s*""",
    re.VERBOSE,
)

_EXAMPLES = "mean_cosine > 0.5, layer[-1].mean_cosine > 0.5, any.mean_cosine.low > 0.9, all.isoscore < 0.1"

#: Readings that an outcome shows at most.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Gate:
    """A condition under which a run fails.

    Args:
        text: The expression.
        scope: "any", "all" or a layer.
        measure: The name of a measure, or of a number of a test, such as "mean_shift.p".
        end: "value", or which end of the interval: "low" or "high".
        compare: The sign of the comparison.
        number: What the value is compared with.
        side: In a comparison of two runs "now", "baseline" or "change"; otherwise empty.
    """

    text: str
    scope: str
    measure: str
    end: str
    compare: str
    number: float
    side: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Whether a gate's condition holds, so that it trips and the run fails, and the sentence that says so.

    Args:
        failed: Whether it holds.
        text: The sentence.
        undecided: Whether it could not be decided, and the sentence says why.
    """

    failed: bool
    text: str
    undecided: bool = False


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
    condition = found["end"] or "value", found["compare"], float(found["number"])
    return Gate(text.strip(), scope, found["measure"], *condition, found["side"] or "")


def check(gate: Gate, findings: Findings) -> Outcome:
    """Whether the run fails the gate; a reading that is undefined decides nothing and is refused."""
    readings = _readings(gate, findings)
    values = [_value(gate, r, findings) for r in readings]
    holds, words = _COMPARE[gate.compare]
    hits = [holds(value, gate.number) for value in values]
    failed = all(hits) if gate.scope == "all" else any(hits)
    # Where it trips, the layers that made it trip; where it passes, all that were looked at.
    shown = [
        f"{_name(r, gate, findings)} is {_digits(v, gate.number)}"
        for r, v, hit in zip(readings, values, hits, strict=True)
        if hit or not failed
    ]
    numbers = ", ".join(shown[:_SHOWN]) + (f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else "")
    if failed:
        return Outcome(True, f"gate tripped: {numbers}, {words} {gate.number:g}.")
    which = "not" if len(readings) == 1 else "not all" if gate.scope == "all" else "none"
    return Outcome(False, f"gate passed: {numbers}, {which} {words} {gate.number:g}.")


def _digits(value: float, number: float) -> str:
    """A value in four digits, in more where it would look the same as the number that it is compared with.

    >>> _digits(0.11442, 0.1), _digits(0.100001, 0.1)
    ('0.1144', '0.100001')
    """
    texts = [f"{value:.{digits}g}" for digits in (4, 8, 17)]
    return next((text for text in texts if (float(text) == number) == (value == number)), texts[-1])


def _readings(gate: Gate, findings: Findings) -> list[Reading]:
    """The readings that a gate is about; one across layers, and one of vectors, has no layer to name."""
    kind = (findings.find_name(gate.measure), None, "definition")
    found = [r for r in findings.readings if (r.measure, r.group, r.variant) == kind]
    if not found:
        raise InputError(f"the gate {gate.text!r} cannot be decided: the run has no reading of {gate.measure!r}.")
    if gate.scope not in ("any", "all") and found[0].layer is not None:
        found = [findings.get(gate.measure, _layer(gate.scope, findings.layers))]
    return [replace(r, layer=None) for r in found] if is_vectors(findings) else found


def _layer(scope: str, layers: list[int | str]) -> int | str:
    """The layer that a gate names: a number, negative from the end, or a name."""
    found = find_layer(scope, layers)
    if found is None:
        raise InputError(f"the gate names layer {scope}, but the run has layers {', '.join(map(str, layers))}.")
    return found


def decide(gate: Gate, findings: Findings) -> Outcome:
    """Check a gate; where it cannot be decided, the outcome says so."""
    try:
        return check(gate, findings)
    except InputError as error:
        return Outcome(False, str(error), undecided=True)


def check_one_run(gates: Iterable[Gate]) -> None:
    """Refuse gates that need two runs.

    >>> check_one_run([parse("change.mean_cosine > 0.1")])
    Traceback (most recent call last):
    isotrope.errors.InputError: the gate 'change.mean_cosine > 0.1' compares two runs; use it with isotrope compare.
    """
    for gate in gates:
        if gate.side or "." in gate.measure:
            raise InputError(f"the gate {gate.text!r} compares two runs; use it with isotrope compare.")


def check_layers(gates: Iterable[Gate], layers: list[int | str]) -> None:
    """Refuse a layer that a run will not have before it starts."""
    for gate in gates:
        if gate.scope not in ("any", "all"):
            _layer(gate.scope, layers)


def _value(gate: Gate, reading: Reading, findings: Findings) -> float:
    value = float(getattr(reading, gate.end))
    if math.isnan(value):
        why = reading.reason or "it has no interval: too few rows or sequences, or no sample"
        name = _name(reading, gate, findings)
        raise InputError(f"the gate {gate.text!r} cannot be decided: {name} is undefined ({why}).")
    return value


def _name(reading: Reading, gate: Gate, findings: Findings) -> str:
    """A reading as a gate names it, with its layer unless that is the only one that vectors have."""
    end = "" if gate.end == "value" else f".{gate.end}"
    layer = "" if reading.layer is None or findings.layers == [0] else f"layer[{reading.layer}]."
    side = f"{gate.side}." if gate.side else ""
    return f"{layer}{side}{reading.measure}{end}"
