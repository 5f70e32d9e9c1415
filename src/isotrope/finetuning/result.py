"""Results of a GLUE evaluation: mean and spread over seeds, differences of methods, JSON and tables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from isotrope.errors import StoreError
from isotrope.evaluation.result import Evaluation
from isotrope.evaluation.significance import correct_p_values
from isotrope.finetuning.runs import GlueRun, read_runs
from isotrope.finetuning.seeds import compare_seeds, compute_spread
from isotrope.finetuning.settings import ALSO_AGAINST, BASE, METHODS, family
from isotrope.finetuning.tasks import TASKS

if TYPE_CHECKING:
    import pandas as pd

#: The name of the mean over tasks, each with the mean of its scores, and the task that the paper leaves out of it.
AVERAGE, _NOT_AVERAGED = "average", "stsb"

#: The name of the mean score of a task with several metrics.
_MEAN = "mean"


@dataclass(frozen=True, slots=True)
class GlueScore:
    """Score of one method on one task over seeds, in per cent.

    mean, deviation: over seeds. low, high: ends of the 95 % interval of the mean. n: number of seeds. values: the score
    of each seed.
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
    """Score of a method minus the score of another over the same seeds, in points, with 95 % interval and p-values.

    relative: the difference in per cent of the other's mean. p: paired t-test. p_permutation: exact permutation test.
    p_corrected: p with Holm's correction for all differences of the evaluation. significant: whether p_corrected is
    below 0.05.
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
class GlueEvaluation(Evaluation):
    """Scores and differences of methods on tasks of GLUE, and the runs that they come from."""

    row_types: ClassVar[Mapping[str, type]] = {"scores": GlueScore, "differences": GlueDifference}

    scores: list[GlueScore]
    differences: list[GlueDifference]
    runs: list[GlueRun] = field(repr=False)
    provenance: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, runs: Iterable[GlueRun], provenance: Mapping[str, Any] | None = None) -> GlueEvaluation:
        """Evaluate runs.

        Where a method with SoftDecay has runs with several initial values of α, a row with the name of the method alone
        is added: for each seed, the run with the best held-out score.
        """
        found = list(runs)
        by_method = _collect_scores([*found, *_select_best_alphas(found)])
        scores = [
            GlueScore(
                *key,
                **compute_spread(list(by_seed.values()))._asdict(),
                seeds=tuple(by_seed),
                values=tuple(by_seed.values()),
            )
            for key, by_seed in by_method.items()
        ]
        return cls(scores, _list_differences(by_method), found, dict(provenance or {}))

    @classmethod
    def read(cls, folder: str | Path) -> GlueEvaluation:
        """Evaluate all runs of a folder, also of an evaluation that is not finished."""
        runs = read_runs(Path(folder))
        if not runs:
            raise StoreError(f"the folder {str(folder)!r} holds no runs of GLUE; train some with -o and no --show.")
        return cls.of(runs)

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """Table of "scores", "differences", "runs", "alphas" after steps, or "spectra" as curves."""
        if what in self.row_types:
            return Evaluation.to_frame(self, what)
        import pandas as pd

        frame: pd.DataFrame = pd.DataFrame(
            {"task": run.task, "method": run.method, "seed": run.seed} | row
            for run in self.runs
            for row in _RUN_TABLES[what](run)
        )
        return frame


def _run_rows(run: GlueRun) -> Iterator[dict[str, Any]]:
    best = _best_held_out(run) if run.held_out else math.nan
    yield {**run.scores, "held_out": best, "epoch": run.epoch, "steps": run.steps, "seconds": run.seconds}


def _alpha_rows(run: GlueRun) -> Iterator[dict[str, Any]]:
    return ({"step": step, "alpha": alpha} for step, alpha in run.alphas)


def _spectrum_rows(run: GlueRun) -> Iterator[dict[str, Any]]:
    for where, spectrum in run.spectra.items():
        curve = spectrum["cdf"] or []
        for i, share in enumerate(curve):
            yield {"where": where, "value": round(i / (len(curve) - 1), 6), "share": share}


_RUN_TABLES: dict[str, Callable[[GlueRun], Iterator[dict[str, Any]]]] = {
    "runs": _run_rows,
    "alphas": _alpha_rows,
    "spectra": _spectrum_rows,
}

#: The names of all tables.
TABLES = (*GlueEvaluation.row_types, *_RUN_TABLES)

#: Scores in per cent by seed, of a task, a metric and a method.
_Scores = dict[tuple[str, str, str], dict[int, float]]


def _collect_scores(runs: Iterable[GlueRun]) -> _Scores:
    """Collect all scores in the order of the tables, with means over several metrics and the average over tasks."""
    found: _Scores = {}
    task_means: dict[str, dict[int, list[float]]] = {}
    tasks = list(TASKS)
    ordered = sorted(runs, key=lambda run: (tasks.index(run.task), _method_order(run.method), run.seed))
    for run in ordered:
        scores = {metric: math.nan if value is None else 100 * value for metric, value in run.scores.items()}
        mean = sum(scores.values()) / len(scores)
        for metric, value in scores.items() if len(scores) == 1 else {**scores, _MEAN: mean}.items():
            found.setdefault((run.task, metric, run.method), {})[run.seed] = value
        if run.task != _NOT_AVERAGED:
            task_means.setdefault(run.method, {}).setdefault(run.seed, []).append(mean)
    lines = list(dict.fromkeys((task, metric) for task, metric, _ in found))
    by_table = dict(sorted(found.items(), key=lambda item: lines.index(item[0][:2])))
    count = len({run.task for run in ordered} - {_NOT_AVERAGED})
    for method in sorted(task_means, key=_method_order) if count > 1 else ():
        complete = {seed: sum(means) / count for seed, means in task_means[method].items() if len(means) == count}
        if complete:
            by_table[AVERAGE, _MEAN, method] = complete
    return by_table


def _select_best_alphas(runs: Iterable[GlueRun]) -> Iterator[GlueRun]:
    """Select for each seed that was trained with all of several α the run with the best held-out score, if there is."""
    groups: dict[tuple[str, str], dict[int, dict[str, GlueRun]]] = {}
    for run in runs:
        if family(run.method) != run.method and run.held_out:
            groups.setdefault((run.task, family(run.method)), {}).setdefault(run.seed, {})[run.method] = run
    for (_, name), by_seed in groups.items():
        labels = {label for by_label in by_seed.values() for label in by_label}
        for by_label in by_seed.values():
            if len(by_label) == len(labels) > 1:
                best = max(sorted(by_label, key=_method_order), key=lambda label: _best_held_out(by_label[label]))
                yield replace(by_label[best], method=name)


def _list_differences(found: _Scores) -> list[GlueDifference]:
    """Compare every method with its baselines on the seeds that both have."""
    labels, values, relative = [], [], []
    for (task, metric, method), mine in found.items():
        for against in (BASE, ALSO_AGAINST.get(family(method))):
            other = found.get((task, metric, against or ""), {})
            seeds = [seed for seed in mine if seed in other]
            if method == against or not seeds:
                continue
            labels.append((task, metric, method, str(against)))
            values.append(compare_seeds([mine[seed] for seed in seeds], [other[seed] for seed in seeds]))
            mean = sum(other[seed] for seed in seeds) / len(seeds)
            relative.append(100 * values[-1].value / abs(mean) if mean else math.nan)
    return [
        GlueDifference(
            *label, d.value, share, d.low, d.high, d.p, d.p_permutation, d.corrected, d.significant, d.n, d.reason
        )
        for label, share, d in zip(labels, relative, correct_p_values(values), strict=True)
    ]


def _best_held_out(run: GlueRun) -> float:
    """The best held-out score of all epochs."""
    return max((value for value in run.held_out if value is not None), default=-math.inf)


def _method_order(method: str) -> tuple[int, float]:
    """Order of methods: as they are listed, a method without α before those with α, weak ones first."""
    _, _, alpha = method.partition(":alpha=")
    return list(METHODS).index(family(method)), -float(alpha or "0")
