"""Two-sample tests of the layers of two runs, on the sampled rows that their folders hold."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from isotrope.compute.arrays import mix_ids
from isotrope.errors import InputError, StoreError
from isotrope.layers import Layer
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics
from isotrope.two_sample import RowSet, SetComparison, ShiftTest, compare_sets
from isotrope.two_sample.shift_tests import MOST_ROWS, SAME_ITEMS, TESTS
from isotrope.two_sample.words import describe_design, describe_test

_NOT_SAME = "the runs do not hold the same items"


@dataclass(frozen=True)
class LayerTests:
    """The tests of one layer of two runs.

    Args:
        layer: Of the first run.
        other_layer: Of the second.
        found: The result; None where there is none.
        reason: Why there is none.
    """

    layer: Layer
    other_layer: Layer
    found: SetComparison | None = None
    reason: str | None = None

    def list_tests(self) -> list[ShiftTest]:
        """List the results; those that are not there have no value."""
        there = {test.test: test for test in self.found.tests} if self.found else {}
        return [there.get(name, ShiftTest(name, *[math.nan] * 3)) for name in (*TESTS, *SAME_ITEMS)]

    def explain(self, test: ShiftTest) -> str | None:
        """Explain why a result has no value; None where it has one."""
        return (self.reason or _NOT_SAME) if math.isnan(test.effect) else None

    def describe(self) -> list[dict[str, Any]]:
        """Describe the results as plain data, one record for each."""
        rows = self.found.rows if self.found else (None, None)
        where = {"layer": self.layer, "other_layer": self.other_layer}
        how = {"design": self.found and self.found.design, "n_before": rows[0], "n_after": rows[1]}
        records = []
        for test in self.list_tests():
            reason = self.explain(test)
            more = {"significant": None if math.isnan(test.corrected) else test.significant, **how}
            text = None if reason else describe_test(test)
            records.append({**where, **asdict(test), **more, "reason": reason, "text": text})
        return records

    def list_sentences(self) -> list[str]:
        """List what was compared and what was found, as sentences."""
        if self.found is None:
            return [f"No two-sample test: {self.reason}."]
        return [describe_design(self.found), *map(describe_test, self.found.tests)]


def compute_layer_tests(
    first: Run,
    second: Run,
    pairs: Sequence[tuple[Layer, Layer]],
    *,
    seed: int = 0,
    progress: Callable[[str, float, float | None], None] = lambda what, done, total: None,
) -> list[LayerTests]:
    """Test pairs of layers; where the runs do not allow it, the result says why.

    Args:
        first: The baseline.
        second: The run that is compared with it.
        pairs: Labels of a layer of the first run and of one of the second.
        seed: Of permutations and resamples.
        progress: Called with what is going on, how much is done, and of how much.
    """
    made = []
    for number, (one, other) in enumerate(pairs):
        progress("testing", number, len(pairs))
        try:
            found = compare_sets(load_row_set(first, one), load_row_set(second, other), seed=seed)
            made.append(LayerTests(one, other, found))
        except (InputError, StoreError) as error:
            made.append(LayerTests(one, other, reason=str(error).rstrip(".")))
    return made


def load_row_set(run: Run, layer: Layer) -> RowSet:
    """Load the sampled rows of a layer, with ids that the same row of the same text has in another run too."""
    saved = SavedStatistics.of_run(run)
    if layer not in saved.layers:
        raise InputError(f"the run {str(run.folder)!r} holds no statistics of layer {layer}; scan it again.")
    sample = saved.load_sample(layer, MOST_ROWS).sample
    if sample is None or not sample.n:
        raise InputError(f"the run {str(run.folder)!r} holds no sampled rows; scan it again without --sample 0.")
    known = sample.rows
    ids = known.sequence
    if known.position is not None:
        with np.errstate(over="ignore"):
            ids = mix_ids(mix_ids(ids, 0) + known.position.astype(np.uint64), 1)
    return RowSet(sample.values.astype(np.float64), ids, known.sequence)
