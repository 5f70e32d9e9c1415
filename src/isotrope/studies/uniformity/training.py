"""SoftDecay in fine-tuning: the GLUE tables of Yan et al. 2022, other blocks, and the number of training rows."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.drawing.style import COLOURS, PAGE_WIDTH
from isotrope.errors import InputError
from isotrope.finetuning.seeds import compute_spread
from isotrope.finetuning.settings import ALPHAS, BASE, METHODS
from isotrope.studies.figures import make_figure
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import count_blocks
from isotrope.studies.uniformity.ablations import judge_other_blocks
from isotrope.studies.uniformity.glue_spectra import judge_spectra, make_cdf_figure, tabulate_cdf, tabulate_reach
from isotrope.studies.uniformity.published import find_glue_score
from isotrope.studies.uniformity.sts import draw_scores
from isotrope.studies.verdict import judge_interval, judge_test, seeds_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a study compares, and a quick one: the α's that SoftDecay begins with are the paper's, or the middle one.
_METHODS, _QUICK_METHODS = [name for name in METHODS if name != BASE], ["softdecay"]
_QUICK_ALPHAS = (-0.5,)

#: Shares of the training rows, and the seeds of a quick study for each.
_SHARES, _QUICK_SHARES, _QUICK_SEEDS = (0.125, 0.25, 0.5, 1.0), (0.25, 1.0), 2


def count_runs(options: StudyOptions) -> int:
    """How many models each seed trains on a task."""
    methods, alphas = (_QUICK_METHODS, _QUICK_ALPHAS) if options.quick else (_METHODS, ALPHAS)
    return 1 + sum(len(alphas) if METHODS[name].softdecay else 1 for name in methods)


def compare_methods(options: StudyOptions, model: str, plan: FineTuning, seeds: int) -> Results:
    """Tables 2 and 6, Figs. 5 and 8 to 13: all methods on all tasks over seeds, with the printed numbers."""
    how: dict[str, Any] = {"methods": _METHODS, "alphas": ALPHAS, "seeds": seeds}
    if options.quick:
        how = {"methods": _QUICK_METHODS, "alphas": _QUICK_ALPHAS, "seeds": 1}
    try:
        found = plan.evaluate(f"{model} methods", options.path(model), **how)
    except InputError as error:  # SoftDecay by Eq. 2 is not defined for all spectra
        return Results.note(f"{model} was not trained: {error}", "Table 2")
    scores = found.to_frame()
    scores["printed"] = [
        find_glue_score(model, *row) for row in zip(scores["task"], scores["metric"], scores["method"], strict=True)
    ]
    differences, reach, curves = found.to_frame("differences"), tabulate_reach(found.runs), tabulate_cdf(found.runs)
    sizes = {data.task.name: len(data.train) for data in plan.data}
    tables = [
        Table(
            "scores",
            f"Scores × 100 on GLUE's validation rows over seeds, {model}",
            scores.drop(columns=["seeds", "values"]),
        ),
        Table("differences", f"Points that methods gain, with intervals and p-values, {model}", differences),
        Table("reach", f"ΔL by layer before and after training, with intervals over sequences, {model}", reach),
        Table("alphas", f"Where α of SoftDecay goes in training, {model}", found.to_frame("alphas")),
        Table(
            "spectra", f"CDF of singular values of sequences by layer before and after training, {model}", curves, False
        ),
    ]
    caption = "Scores × 100 by task and method, with 95 % intervals over seeds (Tables 2 and 6)."
    lines = scores.assign(line=scores["task"] + " " + scores["metric"])
    draw = partial(draw_scores, lines, "line", "method", "mean")
    figures = [make_figure("glue", caption, draw, width=PAGE_WIDTH, height=2.6), make_cdf_figure(curves, reach)]
    return Results(tables, [*judge_glue(model, differences), *judge_spectra(model, reach, sizes)], figures)


def judge_glue(model: str, differences: pd.DataFrame) -> list[Claim]:
    """Whether SoftDecay gains in fine-tuning, by the p-value over seeds, corrected for all comparisons (Table 2).

    Args:
        model: the name of the model.
        differences: the table of `isotrope.finetuning.result.GlueDifference`.
    """
    claims = []
    first = differences[(differences["against"] == BASE) & differences["method"].str.startswith("softdecay")]
    for (task, metric), rows in first.groupby(["task", "metric"], sort=False):
        row = rows.iloc[0]
        text = (
            f"{row['method']} changes {model} on {task}, {metric}, by {row['difference']:+.2f} points, seeds: "
            f"{row['n']}; the paper: gains, most of them on small sets."
        )
        printed = find_glue_score(model, str(task), str(metric), "softdecay") - find_glue_score(
            model, str(task), str(metric), BASE
        )
        evidence = f"95 % interval {row['low']:+.2f} to {row['high']:+.2f}, corrected p {row['p_corrected']:.2g}"
        outcome = judge_test(row["difference"], row["p_corrected"])
        claims.append(Claim(outcome, text, "Table 2", float(row["difference"]), printed, evidence, model))
    return claims


def compare_blocks(options: StudyOptions, model: str, plan: FineTuning, seeds: int) -> Results:
    """Footnote 3: SoftDecay in each block in turn, in training, with one α, over seeds."""
    rows: list[dict[str, Any]] = []
    for block in range(count_blocks(options.input(model).load())):
        more = {"methods": ["softdecay"], "alphas": _QUICK_ALPHAS, "seeds": seeds, "softdecay_block": block}
        for d in plan.evaluate(f"{model} block {block}", options.path(model), **more).differences:
            row = {"block": block, "task": d.task, "metric": d.metric, "gain": d.difference}
            rows.append(row | {"gain_low": d.low, "gain_high": d.high, "p": d.p, "seeds": d.n})
    frame = pd.DataFrame(rows)
    frame["p_corrected"] = holm(frame["p"].tolist())
    title = f"Points that SoftDecay gains in one block or another, over seeds, {model}"
    claim = judge_other_blocks(model, frame[frame["block"] < frame["block"].max()], "in training")
    return Results([Table("blocks", title, frame)], [claim])


def compare_sizes(options: StudyOptions, model: str, plan: FineTuning, seeds: int) -> Results:
    """Section 5.2 and Fig. 8: whether more training rows make rows of a sequence more alike (a smaller ΔL)."""
    rows = []
    for share in _QUICK_SHARES if options.quick else _SHARES:
        for data in plan.data:
            whole = min(len(data.train), plan.training.train_rows or len(data.train))
            count = max(3, round(share * whole))
            how: dict[str, Any] = {"tasks": [data.task.name], "methods": (), "train_rows": count}
            how["seeds"] = min(seeds, _QUICK_SEEDS) if options.quick else seeds
            found = plan.evaluate(f"{model} {count} rows", options.path(model), **how)
            for run in found.runs:
                reach = {f"reach {when}": run.spectra[when]["reach"] for when in ("pretrained", "trained")}
                score = next(iter(run.scores.values()))
                score = None if score is None else 100 * score
                rows.append({"task": run.task, "rows": count, "seed": run.seed, "score": score} | reach)
    frame = pd.DataFrame(rows)
    title = f"ΔL (σ/σ₁ below which four fifths of the singular values lie) after training on so many rows, {model}"
    caption = "ΔL after training by number of training rows, with 95 % intervals over seeds; dashed before training."
    figure = make_figure("sizes", caption, partial(_draw_sizes, frame))
    return Results([Table("sizes", title, frame)], judge_sizes(model, frame), [figure])


def judge_sizes(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether more training rows make the rows of a sequence more alike, by the interval over seeds (Section 5.2).

    Args:
        model: the name of the model.
        frame: a row for each task, number of training rows and seed, with the column "reach trained".
    """
    claims = []
    for task, rows in frame.groupby("task", sort=False):
        by = rows.pivot_table(index="seed", columns="rows", values="reach trained")
        fewest, most = by.columns[0], by.columns[-1]
        low, high = seeds_interval((by[fewest] - by[most]).dropna())
        text = (
            f"ΔL of {model} after training on {task} is {by[fewest].mean():.3f} with {fewest:,} rows and "
            f"{by[most].mean():.3f} with {most:,}, seeds: {len(by)}; the paper: more training rows, more alike."
        )
        change = float((by[most] - by[fewest]).mean())
        evidence = f"95 % interval of the change over seeds {-high:+.3f} to {-low:+.3f}"
        claims.append(Claim(judge_interval(low, high), text, "Section 5.2", change, evidence=evidence, model=model))
    return claims


def _draw_sizes(frame: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for (task, rows), colour in zip(frame.groupby("task", sort=False), COLOURS, strict=False):
        counts = sorted(set(rows["rows"]))
        spreads = [compute_spread(rows.loc[rows["rows"] == count, "reach trained"].tolist()) for count in counts]
        axes.plot(counts, [spread.mean for spread in spreads], marker="o", color=colour, label=str(task))
        axes.vlines(counts, [spread.low for spread in spreads], [spread.high for spread in spreads], color=colour)
        axes.axhline(float(rows["reach pretrained"].iloc[0]), color=colour, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("training rows")
    axes.set_ylabel("ΔL")
    axes.legend()
