"""The maps that t-SNE makes of a run's chosen layers, worked out once and kept among its tables."""

from __future__ import annotations

from isotrope.findings import Findings
from isotrope.report.directions import Directions
from isotrope.report.precompute import Progress, add, labelled, points_table
from isotrope.report.projections import MOST_PLACED, placed
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics


def has_places(findings: Findings) -> bool:
    """Whether a run has maps by t-SNE, or no rows to make them of."""
    maps = findings.tables.get("maps")
    return maps is None or "tried" not in findings.tables or bool((maps["map"] == "tsne").any())


def place(run: Run, findings: Findings, progress: Progress) -> None:
    """Add the maps by t-SNE to those of a run whose other maps are there."""
    if has_places(findings):
        return
    maps = findings.tables["maps"]
    full = [layer for layer in findings.layers if str(layer) in set(findings.tables["tried"]["layer"])]
    statistics = SavedStatistics.of_run(run)
    seed = int(findings.provenance.get("settings", {}).get("seed", 0))
    parts = [maps]
    for done, layer in enumerate(full):
        progress("placing points by t-SNE", done, len(full))
        summary = statistics.load_sample(layer, MOST_PLACED)
        if summary.sample is not None and summary.sample.n > 10:
            made = placed(Directions.of(summary.moments), summary.sample.values, seed=seed)
            parts.append(labelled(layer, points_table("tsne", made)))
    add(run, findings, {"maps": parts})
