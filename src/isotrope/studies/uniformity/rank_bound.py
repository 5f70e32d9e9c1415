"""The theorem of Yan et al. 2022: no token is further from the top k directions of its sequence than σ_{k+1}."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrope.compute.threads import limit_threads
from isotrope.runs.saved_statistics import saved_summary
from isotrope.statistics import Sample
from isotrope.studies.figures import make_layer_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_exact

#: Directions kept, as shares of a sequence's rows, besides one.
_SHARES = (0.25, 0.5)

#: Sequences of a layer that are looked at, at most.
_SEQUENCES = 200

#: Rounding of a bound that is met exactly.
_EXACT = 1 + 1e-6


def measure_bound(options: StudyOptions, model: str, measures: str) -> Results:
    """The theorem's bound, with its measured slack, by layer; measures: those of the scan of the layers."""
    findings = options.scan(model, options.source(model), measures)
    rows = []
    for layer in findings.layers:
        sample = saved_summary(options.run_folder(model), layer).sample
        assert sample is not None
        rows += [{"layer": layer} | row for row in compute_rank_bound(sample)]
    frame = pd.DataFrame(rows)
    title = f"Furthest token from the top k directions of its sequence, and σ of the next, by layer, {model}"
    caption = (
        "Share of the theorem's bound that is slack, by layer, for one, a quarter and half of the directions kept."
    )
    figure = make_layer_figure("bound", caption, frame, "directions", "slack", "slack of the bound")
    worst, low, high = frame["tightest"].max(), frame["slack"].min(), frame["slack"].max()
    text = (
        f"the furthest token of {model} reaches {worst:.3f} of the theorem's bound; on average over sequences "
        f"{low:.0%} to {high:.0%} of the bound are slack."
    )
    claim = Claim(judge_exact(worst <= _EXACT), text, "Theorem", float(worst), 1.0, "a theorem", model)
    return Results([Table("bound", title, frame)], [claim], [figure])


def iterate_sequences(sample: Sample, most: int = _SEQUENCES) -> Iterator[NDArray[np.float64]]:
    """The rows of each sampled sequence, (T, d), for at most so many sequences."""
    values = np.asarray(sample.values, dtype=np.float64)
    ends = np.append(sample.rows.starts(), len(values))
    for begin, end in itertools.islice(itertools.pairwise(ends), most):
        yield values[begin:end]


def compute_rank_bound(sample: Sample, most: int = _SEQUENCES) -> list[dict[str, Any]]:
    """Compute the largest distance of tokens from one, a quarter and half of the directions, and the bound.

    Args:
        sample: sampled rows of one layer, in whole sequences.
        most: the most sequences to use.

    Returns:
        A record for each number of directions k: `bound`, the mean over sequences of σ_{k+1}; `distance`, the mean of
        the furthest token's distance; `tightest`, the largest share of the bound that a token reaches, by the theorem
        at most 1; and `slack`, the mean of 1 − distance/bound.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    with limit_threads():  # threads within one small matrix wait for each other
        for rows in iterate_sequences(sample, most):
            if min(rows.shape) < 3:
                continue
            left, singular, _ = np.linalg.svd(rows, full_matrices=False)
            parts = (left * singular) ** 2
            kept = {"1": 1} | {f"{share:g} of the rows": max(1, int(share * len(rows))) for share in _SHARES}
            for name, k in kept.items():
                if k < len(singular) and singular[k] > 1e-9 * singular[0]:
                    found.setdefault(name, []).append(
                        (float(np.sqrt(parts[:, k:].sum(axis=1).max())), float(singular[k]))
                    )
    records = []
    for name, pairs in found.items():
        distance, bound = np.array(pairs).T
        share = distance / bound
        records.append(
            {
                "directions": name,
                "sequences": len(pairs),
                "bound": float(bound.mean()),
                "distance": float(distance.mean()),
                "tightest": float(share.max()),
                "slack": float(1 - share.mean()),
            }
        )
    return records
