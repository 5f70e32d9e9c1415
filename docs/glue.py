"""Writes the section of docs/glue.md on a run folder of `isotrope evaluate glue`: python docs/glue.py RUN."""

from __future__ import annotations

import sys
from pathlib import Path

from isotrope.finetuning.result import GlueDifference, GlueEvaluation

PAGE = Path(__file__).with_name("glue.md")
_NAMES = {"cola": "CoLA", "stsb": "STS-B", "sst2": "SST-2"}
BEGIN, END = "<!-- made by docs/glue.py -->", "<!-- end -->"


def section(found: GlueEvaluation) -> str:
    """The table of scores, what became of α and the spectrum, and a sentence on each difference."""
    settings = found.runs[0].settings
    tasks = list(dict.fromkeys(run.task for run in found.runs))
    against = {(d.task, d.metric, d.method): d for d in found.differences if d.against == "base"}
    lines = [
        f"## {settings['model']} on {' and '.join(_NAMES.get(task, task.upper()) for task in tasks)}",
        "",
        f"{max(score.n for score in found.scores)} seeds, at most {settings['epochs']} epochs, batches of "
        f"{settings['batch_size']}, rate {settings['learning_rate']:g}, α at {settings['softdecay_learning_rate']:g}; "
        "mean over seeds ± standard deviation, points against base with the 95 % interval:",
        "",
        "| task | score | method | mean ± sd | each seed | against base | p | p after Holm | p by changing sides |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for score in found.scores:
        each = ", ".join(f"{value:.1f}" for value in score.values)
        names = f"| {score.task} | {score.metric} | {score.method} | {score.mean:.2f} ± {score.deviation:.2f} | {each} "
        lines.append(names + _cells(against.get((score.task, score.metric, score.method))))
    lines += [
        "",
        "| task | method | α, first to last step | median σ/σ₁ before training | after | into SoftDecay | out of it |",
        "|---|---|---|---|---|---|---|",
    ]
    for task, method in dict.fromkeys((run.task, run.method) for run in found.runs):
        runs = [run for run in found.runs if (run.task, run.method) == (task, method)]
        ends = [run.alphas[-1][1] for run in runs if run.alphas]
        path = f"{runs[0].alphas[0][1]:.2f} to {min(ends):.3f} ... {max(ends):.3f}" if ends else ""
        medians = []
        for where in ("pretrained", "trained", "into softdecay", "out of softdecay"):
            values = [run.spectra[where]["median"] for run in runs if where in run.spectra]
            medians.append(f"{sum(values) / len(values):.3f}" if values else "")
        lines.append(f"| {task} | {method} | {path} | {' | '.join(medians)} |")
    return "\n".join([*lines, "", *(_in_words(d) for d in found.differences if d.metric != "mean"), ""])


def _cells(d: GlueDifference | None) -> str:
    if d is None:
        return "| | | | |"
    star = "*" if d.significant else ""
    return (
        f"| {d.difference:+.2f}{star} ({d.low:+.2f} to {d.high:+.2f}) | {d.p:.2g} | {d.p_corrected:.2g} "
        f"| {d.p_permutation:.2g} |"
    )


def _in_words(d: GlueDifference) -> str:
    words = "no difference beyond seeds' chance"
    if d.significant:
        words = f"{'better' if d.difference > 0 else 'worse'} than {d.against} beyond seeds' chance"
    return f"- {d.task}, {d.method}: {words} ({d.difference:+.2f} points, {d.relative:+.1f} % of {d.against}'s score)."


def main(folder: str) -> None:
    """Put the section in the place of the one before, or at the end."""
    page = PAGE.read_text("utf-8")
    kept = page.partition(BEGIN)[0].rstrip() + "\n"
    after = page.partition(END)[2]
    PAGE.write_text(f"{kept}\n{BEGIN}\n{section(GlueEvaluation.read(folder))}\n{END}\n{after.lstrip()}", "utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
