"""Gates on a comparison of two runs: on either run, on what changed between them, and on the two-sample tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from isotrope.errors import InputError
from isotrope.findings import Findings, Reading
from isotrope.gate import Gate, Outcome, decide
from isotrope.layers import Layer, find_layer
from isotrope.runs.comparison import Comparison
from isotrope.runs.layer_tests import LayerTests
from isotrope.two_sample.shift_tests import SAME_ITEMS, TESTS

_RESULTS = (*TESTS, *SAME_ITEMS)


def is_of_tests(gate: Gate) -> bool:
    """Whether a gate is on a two-sample test, and not on a measure."""
    return not gate.side and gate.measure.partition(".")[0] in _RESULTS


def list_measures(gates: Iterable[Gate]) -> list[str]:
    """List the measures that gates are on; a part that only tests have, such as `.p`, is refused.

    >>> from isotrope.gate import parse
    >>> list_measures([parse("now.hubness > 2"), parse("mean_shift.p < 0.01")])
    ['hubness']
    """
    found = []
    for gate in gates:
        name, dot, part = gate.measure.partition(".")
        if name in _RESULTS and gate.side:
            raise InputError(f"the gate {gate.text!r} names a test, which is of both runs; leave out {gate.side}.")
        if name in SAME_ITEMS and part in ("p", "corrected"):
            raise InputError(f"the gate {gate.text!r} cannot be read: {name} has no {part}; compare {name} itself.")
        if dot and name not in _RESULTS:
            raise InputError(f"the gate {gate.text!r} cannot be read: .{part} is of tests only ({', '.join(TESTS)}).")
        if name not in _RESULTS:
            found.append(name)
    return found


def select_pairs(
    gates: Iterable[Gate], pairs: Sequence[tuple[Layer, Layer]], wanted: Sequence[Layer] | None
) -> list[tuple[Layer, Layer]]:
    """Select the pairs of layers to test: those wanted, by default the last one, and those that gates name.

    Args:
        gates: Any gates.
        pairs: All pairs of layers of the two runs.
        wanted: Layers of the first run.
    """
    layers = [first for first, _ in pairs]
    chosen = set(layers[-1:] if wanted is None else wanted)
    for gate in gates:
        if is_of_tests(gate) and gate.scope in ("any", "all"):
            chosen |= set(layers if wanted is None else wanted)
        elif is_of_tests(gate) and (found := find_layer(gate.scope, layers)) is not None:
            chosen.add(found)
    return [pair for pair in pairs if pair[0] in chosen]


def decide_gates(
    gates: Sequence[Gate], runs: tuple[Findings, Findings], changes: Comparison, tests: Sequence[LayerTests]
) -> list[Outcome]:
    """Decide gates on the comparison of two runs.

    Args:
        gates: The gates; without a side, a measure is that of the second run.
        runs: What the two runs found.
        changes: All changes from the first to the second.
        tests: The two-sample tests of the layers that the gates need.
    """
    baseline, now = runs
    changed = replace(baseline, readings=_read_changes(changes))
    by_side = {"baseline": baseline, "now": now, "": now, "change": changed}
    tested = replace(baseline, readings=_read_tests(tests), layers=[first for first, _ in changes.alignment.pairs])
    return [_decide(gate, tested if is_of_tests(gate) else by_side[gate.side]) for gate in gates]


def _decide(gate: Gate, findings: Findings) -> Outcome:
    name = findings.find_name(gate.measure)
    if not any(r.measure == name for r in findings.readings):
        which = {"baseline": "the first run has", "change": "the runs do not both have"}.get(gate.side, "the run has")
        reading = f"{which} {'a' if gate.side == 'change' else 'no'} reading of {gate.measure!r}"
        advice = f"scan with --measures {gate.measure}"
        return Outcome(False, f"the gate {gate.text!r} cannot be decided: {reading}; {advice}.", undecided=True)
    return decide(gate, findings)


def _read_changes(changes: Comparison) -> list[Reading]:
    """The changes as readings; the interval is all that the intervals of both runs allow."""
    return [
        Reading(
            change.layer,
            change.measure,
            change.difference,
            *change.interval,
            variant=change.variant,
            reason="a run has no value of it" if math.isnan(change.difference) else None,
            group=change.group,
        )
        for change in changes
    ]


def _read_tests(tests: Iterable[LayerTests]) -> list[Reading]:
    """The numbers of tests as readings, by the names that gates give them."""
    found = []
    for layer in tests:
        for test in layer.list_tests():
            reason = layer.explain(test)
            effect = Reading(layer.layer, test.test, test.effect, test.low, test.high, reason=reason)
            found += [effect, replace(effect, measure=f"{test.test}.effect")]
            found += [
                Reading(layer.layer, f"{test.test}.{part}", getattr(test, part), reason=reason)
                for part in ("p", "corrected")
            ]
    return found
