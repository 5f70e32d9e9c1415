"""Token uniformity, its repair and what that gains: the protocol of Yan et al. 2022 (SoftDecay)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.drawing.projections import project_tsne
from isotrope.errors import InputError
from isotrope.evaluation.pairs import PROTOCOLS, read_sets
from isotrope.evaluation.sts import LAYERS, evaluate_sts
from isotrope.evaluation.treatments import OWN, RAW, parse_treatments
from isotrope.finetuning.settings import Training
from isotrope.measures import get
from isotrope.runs.saved_statistics import saved_summary
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.figures import run_figures
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions, layer_readings, to_model
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Experiment, Results, run_study
from isotrope.studies.uniformity import training
from isotrope.studies.uniformity.ablations import (
    measure_without_parts,
    score_other_blocks,
    score_positions,
    time_svd,
)
from isotrope.studies.uniformity.claims import judge_bound, judge_depth, judge_sts, select_best_alpha
from isotrope.studies.uniformity.figures import RUN_FIGURES, make_bound_figure, make_pairs_figure, make_sts_figure
from isotrope.studies.uniformity.published import FIXED, MISPRINTS, WHITENING, find_sts_score, find_uniformity
from isotrope.studies.uniformity.rank_bound import compute_rank_bound

if TYPE_CHECKING:
    import pandas as pd

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

#: α of SoftDecay: the paper searches these on the test sets (footnote 5), and fixes −0.6 in Appendix B.
ALPHAS = (-0.2, -0.4, -0.6, -0.8, -1.0)

#: Pairs that t-SNE projects, about, and the directions that whitening keeps there: all of them would make every two
#: of so few rows equally far apart.
_PAIRS, _KEPT = 400, 64


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
    plan = FineTuning.from_options(options, train_rows, epochs, learning_rate)
    experiments = [Experiment("misprints", lambda: Results((), [Claim("misprint", text) for text in MISPRINTS]))]
    for model in options.names:
        experiments += _list_experiments(options, plan, seeds, model)
    lacking = [name for name, there in (("STS", options.data_root is not None), ("GLUE", bool(plan.data))) if not there]
    if lacking:
        text = f"without data or tasks (--data, --tasks) there are no tables of {' and '.join(lacking)}."
        experiments.append(Experiment("without data", lambda: Results((), [Claim("note", text, "Tables 1 and 2")])))
    settings = {"seeds": seeds} | plan.settings()
    return run_study("uniformity", PAPER, experiments, options, settings, partial(_announce, options, plan, seeds))


def _list_experiments(options: StudyOptions, plan: FineTuning, seeds: int, model: str) -> list[Experiment]:
    """The experiments with one model that the data allow."""
    runs: dict[str, Callable[[], Results]] = {
        "layers": partial(_measure_layers, options, model),
        "bound": partial(_measure_bound, options, model),
        "parts off": partial(measure_without_parts, options, model),
        "svd time": partial(time_svd, options, model),
    }
    if options.data_root is not None:
        runs |= {f"sts {protocol}": partial(_score_sts, options, model, protocol) for protocol in PROTOCOLS}
        runs["repaired"] = partial(_measure_repairs, options, model)
        runs["tsne"] = partial(_project_pairs, options, model)
        runs["other blocks"] = partial(score_other_blocks, options, model)
        runs["simcse"] = partial(training.score_contrastive, options, model)
    if plan.data:
        runs["positions"] = partial(score_positions, options, plan, model)
        runs["glue"] = partial(training.compare_methods, options, plan, seeds, model)
        runs["glue sizes"] = partial(training.compare_sizes, options, plan, model)
        if not options.quick:
            runs["glue blocks"] = partial(training.compare_blocks, options, plan, model)
    return [Experiment(f"{model} {name}", run) for name, run in runs.items()]


def _announce(options: StudyOptions, plan: FineTuning, seeds: int) -> None:
    """Say how long reading, measuring and fine-tuning will take."""
    options.announce(",".join(_BY_LAYER), 5.0)  # once whole, and with parts disabled
    times = training.count_runs(options) * (1 if options.quick else seeds) + 2
    plan.announce(options, lambda model: options.input(model).load(), dict.fromkeys(options.names, times))


def _measure_layers(options: StudyOptions, model: str) -> Results:
    """Figs. 1 to 3, 5 and 8 to 13: spectra and uniformity by layer."""
    import pandas as pd

    findings = options.scan(model, options.source(model), ",".join(_BY_LAYER))
    rows = []
    for layer in findings.layers:
        by = layer_readings(findings, layer)
        row: dict[str, Any] = {"layer": layer} | {name: by[name].value for name in _BY_LAYER}
        for name in ("sequence_uniformity", "cls_uniformity", "token_uniformity"):
            row |= {f"{name}_low": by[name].low, f"{name}_high": by[name].high}
        rows.append(row)
    frame = pd.DataFrame(rows)
    tables = [Table("layers", f"Spectra and uniformity of tokens and [CLS] by layer, {model}", frame)]
    if "sequence_cdf" in findings.tables:
        title = f"CDF of singular values of sequences, each divided by its largest, by layer, {model}"
        tables.append(Table("cdf", title, findings.tables["sequence_cdf"]))
    return Results(tables, judge_depth(model, frame), run_figures(options.run_folder(model), RUN_FIGURES))


def _measure_bound(options: StudyOptions, model: str) -> Results:
    """The theorem's bound, with its measured slack, by layer."""
    import pandas as pd

    findings = options.scan(model, options.source(model), ",".join(_BY_LAYER))
    rows = []
    for layer in findings.layers:
        sample = saved_summary(options.run_folder(model), layer).sample
        assert sample is not None
        rows += [{"layer": layer} | row for row in compute_rank_bound(sample)]
    frame = pd.DataFrame(rows)
    title = f"Furthest token from the top k directions of its sequence, and σ of the next, by layer, {model}"
    return Results([Table("bound", title, frame)], judge_bound(frame), [make_bound_figure(frame)])


