"""What a report needs beyond the findings, worked out once from a run's statistics and kept among its tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.compute.threads import limit_threads
from isotrope.findings import Findings
from isotrope.layers import Layer
from isotrope.readings.cost import slowness
from isotrope.report.coordinates import coordinates
from isotrope.report.directions import Directions
from isotrope.report.projections import planes
from isotrope.report.repair_trials import ROWS, settings, tried
from isotrope.report.sequences import uniformities
from isotrope.runs.run import Run
from isotrope.runs.saved_statistics import SavedStatistics, limit_sample
from isotrope.sources.batch import Rows
from isotrope.statistics import Sample, Summary

if TYPE_CHECKING:
    import pandas as pd

#: Called with what is going on, how much is done, and of how much.
Progress = Callable[[str, float, float | None], None]

#: Rows of the sample that are drawn in a chosen layer, and in the others.
FULL, THIN = 20_000, 1_500

#: Beyond this width the directions of layers that were not chosen take too long.
_WIDE = 1_536

#: Seconds of one core for a layer of 384 dimensions, chosen and not, where a product is as quick as `slowness` says.
_SECONDS_FULL, _SECONDS_THIN, _SECONDS_WIDTH = 0.9, 0.05, 384

#: Matrices of the width, and copies of the repaired rows, that are held at once (measured for d = 384 to 1,024).
_MATRICES, _COPIES = 10.5, 30

#: The tables that `prepare` makes; what a run has no data for is missing.
TABLES = ("sample", "maps", "directions", "coordinates", "sequences", "tried")


def chosen(findings: Findings) -> list[Layer]:
    """The layers worth a full map: the first, the one of the highest mean cosine, and the last."""
    layers = findings.layers
    cosines = {r.layer: r.value for r in findings.readings if r.measure == "mean_cosine" and r.group is None}
    worst = max((x for x in layers if cosines.get(x, np.nan) == cosines.get(x)), key=lambda x: cosines[x], default=None)
    return [x for x in layers if x in (layers[0], worst, layers[-1])]


def seconds(layers: int, d: int) -> float:
    """About how long `prepare` takes: its largest parts grow with the square of the width.

    >>> 5 < seconds(30, 1_536) / seconds(3, 768) < 15
    True
    """
    full = min(layers, 3)
    thin = layers - full if d <= _WIDE else 0
    return slowness() * (full * _SECONDS_FULL + thin * _SECONDS_THIN) * (d / _SECONDS_WIDTH) ** 2


def memory(n: int, d: int) -> int:
    """About how many bytes `prepare` takes at its peak for a layer of n sampled rows, beside these rows.

    >>> memory(300, 4_096) > 10 * memory(300, 512)
    True
    """
    return int(8 * d * (_MATRICES * d + _COPIES * min(n, ROWS)))


def prepared(findings: Findings) -> bool:
    """Whether a run has the tables that `prepare` makes."""
    return "coordinates" in findings.tables  # the last to be written


def prepare(run: Run, findings: Findings, progress: Progress, statistics: SavedStatistics | None = None) -> None:
    """Compute the tables that are not there yet, write them into the run folder and add them to the findings.

    Args:
        run: The run folder.
        findings: What the run found.
        progress: Called with what is going on, how much is done, and of how much.
        statistics: Those of the run where they are still in memory; None to read them from the folder.
    """
    if prepared(findings):
        return
    statistics = SavedStatistics.of_run(run) if statistics is None else statistics
    full = chosen(findings)
    seed = int(findings.provenance.get("settings", {}).get("seed", 0))
    whole = len(findings.layers) + len(full) * len(settings())
    state = {"done": 0}

    def tell() -> None:
        state["done"] += 1
        progress("drawing maps", state["done"], whole)

    progress("drawing maps", 0, whole)
    made: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    with limit_threads():
        for layer in findings.layers:
            summary = statistics.load_sample(layer, FULL if layer in full else THIN)
            for name, part in _of_layer(summary, seed, layer in full, tell).items():
                made[name].append(labelled(layer, part))
            tell()
    add(run, findings, {name: parts for name, parts in made.items() if parts})


def add(run: Run, findings: Findings, made: Mapping[str, Sequence[pd.DataFrame]]) -> None:
    """Join the parts of each table, write them into the run folder and add them to the findings."""
    import pandas as pd

    for name in sorted(made, key=lambda name: name == "coordinates"):
        table: pd.DataFrame = pd.concat(made[name], ignore_index=True)
        run.add_table(name, table)
        findings.tables[name] = table


def _of_layer(summary: Summary, seed: int, full: bool, tell: Callable[[], None]) -> dict[str, Any]:
    """The parts of each table that are of one layer."""
    m, sample = summary.moments, summary.sample
    made: dict[str, Any] = {"coordinates": {"coordinate": np.arange(m.d), **coordinates(m)}}
    if m.n < 2 or m.constant or (m.d > _WIDE and not full):
        return made
    found = Directions.of(m)
    index = np.arange(1, len(found.singular) + 1)
    made["directions"] = {"index": index, "singular_value": found.singular, "mean": found.along}
    if sample is None or sample.n == 0:
        return made
    drawn = planes(found, sample.values, repaired=True)
    made["maps"] = points_table("pca", drawn)
    made["sample"] = _known(sample)
    if sample.rows.position is not None:
        made["sequences"] = uniformities(*_whole(sample))
    if full:
        lines = list(tried(limit_sample(summary, ROWS), seed, tell))
        made["tried"] = {name: [line[name] for line in lines] for name in lines[0]}
    return made


def points_table(kind: str, ways: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of the table of maps: kind of map, what was done to the rows before, row of the sample, x and y."""
    return _stacked([_points(kind, way, at) for way, at in ways.items()])


def _points(kind: str, way: str, at: Any) -> dict[str, Any]:
    n = len(at)
    return {"map": [kind] * n, "repair": [way] * n, "row": np.arange(n), "x": at[:, 0], "y": at[:, 1]}


def _stacked(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _known(sample: Sample) -> dict[str, Any]:
    """What is known of the sampled rows."""
    rows = sample.rows
    columns = {"sequence": rows.sequence, "token": rows.token, "position": rows.position}
    return {"row": np.arange(len(rows))} | {name: column for name, column in columns.items() if column is not None}


def _whole(sample: Sample) -> tuple[Any, Rows]:
    """The sampled rows without a last sequence that may have been cut."""
    rows = sample.rows
    starts = rows.starts()
    end = int(starts[-1]) if len(starts) > 1 else len(rows)
    return sample.values[:end], rows.take(np.arange(end))


def labelled(layer: Layer, columns: Mapping[str, Any]) -> pd.DataFrame:
    import pandas as pd

    frame: pd.DataFrame = pd.DataFrame({"layer": str(layer), **columns})
    return frame
