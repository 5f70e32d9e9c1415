"""What repairs at a few settings do to the measures that need rows, and that no page can work out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isotrope.errors import InputError
from isotrope.repairs import AllButTheTop, Centering, SoftDecay, Whitening, find_risks
from isotrope.repairs.effects.before_after import before_after
from isotrope.repairs.linear import LinearRepair
from isotrope.repairs.softdecay import ALPHAS
from isotrope.statistics import Summary

#: What needs each row's new length: taken on a sample of the rows and their images.
MEASURES = ("mean_cosine", "rbf_distance", "sequence_uniformity")

#: Rows of the sample that are repaired.
ROWS = 1_000

STRENGTHS = (0.25, 0.5, 0.75, 1.0)


def list_repairs() -> list[LinearRepair]:
    """The repairs that are tried."""
    return [
        Centering(),
        *(SoftDecay(alpha) for alpha in ALPHAS if alpha > -1),  # the form "shifted" ends there
        *(Whitening(strength=strength) for strength in STRENGTHS),
        AllButTheTop(),
    ]


def _describe_safety(repair: LinearRepair) -> dict[str, Any]:
    """The shares of nearest rows that rounded queries keep, and what is risky, in words."""
    found = repair.query_rounding_
    kept = {} if found is None else {"kept_float16": found.float16, "kept_int8": found.int8}
    return {**kept, "risks": " ".join(find_risks(repair)) or None}


def try_repairs(summary: Summary, seed: int, done: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """A line for each setting and measure of a layer: before, after, on how many rows; why not, where there is none.

    Each line also says how the nearest rows survive rounded queries, and what is risky in the repair.

    done: called after each setting.
    """
    assert summary.sample is not None
    known = summary.sample.rows
    measures = [m for m in MEASURES if m != "sequence_uniformity" or known.position is not None]
    for repair in list_repairs():
        line: dict[str, Any] = {"repair": repair.name, "alpha": None, "form": None, "strength": None}
        line |= {name: value for name, value in repair.get_params().items() if name in line}
        line |= {"kept_float16": None, "kept_int8": None, "risks": None}
        try:
            repair.fit(summary)
            line |= _describe_safety(repair)
            changes = before_after(repair, summary, measures, sample=ROWS, seed=seed, cutoffs=()).changes
        except InputError as error:
            yield {**line, "measure": None, "before": None, "after": None, "n": 0, "reason": str(error)}
        else:
            for c in changes:
                if c.variant == "definition":
                    numbers = {"before": c.before, "after": c.after, "n": c.n, "reason": c.reason}
                    yield {**line, "measure": c.measure, **numbers}
        done()
