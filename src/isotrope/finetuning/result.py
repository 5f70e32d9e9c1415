"""What an evaluation on GLUE found, as plain data: means and spreads over seeds, differences, JSON and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from isotrope.errors import StoreError
from isotrope.finetuning.methods import ALSO_AGAINST, BASE, METHODS, family
from isotrope.finetuning.runs import GlueRun, read_runs
from isotrope.finetuning.seeds import corrected, paired, spread
from isotrope.finetuning.tasks import TASKS
from isotrope.formats.json import format_json, to_plain

if TYPE_CHECKING:
    import pandas as pd

#: The name of the mean over tasks, each with the mean of its scores, and the task that the paper leaves out of it.
AVERAGE, _NOT_AVERAGED = "average", "stsb"

#: The score of a task with several.
_MEAN = "mean"


@dataclass(frozen=True, slots=True)
class GlueScore:
    """What one method scores on one task over seeds, in per cent.

    mean, deviation: over seeds. low, high: ends of the 95 % interval of the mean. n: seeds. values: each seed's score.
    """

    task: str
    metric: str
    method: str
    mean: float
    deviation: float
    low: float
    high: float
    n: int
    seeds: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class GlueDifference:
    """A method's score less another's over the same seeds, in points, with its 95 % interval and p-values.

    relative: the difference in per cent of the other's mean. p: paired t-test. p_permutation: exact test by changing
    sides. p_corrected: p after Holm, for all differences of the evaluation. significant: whether that is below 0.05.
    """

    task: str
    metric: str
    method: str
    against: str
    difference: float
    relative: float
    low: float
    high: float
    p: float
    p_permutation: float
    p_corrected: float
    significant: bool
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class GlueEvaluation:
    """All scores and differences of one evaluation, and the runs that they come from."""

    scores: list[GlueScore]
    differences: list[GlueDifference]
    runs: list[GlueRun] = field(repr=False)
    provenance: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Iterable[GlueRun], provenance: Mapping[str, Any] | None = None) -> GlueEvaluation:
        """The evaluation that runs make.

        Where a method with SoftDecay began with several α's, a method without α is added to them: of each seed the run
        that did best on its held-out rows.
        """
        found = list(runs)
        by = _by_metric([*found, *_chosen(found)])
        scores = [_score(*key, by_seed) for key, by_seed in by.items()]
        return cls(scores, _differences(by), found, dict(provenance or {}))

    @classmethod
    def read(cls, folder: str | Path) -> GlueEvaluation:
        """The evaluation of all runs that a folder holds, finished or not."""
        runs = read_runs(Path(folder))
        if not runs:
            raise StoreError(f"the folder {str(folder)!r} holds no runs of GLUE; train some with -o and no --show.")
        return cls.of(runs)

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """A tidy table of "scores", "differences", "runs", the path of "alphas", or "spectra" as curves."""
        import pandas as pd

        made: pd.DataFrame
        if what in ("scores", "differences"):
            kinds: dict[str, Any] = {"scores": GlueScore, "differences": GlueDifference}
            names = [f.name for f in fields(kinds[what])]
            made = pd.DataFrame([asdict(row) for row in getattr(self, what)], columns=names)
            return made
        made = pd.DataFrame(
            {"task": run.task, "method": run.method, "seed": run.seed} | row
            for run in self.runs
            for row in _TABLES[what](run)
        )
        return made

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is undefined is None."""
        return {
            "scores": [to_plain(asdict(score)) for score in self.scores],
            "differences": [to_plain(asdict(difference)) for difference in self.differences],
            "runs": [asdict(run) for run in self.runs],
            "provenance": self.provenance,
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())


def _run_row(run: GlueRun) -> Iterator[dict[str, Any]]:
    yield {**run.scores, "held_out": _best(run), "epoch": run.epoch, "steps": run.steps, "seconds": run.seconds}


def _alpha_rows(run: GlueRun) -> Iterator[dict[str, Any]]:
    return ({"step": step, "alpha": alpha} for step, alpha in run.alphas)


def _spectrum_rows(run: GlueRun) -> Iterator[dict[str, Any]]:
    for where, spectrum in run.spectra.items():
        curve = spectrum["cdf"] or []
        for i, share in enumerate(curve):
            yield {"where": where, "value": round(i / (len(curve) - 1), 6), "share": share}


