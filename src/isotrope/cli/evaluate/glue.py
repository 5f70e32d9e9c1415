"""isotrope evaluate glue: fine-tuning with and without SoftDecay, over seeds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli.evaluate.result import format_points
from isotrope.cli.options import ROWS, Json, Keywords, OptionGroup, derive_options, parse_names, parse_numbers
from isotrope.cli.output import console, echo, print_json
from isotrope.cli.progress import Bar, advise_on_folder, advise_when_stopped, print_warnings
from isotrope.cli.tables import Column, print_table
from isotrope.errors import InputError
from isotrope.finetuning.settings import Training
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from isotrope.finetuning.result import GlueDifference, GlueEvaluation

_MODEL = OptionGroup(
    Input, "model revision device trust_remote_code", ROWS, {"model": {"help": "Hub id or folder.", "panel": None}}
)


@derive_options
def glue(
    training: Annotated[Keywords, OptionGroup(Training)],
    reading: Annotated[Keywords, _MODEL],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the tasks, e.g. with rte/train.tsv.", show_default="$ISOTROPE_DATA, or the hub"),
    ] = None,
    tasks: Annotated[
        str | None,
        typer.Option(help="cola, sst2, mrpc, qnli, rte, mnli, qqp, stsb.", show_default="all there are"),
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Beside base: softdecay, expdecay, sbert, bert-ct, simcse, simcse+softdecay.")
    ] = "softdecay",
    alpha: Annotated[str, typer.Option(help="α's that SoftDecay begins with.")] = "-0.2,-0.5,-0.8",
    seeds: Annotated[int, typer.Option(help="How many.")] = 5,
    seed: Annotated[int, typer.Option(help="The first one.")] = 0,
    predictions: Annotated[
        Path | None,
        typer.Option(
            help="Folder for predictions of the test rows, as the leaderboard takes them.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder that keeps each finished run.", show_default=False)
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the runs of the folder.")] = False,
    show: Annotated[bool, typer.Option("--show", help="Show what the folder holds, and train nothing.")] = False,
    json: Json = False,
) -> None:

    if output is None and (show or resume):
        raise InputError(f"got --{'show' if show else 'resume'} without a folder; name it with -o.")
    if show:
        from isotrope.finetuning.result import GlueEvaluation

        found = GlueEvaluation.read(str(output))
    else:
        from isotrope.finetuning.glue import evaluate_glue
        from isotrope.finetuning.runs import RUNS

        advise = advise_when_stopped(lambda: advise_on_folder(output, f"{RUNS}/*.json"))
        with advise, Bar(quiet=json) as bar, print_warnings():
            found = evaluate_glue(
                data=data,
                tasks=None if tasks is None else parse_names(tasks),
                methods=parse_names(methods),
                alphas=parse_numbers(alpha, "--alpha", float),
                seeds=seeds,
                seed=seed,
                predictions=predictions,
                output=output,
                resume=resume,
                **training,
                **reading,
                progress=bar,
            )
    if json:
        print_json(found.to_dict())
        return
    _show(found)
    if predictions is not None and not show:
        echo(f"\nPredictions of the test rows: {predictions}/ (a folder for each method and seed)")
    if output is not None and not show:
        echo(f"\nResults: {output}/ (glue.json, scores.csv, differences.csv, alphas.csv, spectra.csv, runs/)")


def _show(found: GlueEvaluation) -> None:
    """A line for each score and method, what changes in words, and where α and the spectrum went."""
    out = console()
    settings = found.runs[0].settings
    out.print(f"{settings['model']}, fine-tuned", style="bold")
    kept = "last epoch" if settings.get("recipe") == "run-glue" else "epoch and α chosen on held-out rows"
    words = (
        f"Scores × 100 on validation rows, mean over seeds and deviation; at most {settings['epochs']} epochs, batches "
        f"of {settings['batch_size']}, rate {settings['learning_rate']:g}; {kept}."
    )
    out.print(words, style="dim")
    numbers = {"seeds": 4, "mean": 0, "± sd": 2, "against base": 0, "95 % interval": 3, "p": 5, "Holm": 1}
    columns = [Column("task"), Column("score"), Column("method", wraps=24)]
    columns += [Column(title, right=True, rank=rank) for title, rank in numbers.items()]
    rows = []
    to_base = {(d.task, d.metric, d.method): d for d in found.differences if d.against == "base"}
    last = ("", "")
    for score in found.scores:
        line = (score.task, score.metric)
        names = line if line != last else ("", "")
        last = line
        cells = (str(score.n), format_points(score.mean), format_points(score.deviation))
        rows.append([*names, score.method, *cells, *_format_cells(to_base.get((*line, score.method)))])
    print_table(out, columns, rows)
    if found.differences:
        count = sum(d.reason is None for d in found.differences)
        legend = f"* p below 0.05 (paired t-test over seeds) after Holm's correction for {count} comparisons."
        out.print(legend, style="dim")
    for d in found.differences:
        if d.against != "base":
            out.print(f"{d.task}, {d.metric}: {d.method} against {d.against}: {', '.join(_format_cells(d))}.")
    for line_of_words in _describe_paths(found):
        out.print(line_of_words, style="dim")


def _format_cells(d: GlueDifference | None) -> tuple[str, str, str, str]:
    """A difference, its interval and p-values."""
    if d is None:
        return ("",) * 4
    star = "*" if d.significant else ""
    interval = f"{format_points(d.low, sign=True)} to {format_points(d.high, sign=True)}"
    return f"{format_points(d.difference, sign=True)}{star}", interval, _format_p(d.p), _format_p(d.p_corrected)


def _format_p(value: float) -> str:
    return f"{value:.2g}" if value == value else "-"


def _describe_paths(found: GlueEvaluation) -> list[str]:
    """Where α went, and what became of the spectrum, by task and method."""
    lines = []
    groups: dict[tuple[str, str], list[dict[str, float]]] = {}
    for run in found.runs:
        facts = {"from": run.spectra["pretrained"]["median"], "to": run.spectra["trained"]["median"]}
        if run.alphas:
            facts |= {"first": run.alphas[0][1], "last": run.alphas[-1][1]}
        groups.setdefault((run.task, run.method), []).append(facts)
    for (task, method), runs in groups.items():
        mean = {name: sum(facts[name] or 0.0 for facts in runs) / len(runs) for name in runs[0]}
        path = f"α from {mean['first']:.3f} to {mean['last']:.3f}, " if "last" in mean else ""
        lines.append(
            f"{task}, {method}: {path}median singular value within a sequence (of the largest) "
            f"{mean['from']:.3f} before training, {mean['to']:.3f} after."
        )
    return lines
