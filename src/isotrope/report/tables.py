"""The tables that a report needs beyond the findings, computed once from a run's statistics and kept in its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows
from isotrope.compute.threads import limit_threads
from isotrope.findings import Findings
from isotrope.layers import Layer
from isotrope.readings.cost import measure_slowness
from isotrope.report.headline import list_headlines
from isotrope.report.projections import MOST_PLACED, Directions, project_by_tsne, project_on_planes
from isotrope.report.repair_trials import ROWS, list_repairs, try_repairs
from isotrope.runs.retention import label_layer
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics, limit_sample
from isotrope.sources.batch import Rows
from isotrope.statistics import Moments, Sample, Summary

if TYPE_CHECKING:
    import pandas as pd

#: Called with what is going on, how much is done, and of how much.
Progress = Callable[[str, float, float | None], None]

#: Rows of the sample that are drawn in a selected layer, and in the others.
FULL, THIN = 20_000, 1_500

#: Beyond this width the directions of layers that were not selected take too long.
_WIDE = 1_536

#: Seconds of one core for a layer of 384 dimensions, selected and not, where `measure_slowness` gives 1.
_SECONDS_FULL, _SECONDS_THIN, _SECONDS_WIDTH = 0.9, 0.05, 384

#: Matrices of the width, and copies of the repaired rows, that are held at once (measured for d = 384 to 1,024).
_MATRICES, _COPIES = 10.5, 30

#: The tables that `add_tables` makes; what a run has no data for is missing.
TABLES = ("sample", "maps", "directions", "coordinates", "sequences", "tried")


def select_layers(findings: Findings) -> list[Layer]:
    """Select the layers worth a full map: the first, the one of the highest mean cosine, and the last."""
    layers, first = findings.layers, list_headlines()[0]
    values = {
        r.layer: r.value for r in findings.readings if (r.measure, r.group, r.variant) == (first, None, "definition")
    }
    worst = max((x for x in layers if values.get(x, np.nan) == values.get(x)), key=lambda x: values[x], default=None)
    return [x for x in layers if x in (layers[0], worst, layers[-1])]


def estimate_seconds(layers: int, d: int) -> float:
    """About how long `add_tables` takes: its largest parts grow with the square of the width.

    >>> 5 < estimate_seconds(30, 1_536) / estimate_seconds(3, 768) < 15
    True
    """
    full = min(layers, 3)
    thin = layers - full if d <= _WIDE else 0
    return measure_slowness() * (full * _SECONDS_FULL + thin * _SECONDS_THIN) * (d / _SECONDS_WIDTH) ** 2


def estimate_memory(n: int, d: int) -> int:
    """About how many bytes `add_tables` takes at its peak for a layer of n sampled rows, beside these rows.

    >>> estimate_memory(300, 4_096) > 10 * estimate_memory(300, 512)
    True
    """
    return int(8 * d * (_MATRICES * d + _COPIES * min(n, ROWS)))


def has_tables(findings: Findings) -> bool:
    """Whether a run has the tables that `add_tables` makes."""
    return "coordinates" in findings.tables  # the last to be written


def add_tables(run: Run, findings: Findings, progress: Progress, statistics: SavedStatistics | None = None) -> None:
    """Compute the tables that are not there yet, write them into the run folder and add them to the findings.

    Args:
        run: The run folder.
        findings: What the run found.
        progress: Called with what is going on, how much is done, and of how much.
        statistics: Those of the run where they are still in memory; None to read them from the folder.
    """
    if has_tables(findings):
        return
    statistics = SavedStatistics.of_run(run) if statistics is None else statistics
    full = select_layers(findings)
    seed = int(findings.provenance.get("settings", {}).get("seed", 0))
    whole = len(findings.layers) + len(full) * len(list_repairs())
    state = {"done": 0}

    def count_step() -> None:
        state["done"] += 1
        progress("drawing maps", state["done"], whole)

    progress("drawing maps", 0, whole)
    made: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    with limit_threads():
        for layer in findings.layers:
            summary = statistics.load_sample(layer, FULL if layer in full else THIN)
            for name, part in _compute_layer(summary, seed, layer in full, count_step).items():
                made[name].append(label_layer(layer, part))
            count_step()
    write_tables(run, findings, {name: parts for name, parts in made.items() if parts})


def write_tables(run: Run, findings: Findings, made: Mapping[str, Sequence[pd.DataFrame]]) -> None:
    """Join the parts of each table, write them into the run folder and add them to the findings."""
    import pandas as pd

    for name in sorted(made, key=lambda name: name == "coordinates"):
        table: pd.DataFrame = pd.concat(made[name], ignore_index=True)
        run.add_table(name, table)
        findings.tables[name] = table


def _compute_layer(summary: Summary, seed: int, full: bool, count_step: Callable[[], None]) -> dict[str, Any]:
    """The parts of each table that are of one layer."""
    m, sample = summary.moments, summary.sample
    made: dict[str, Any] = {"coordinates": {"coordinate": np.arange(m.d), **compute_coordinates(m)}}
    if m.n < 2 or m.constant or (m.d > _WIDE and not full):
        return made
    found = Directions.of(m)
    index = np.arange(1, len(found.singular) + 1)
    made["directions"] = {"index": index, "singular_value": found.singular, "mean": found.along}
    if sample is None or sample.n == 0:
        return made
    planes = project_on_planes(found, sample.values)
    made["maps"] = _compute_points("pca", planes)
    made["sample"] = _describe_rows(sample)
    if sample.rows.position is not None:
        made["sequences"] = compute_uniformities(*_drop_last_sequence(sample))
    if full:
        lines = list(try_repairs(limit_sample(summary, ROWS), seed, count_step))
        made["tried"] = {name: [line[name] for line in lines] for name in lines[0]}
    return made


def _compute_points(kind: str, ways: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the table of maps: kind of map, what was done to the rows before, row of the sample, x and y."""
    points = np.concatenate([*ways.values()])
    return {
        "map": [kind] * len(points),
        "repair": [way for way, at in ways.items() for _ in range(len(at))],
        "row": np.concatenate([np.arange(len(at)) for at in ways.values()]),
        "x": points[:, 0],
        "y": points[:, 1],
    }


