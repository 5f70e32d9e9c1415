"""isotrope evaluate sts: sentence similarity without and with repairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli.evaluate.result import (
    RepairNames,
    ResamplingSeed,
    ResultFile,
    describe_change,
    format_interval,
    format_points,
    format_score,
    make_evaluation_options,
    print_heading,
    run_evaluation,
)
from isotrope.cli.options import ENGINE, Json, Keywords, derive_options, parse_names
from isotrope.cli.output import console
from isotrope.cli.tables import Column, print_table

if TYPE_CHECKING:
    from isotrope.evaluation.result import StsEvaluation

_SPACE = make_evaluation_options(
    layers={"default": None, "shown": "last; 1,-1 for the protocol paper"},
    pooling="mean, cls, last, max, weightedmean, first+last, sbert-wk, mean:1+-1.",
)


@derive_options
def sts(
    reading: Annotated[Keywords, _SPACE],
    engine: Annotated[Keywords, ENGINE],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the sets, e.g. with sts-b-test.csv.", show_default="$ISOTROPE_DATA, or the hub"),
    ] = None,
    sets: Annotated[
        str | None, typer.Option(help="sts-b, sickr, sts12 to sts16, sts12.MSRpar.", show_default="all there are")
    ] = None,
    repair: RepairNames = "none",
    fit_text: Annotated[
        str, typer.Option(help="Text that repairs are fitted on: a file, or own, each set's sentences.")
    ] = "own",
    protocol: Annotated[
        str, typer.Option(help="concatenated (all pairs of a set at once) or paper (mean over a year's subsets).")
    ] = "concatenated",
    seed: ResamplingSeed = 0,
    output: ResultFile = None,
    json: Json = False,
) -> None:
    from isotrope.evaluation.sts import evaluate_sts

    run_evaluation(
        evaluate_sts,
        _show,
        repair=repair,
        output=output,
        json=json,
        data=data,
        sets=None if sets is None else parse_names(sets),
        fit_text=fit_text,
        protocol=protocol,
        seed=seed,
        **reading,
        **engine,
    )


def _show(found: StsEvaluation) -> None:
    """A line for each set, a column for each repair, and in words what the repairs change over all."""
    out = console()
    changes = {(d.set, d.repair): d for d in found.differences if d.metric == "spearman"}
    repairs = list(dict.fromkeys(score.repair for score in found.scores))
    what = f"Spearman × 100 of cosines, {_SCORING[found.protocol]}"
    print_heading(out, found.scores, what, "each set's own sentences")
    columns = [Column("set"), Column("pairs", right=True, rank=2), Column("no repair", right=True)]
    columns += [Column("95 % interval", right=True, rank=1), *(Column(name, right=True) for name in repairs[1:])]
    rows = []
    by = {(score.set, score.repair): score for score in found.scores}
    for name in dict.fromkeys(score.set for score in found.scores):
        raw = by[name, repairs[0]]
        cells = [name, f"{raw.n:,}", format_points(raw.spearman), format_interval(raw)]
        rows.append(cells + [format_score(by[name, r].spearman, changes[name, r]) for r in repairs[1:]])
    print_table(out, columns, rows, ["bold" if cells[0] == found.scores[-1].set else None for cells in rows])
    if changes:
        out.print(_describe_legend(found), style="dim")
    for repair in repairs[1:]:
        out.print(describe_change(changes[found.scores[-1].set, repair]))
    for line in _describe_notes(found):
        out.print(line, style="dim")


_SCORING = {
    "concatenated": "one correlation over all pairs of a set (protocol concatenated)",
    "paper": "the plain mean over a year's subsets (protocol paper)",
}


def _describe_legend(found: StsEvaluation) -> str:
    count = sum(d.reason is None for d in found.differences)
    return f"* differs beyond chance: p below 0.05 after Holm's correction for {count} comparisons, Pearson's too."


def _describe_notes(found: StsEvaluation) -> list[str]:
    """What was left out, and what is undefined."""
    lines = [
        f"left out of {name}: " + ", ".join(f"{count:,} pairs {why}" for why, count in reasons.items()) + "."
        for name, reasons in found.left_out.items()
    ]
    reasons: dict[str, list[str]] = {}
    for score in found.scores:
        if score.reason:
            reasons.setdefault(score.reason, []).append(f"{score.set} with {score.repair}")
    return lines + [f"undefined: {', '.join(names)}: {reason}." for reason, names in reasons.items()]
