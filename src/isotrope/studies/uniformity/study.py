"""Token uniformity, its repair and what that gains: the protocol of Yan et al. 2022 (SoftDecay)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from isotrope.errors import InputError
from isotrope.evaluation.pairs import PROTOCOLS
from isotrope.finetuning.settings import Training
from isotrope.studies.figures import run_figures
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Study, Table, depth_correlation
from isotrope.studies.runner import Results, repeat_for_models, run_study
from isotrope.studies.uniformity import sts, training
from isotrope.studies.uniformity.ablations import score_other_blocks, score_positions, time_svd
from isotrope.studies.uniformity.disabled_parts import measure_without_parts
from isotrope.studies.uniformity.published import MISPRINTS
from isotrope.studies.uniformity.rank_bound import measure_bound

PAPER = "Yan et al. 2022, Addressing Token Uniformity in Transformers via Singular Value Transformation"

_BY_LAYER = (
    "sequence_spectral_skewness",
    "sequence_spectral_median",
    "sequence_vanished_dimensions",
    "sequence_uniformity",
    "cls_uniformity",
    "spectral_skewness",
    "spectral_median",
    "explained_variance_1",
    "token_uniformity",
    "rank_one_residual",
    "mean_cosine",
)

#: Figures of a run that correspond to those of the paper.
_RUN_FIGURES = ("sequence-spectra", "spectrum-histograms", "uniformity", "softdecay-spectra")


def uniformity(
    *,
    output: str | Path,
    data: str | Path | None = None,
    texts: int | None = None,
    tasks: Sequence[str] | None = None,
    seeds: int = 5,
    train_rows: int | None = None,
    epochs: int = Training.epochs,
    learning_rate: float = Training.learning_rate,
    **common: Any,
) -> Study:
    """Spectra and uniformity by layer, the theorem's bound, STS by both protocols, repairs, GLUE, ablations.

    Args:
        output: the folder for tables, figures and runs.
        data: the folder of the STS sets and of GLUE; without it those experiments are left out.
        texts: the most texts to read.
        tasks: tasks of GLUE; None for all that the data holds, an empty list for none.
        seeds: the number of seeds of fine-tuning.
        train_rows: the most training rows of a task.
        epochs: the most epochs of fine-tuning.
        learning_rate: of fine-tuning.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`. A quick study reads STS-B alone
            and one task, with fewer repairs and methods.

    References:
        Yan et al. 2022, Addressing Token Uniformity in Transformers via Singular Value Transformation.
    """
    options = StudyOptions(output=output, data=data, texts=texts, tasks=tasks, **common)
    if seeds < 1:
        raise InputError(f"got {seeds} seeds, expected at least one.")
    plan = FineTuning.plan(options, Training(train_rows=train_rows, epochs=epochs, learning_rate=learning_rate))
    experiments: dict[str, Callable[[], Results]] = {
        "misprints": lambda: Results((), [Claim("misprint", text) for text in MISPRINTS])
    }
    experiments |= repeat_for_models(options, _list_experiments(options, plan, seeds))
    lacking = [name for name, there in (("STS", options.data_root is not None), ("GLUE", bool(plan.data))) if not there]
    if lacking:
        text = f"without data or tasks (--data, --tasks) there are no tables of {' and '.join(lacking)}."
        experiments["without data"] = lambda: Results.note(text, "Tables 1 and 2")
    settings = {"seeds": seeds} | plan.settings()
    return run_study("uniformity", PAPER, experiments, options, settings, partial(_announce, options, plan, seeds))


def _list_experiments(options: StudyOptions, plan: FineTuning, seeds: int) -> dict[str, Callable[..., Results]]:
    """The experiments with each model that the data allow."""
    experiments: dict[str, Callable[..., Results]] = {
        "layers": _measure_layers,
        "bound": partial(measure_bound, measures=",".join(_BY_LAYER)),
        "parts off": measure_without_parts,
        "svd time": time_svd,
    }
    if options.data_root is not None:
        experiments |= {f"sts {protocol}": partial(sts.score_sts, protocol=protocol) for protocol in PROTOCOLS}
        experiments |= {"repaired": sts.measure_repairs, "tsne": sts.project_pairs}
        experiments |= {"other blocks": score_other_blocks, "simcse": training.score_contrastive}
    if plan.data:
        experiments["positions"] = partial(score_positions, plan=plan)
        experiments["glue"] = partial(training.compare_methods, plan=plan, seeds=seeds)
        experiments["glue sizes"] = partial(training.compare_sizes, plan=plan)
        if not options.quick:
            experiments["glue blocks"] = partial(training.compare_blocks, plan=plan)
    return experiments


def _announce(options: StudyOptions, plan: FineTuning, seeds: int) -> None:
    """Say how long reading, measuring and fine-tuning will take."""
    options.announce(",".join(_BY_LAYER), 5.0)  # once whole, and with parts disabled
    times = training.count_runs(options) * (1 if options.quick else seeds) + 2
    plan.announce(lambda model: options.input(model).load(), dict.fromkeys(options.names, times))


def _measure_layers(options: StudyOptions, model: str) -> Results:
    """Figs. 1 to 3, 5 and 8 to 13: spectra and uniformity by layer."""
    findings = options.scan(model, options.source(model), ",".join(_BY_LAYER))
    rows = []
    for layer, by in iterate_layers(findings):
        row: dict[str, Any] = {"layer": layer} | {name: by[name].value for name in _BY_LAYER}
        for name in ("sequence_uniformity", "cls_uniformity", "token_uniformity"):
            row |= {f"{name}_low": by[name].low, f"{name}_high": by[name].high}
        rows.append(row)
    frame = pd.DataFrame(rows)
    tables = [Table("layers", f"Spectra and uniformity of tokens and [CLS] by layer, {model}", frame)]
    if "sequence_cdf" in findings.tables:
        title = f"CDF of singular values of sequences, each divided by its largest, by layer, {model}"
        tables.append(Table("cdf", title, findings.tables["sequence_cdf"]))
    return Results(tables, _judge_depth(model, frame), run_figures(options.run_folder(model), _RUN_FIGURES))


def _judge_depth(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Skewness and uniformity rise with depth, the median singular value falls (Fig. 2)."""
    claims = []
    for name, sign in (
        ("sequence_spectral_skewness", 1),
        ("sequence_spectral_median", -1),
        ("sequence_uniformity", 1),
        ("cls_uniformity", 1),
    ):
        values = frame[name]
        rho = depth_correlation(values)
        if math.isnan(rho):
            continue
        word = "rises" if sign > 0 else "falls"
        text = (
            f"{name} of {model} goes from {values.iloc[0]:.3f} to {values.iloc[-1]:.3f}, rank correlation with depth "
            f"{rho:.2f}; the paper: {word} in BERT."
        )
        claims.append(Claim.judge(sign * rho > 0.5, text, "Fig. 2", rho, float(sign)))
    return claims
