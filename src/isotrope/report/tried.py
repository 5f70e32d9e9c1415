"""What repairs at a few settings do to the measures that need rows, and that no page can work out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from isotrope.effects import before_after
from isotrope.errors import InputError
from isotrope.repairs import AllButTheTop, Centering, SoftDecay, Whitening
from isotrope.repairs.linear import LinearRepair
from isotrope.repairs.softdecay import ALPHAS
from isotrope.statistics import Summary

#: What needs each row's new length: taken on a sample of the rows and their images.
MEASURES = ("mean_cosine", "rbf_distance", "sequence_uniformity")

#: Rows of the sample that are repaired.
ROWS = 1_000

STRENGTHS = (0.25, 0.5, 0.75, 1.0)


def settings() -> list[LinearRepair]:
    """The repairs that are tried."""
    return [
        Centering(),
        *(SoftDecay(alpha) for alpha in ALPHAS if alpha > -1),  # the form "shifted" ends there
        *(Whitening(strength=strength) for strength in STRENGTHS),
        AllButTheTop(),
    ]


def tried(summary: Summary, seed: int, done: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """A line for each setting and measure of a layer: before, after, on how many rows; why not, where there is none.

    done: called after each setting.
    """
    assert summary.sample is not None
    known = summary.sample.rows
    measures = [m for m in MEASURES if m != "sequence_uniformity" or known.position is not None]
    for repair in settings():
        line: dict[str, Any] = {"repair": repair.name, "alpha": None, "form": None, "strength": None}
        line |= {name: value for name, value in repair.get_params().items() if name in line}
        try:
            repair.fit_moments(summary.moments)
            changes = before_after(repair, summary, measures, sample=ROWS, seed=seed, cutoffs=()).changes
        except InputError as error:
            yield {**line, "measure": None, "before": None, "after": None, "n": 0, "reason": str(error)}
        else:
            for c in changes:
                if c.variant == "definition":
                    numbers = {"before": c.before, "after": c.after, "n": c.n, "reason": c.reason}
                    yield {**line, "measure": c.measure, **numbers}
        done()