def _describe_rows(sample: Sample) -> dict[str, Any]:
    """What is known of the sampled rows."""
    rows = sample.rows
    columns = {"sequence": rows.sequence, "token": rows.token, "position": rows.position}
    return {"row": np.arange(len(rows))} | {name: column for name, column in columns.items() if column is not None}


def _drop_last_sequence(sample: Sample) -> tuple[Any, Rows]:
    """The sampled rows without a last sequence that may have been cut."""
    rows = sample.rows
    starts = rows.starts()
    end = int(starts[-1]) if len(starts) > 1 else len(rows)
    return sample.values[:end], rows.take(np.arange(end))


def has_tsne(findings: Findings) -> bool:
    """Whether a run has maps by t-SNE, or no rows to make them of."""
    maps = findings.tables.get("maps")
    return maps is None or "tried" not in findings.tables or bool((maps["map"] == "tsne").any())


def add_tsne(run: Run, findings: Findings, progress: Progress) -> None:
    """Add the maps by t-SNE to those of a run whose other maps are there."""
    if has_tsne(findings):
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
            made = project_by_tsne(Directions.of(summary.moments), summary.sample.values, seed=seed)
            parts.append(label_layer(layer, _compute_points("tsne", made)))
    write_tables(run, findings, {"maps": parts})


def compute_coordinates(m: Moments) -> dict[str, NDArray[np.float64]]:
    """Mean, standard deviation, share of the squared norm and share of the mean cosine of each coordinate, (d,) each.

    The shares of the squared norm are E x_j² / E‖x‖², those of the mean cosine (mean u_j)² / ‖mean u‖², u = x/‖x‖; both
    add up to 1. Papers: Timkey and van Schijndel 2021; Kovaleva et al. 2021.

    >>> from isotrope.statistics import prepare_rows
    >>> rows = np.array([[3.0, 4.0], [3.0, -4.0]])
    >>> compute_coordinates(Moments.of(prepare_rows(rows)))["norm_share"].tolist()
    [0.36, 0.64]
    """
    variance = np.maximum(np.diagonal(m.scatter), 0.0) / max(m.n, 1)
    squares = m.mean**2 + variance
    common = m.unit_mean**2
    return {
        "mean": m.mean,
        "deviation": np.sqrt(variance),
        "norm_share": squares / (squares.sum() or 1.0),
        "cosine_share": common / (common.sum() or 1.0),
    }


def compute_uniformities(values: NDArray[Any], known: Rows) -> dict[str, NDArray[Any]]:
    """Id, length T and mean cosine over distinct pairs of tokens of each sequence of two tokens or more, (k,) each.

    values: (n, d), the rows, sequences one after another. The mean over sequences of the last is the measure
    sequence_uniformity. Paper: Yan et al. 2022, Fig. 2.

    >>> known = Rows(np.array([7, 7, 9], dtype=np.uint64), position=np.array([0, 1, 0]))
    >>> compute_uniformities(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), known)["uniformity"].tolist()
    [0.0]
    """
    starts = known.starts()
    lengths = np.diff(np.append(starts, len(known)))
    if len(starts) == 0:
        return {"sequence": known.sequence, "length": lengths, "uniformity": np.empty(0)}
    wide = values.astype(np.float64, copy=False)
    units = to_unit_rows(wide)
    sums = np.add.reduceat(units, starts)
    squares = np.einsum("ij,ij->i", sums, sums)
    keep = lengths >= 2
    t = lengths[keep]
    found = (squares[keep] - t) / (t * (t - 1.0))
    return {"sequence": known.sequence[starts][keep], "length": t, "uniformity": found}