def _list_sets(options: StudyOptions) -> list[str] | None:
    return ["sts-b"] if options.quick else None


def _list_repairs(options: StudyOptions) -> list[str]:
    if options.quick:
        return [WHITENING, FIXED]
    softdecay = (f"softdecay:alpha={alpha:g}:form=paper" for alpha in ALPHAS)
    return [WHITENING, "whitening:dimensions=256", "flow", *softdecay]


def _score_sts(options: StudyOptions, model: str, protocol: str) -> Results:
    """Table 1 by one protocol, with the printed numbers if the model is the same."""
    import pandas as pd

    evaluate = partial(
        evaluate_sts,
        model=to_model(model),
        data=options.data_root,
        sets=_list_sets(options),
        protocol=protocol,
        seed=options.seed,
        device=options.device,
        batch_size=options.batch_size,
        progress=options.progress,
    )
    found = evaluate(repairs=_list_repairs(options), against=[RAW, WHITENING])
    scores, differences = found.to_frame(), found.to_frame("differences")
    # Whitening against no repair is there the other way round.
    differences = differences[(differences["against"] == RAW) | (differences["repair"] != RAW)]
    if not options.quick:
        more = evaluate(pooling="sbert-wk")
        scores = pd.concat([scores, more.to_frame().assign(repair="sbert-wk")], ignore_index=True)
    scores = pd.concat([scores, select_best_alpha(scores)], ignore_index=True)
    scores["gain %"] = _relative_gain(scores)
    scores["printed"] = [
        find_sts_score(model, *row, protocol) for row in zip(scores["set"], scores["repair"], strict=True)
    ]
    tables = [
        Table("scores", f"Spearman × 100 on STS, protocol {protocol}, {model}", scores),
        Table(
            "differences",
            f"Points that repairs gain, with intervals and p-values, protocol {protocol}, {model}",
            differences,
        ),
    ]
    return Results(tables, judge_sts(model, protocol, differences), [make_sts_figure(scores)])


def _relative_gain(scores: pd.DataFrame) -> pd.Series[float]:
    """Δ %: how much more than without a repair, in per cent of that, on the same set."""
    raw = scores[scores["repair"] == RAW].drop_duplicates("set").set_index("set")["spearman"]
    gained: pd.Series[float] = 100.0 * (scores["spearman"] / scores["set"].map(raw) - 1.0)
    return gained


def _measure_repairs(options: StudyOptions, model: str) -> Results:
    """Table 4 and Fig. 6: uniformity before and after, and how much of the neighbourhoods is lost."""
    import pandas as pd

    encoder, rows = _make_encoder(options, model), []
    for pairs in read_sets(_list_sets(options), options.data_root, "concatenated"):
        sentences = list(dict.fromkeys(pairs.sentences))
        raw = np.asarray(encoder(sentences), dtype=np.float64)
        for treatment in parse_treatments([WHITENING, FIXED], seed=options.seed):
            image = np.asarray(treatment.fit(raw, OWN, pairs.name)(raw))
            row: dict[str, Any] = {"set": pairs.name, "repair": treatment.name, "n": len(raw)}
            for name in ("explained_variance_1", "rbf_distance", "token_uniformity"):
                row |= {
                    name: get(name)(image),
                    f"{name}_printed": find_uniformity(model, pairs.name, name, treatment.name),
                }
            row["lsds"] = math.nan if treatment.name == RAW else get("lsds")(raw, image)
            rows.append(row)
    title = f"Uniformity of sentences without and with repairs (Table 4) and LSDS (Fig. 6), {model}"
    return Results([Table("repaired", title, pd.DataFrame(rows))])


def _make_encoder(options: StudyOptions, model: str) -> Encoder:
    return Encoder(options.input(model, layers=LAYERS["paper"], pooling="mean"))


def _project_pairs(options: StudyOptions, model: str) -> Results:
    """Figs. 4 and 7: sentence pairs on a plane, raw and repaired."""
    import pandas as pd

    if find_spec("openTSNE") is None:
        text = "openTSNE is not installed, so that there is no projection; pip install 'isotrope[figures]'."
        return Results((), [Claim("note", text, "Figs. 4 and 7")])
    (pairs, *_) = read_sets(["sts-b"] if options.quick else None, options.data_root, "concatenated")
    count = min(_PAIRS, len(pairs.sentences) // 2)
    half = len(pairs.sentences) // 2
    chosen = np.sort(np.random.default_rng(options.seed).choice(half, size=count, replace=False))
    sentences = [pairs.sentences[i] for i in (*chosen, *(chosen + half))]
    raw = np.asarray(_make_encoder(options, model)(sentences), dtype=np.float64)
    parts = []
    kept = min(_KEPT, *raw.shape)
    for treatment in parse_treatments([f"whitening:dimensions={kept}", FIXED], seed=options.seed):
        image = np.asarray(treatment.fit(raw, OWN, pairs.name)(raw))
        x, y = project_tsne(np.asarray(image, dtype=np.float64), options.seed).T
        pair, side = np.tile(np.arange(count), 2), np.repeat([1, 2], count)
        parts.append(pd.DataFrame({"repair": treatment.name, "pair": pair, "sentence": side, "x": x, "y": y}))
    planes = pd.concat(parts, ignore_index=True)
    title = f"t-SNE of sentence pairs of {pairs.name}, {model}"
    return Results([Table("tsne", title, planes)], (), [make_pairs_figure(planes)])