_TABLES: dict[str, Callable[[GlueRun], Iterator[dict[str, Any]]]] = {
    "runs": _run_row,
    "alphas": _alpha_rows,
    "spectra": _spectrum_rows,
}

#: Scores in per cent by seed, of a task, a metric and a method.
_Found = dict[tuple[str, str, str], dict[int, float]]


def _by_metric(runs: Iterable[GlueRun]) -> _Found:
    """All scores in the order of the tables; a task with several has their mean too, and several tasks an average."""
    found: _Found = {}
    whole: dict[str, dict[int, list[float]]] = {}
    ordered = sorted(runs, key=lambda run: (_place(run.task, TASKS), _order(run.method), run.seed))
    for run in ordered:
        scores = {metric: math.nan if value is None else 100 * value for metric, value in run.scores.items()}
        mean = sum(scores.values()) / len(scores)
        for metric, value in scores.items() if len(scores) == 1 else {**scores, _MEAN: mean}.items():
            found.setdefault((run.task, metric, run.method), {})[run.seed] = value
        if run.task != _NOT_AVERAGED:
            whole.setdefault(run.method, {}).setdefault(run.seed, []).append(mean)
    lines = list(dict.fromkeys((task, metric) for task, metric, _ in found))
    by_table = dict(sorted(found.items(), key=lambda item: lines.index(item[0][:2])))
    tasks = len({run.task for run in ordered} - {_NOT_AVERAGED})
    for method in sorted(whole, key=_order) if tasks > 1 else ():
        complete = {seed: sum(means) / tasks for seed, means in whole[method].items() if len(means) == tasks}
        if complete:
            by_table[AVERAGE, _MEAN, method] = complete
    return by_table


def _chosen(runs: Iterable[GlueRun]) -> Iterator[GlueRun]:
    """For each seed that was trained with every one of several α's, the run that did best on held-out rows."""
    groups: dict[tuple[str, str], dict[int, dict[str, GlueRun]]] = {}
    for run in runs:
        if family(run.method) != run.method:
            groups.setdefault((run.task, family(run.method)), {}).setdefault(run.seed, {})[run.method] = run
    for (_, name), by_seed in groups.items():
        labels = {label for some in by_seed.values() for label in some}
        for some in by_seed.values():
            if len(some) == len(labels) > 1:
                best = max(sorted(some, key=_order), key=lambda label: _best(some[label]))
                yield replace(some[best], method=name)


def _score(task: str, metric: str, method: str, by_seed: Mapping[int, float]) -> GlueScore:
    found = spread(list(by_seed.values()))
    seeds, values = tuple(by_seed), tuple(by_seed.values())
    return GlueScore(task, metric, method, found.mean, found.deviation, found.low, found.high, found.n, seeds, values)


def _differences(found: _Found) -> list[GlueDifference]:
    """Every method against the base, and what else it is compared with, on the seeds that both have."""
    labels, values, relative = [], [], []
    for task, metric, method in found:
        for against in (BASE, ALSO_AGAINST.get(family(method))):
            other = found.get((task, metric, against or ""), {})
            mine = found[task, metric, method]
            seeds = [seed for seed in mine if seed in other]
            if method == against or not seeds:
                continue
            labels.append((task, metric, method, str(against)))
            values.append(paired([mine[seed] for seed in seeds], [other[seed] for seed in seeds]))
            mean = sum(other[seed] for seed in seeds) / len(seeds)
            relative.append(100 * values[-1].value / mean if mean else math.nan)
    return [
        GlueDifference(
            *label, d.value, share, d.low, d.high, d.p, d.p_permutation, d.corrected, d.significant, d.n, d.reason
        )
        for label, share, d in zip(labels, relative, corrected(values), strict=True)
    ]


def _best(run: GlueRun) -> float:
    """The best held-out score of all epochs."""
    return max((value for value in run.held_out if value is not None), default=-math.inf)


def _order(method: str) -> tuple[int, float]:
    """Methods as they are listed, the chosen one before its α's, weak ones first."""
    _, _, alpha = method.partition(":alpha=")
    return _place(family(method), METHODS), -float(alpha or "0")


def _place(name: str, among: Iterable[str]) -> int:
    return list(among).index(name)
