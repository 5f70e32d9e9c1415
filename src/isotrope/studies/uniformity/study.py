"""Token uniformity, its repair and what that gains: the protocol of Yan et al. 2022 (SoftDecay)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.drawing.tsne import tsne
from isotrope.errors import InputError
from isotrope.evaluation.pairs import PROTOCOLS, read_sets
from isotrope.evaluation.sts import LAYERS, MEAN, evaluate_sts
from isotrope.evaluation.treatments import OWN, RAW, treatments
from isotrope.finetuning.settings import Training
from isotrope.measures import get
from isotrope.repairs.fit_data import saved_summary
from isotrope.sources import EMBEDDED
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.figures import of_run
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import Options
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Made, Task, carry_out
from isotrope.studies.uniformity import glue as uniformity_glue
from isotrope.studies.uniformity.ablations import other_blocks, parts_off, positions, time_of_svd
from isotrope.studies.uniformity.claims import FIXED, WHITENING, best_alpha, bound_claims, depth_claims, sts_claims
from isotrope.studies.uniformity.contrastive import contrastive
from isotrope.studies.uniformity.figures import OF_RUN, bound_picture, sts_picture, tsne_picture
from isotrope.studies.uniformity.published import MISPRINTS, SETS, TABLE_1, TABLE_4, TABLE_4_MODELS, table_model
from isotrope.studies.uniformity.rank_bound import rank_bound

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

#: Pairs of which t-SNE is drawn, about, and the directions that whitening keeps there: all of them would make every two
#: of so few rows equally far apart.
_PAIRS, _KEPT = 400, 64


def uniformity(
    *,
    output: str | Path,
    models: Sequence[str | Path] = (),
    text: str | Path | Sequence[str] | None = None,
    data: str | Path | None = None,
    texts: int | None = None,
    tasks: Sequence[str] | None = None,
    seeds: int = 5,
    train_rows: int | None = None,
    epochs: int = Training.epochs,
    learning_rate: float = Training.learning_rate,
    quick: bool = False,
    seed: int = 0,
    batch_size: int | None = None,
    device: str = "auto",
    resume: bool = False,
    progress: Any = None,
    say: Any = None,
) -> Study:
    """Spectra and uniformity by layer, the theorem's bound, STS by both protocols, repairs, GLUE, ablations.

    data: folder of the STS sets and of GLUE, without which those parts are left out. tasks: of GLUE, by default all
    that are there, none for an empty list; seeds, train_rows, epochs and learning_rate: of fine-tuning. quick: STS-B
    alone, one task, fewer repairs and methods.
    """
    options = Options.among(locals())
    if seeds < 1:
        raise InputError(f"got {seeds} seeds, expected at least one.")
    plan = FineTuning.planned(options, tasks, train_rows, epochs, learning_rate)
    todo = [Task("misprints", lambda: Made((), [Claim("misprint", text) for text in MISPRINTS]))]
    for model in options.names:
        parts = {"layers": _layers, "bound": _bound, "parts off": parts_off, "svd time": time_of_svd}
        if options.data_root is not None:
            parts |= {f"sts {protocol}": partial(_sts, protocol=protocol) for protocol in PROTOCOLS}
            parts |= {"repaired": _repaired, "tsne": _tsne, "other blocks": other_blocks, "simcse": contrastive}
        todo += [Task(f"{model} {name}", partial(make, options, model)) for name, make in parts.items()]
        if plan.data:
            todo.append(Task(f"{model} positions", partial(positions, options, plan, model)))
            todo.append(Task(f"{model} glue", partial(uniformity_glue.tables, options, plan, seeds, model)))
            todo.append(Task(f"{model} glue sizes", partial(uniformity_glue.sizes, options, plan, model)))
            if not quick:
                todo.append(Task(f"{model} glue blocks", partial(uniformity_glue.blocks, options, plan, model)))
    lacking = [name for name, there in (("STS", options.data_root is not None), ("GLUE", bool(plan.data))) if not there]
    if lacking:
        told = f"without data or tasks (--data, --tasks) there are no tables of {' and '.join(lacking)}."
        todo.append(Task("without data", lambda: Made((), [Claim("note", told, "Tables 1 and 2")])))
    settings = options.settings(seeds=seeds) | plan.settings()
    first = partial(_announce, options, plan, seeds)
    return carry_out("uniformity", PAPER, todo, settings, options.folder, resume=resume, progress=progress, first=first)


def _announce(options: Options, plan: FineTuning, seeds: int) -> None:
    """Say how long reading, measuring and fine-tuning will take."""
    options.announce(",".join(_BY_LAYER), 5.0)  # once whole, and with parts switched off
    times = uniformity_glue.runs_per_seed(options) * (1 if options.quick else seeds) + 2
    plan.announce(options, lambda model: options.input(model).load(), dict.fromkeys(options.names, times))


def _layers(options: Options, model: str) -> Made:
    """Figs. 1 to 3, 5 and 8 to 13: spectra and uniformity by layer."""
    import pandas as pd

    findings = options.scan(model, options.source(model), ",".join(_BY_LAYER))
    rows = []
    for layer in findings.layers:
        by = {r.measure: r for r in findings.readings if r.layer == layer and r.group is None}
        row: dict[str, Any] = {"layer": layer} | {name: by[name].value for name in _BY_LAYER}
        for name in ("sequence_uniformity", "cls_uniformity", "token_uniformity"):
            row |= {f"{name}_low": by[name].low, f"{name}_high": by[name].high}
        rows.append(row)
    frame = pd.DataFrame(rows)
    tables = [Table("layers", f"Spectra and uniformity of tokens and [CLS] by layer, {model}", frame)]
    if "sequence_cdf" in findings.tables:
        title = f"CDF of singular values of sequences, each divided by its largest, by layer, {model}"
        tables.append(Table("cdf", title, findings.tables["sequence_cdf"]))
    return Made(tables, depth_claims(model, frame), of_run(options.run_folder(model), OF_RUN))


def _bound(options: Options, model: str) -> Made:
    """The theorem's bound, with its measured slack, by layer."""
    import pandas as pd

    findings = options.scan(model, options.source(model), ",".join(_BY_LAYER))
    rows = []
    for layer in findings.layers:
        sample = saved_summary(options.run_folder(model), layer).sample
        assert sample is not None
        rows += [{"layer": layer} | row for row in rank_bound(sample)]
    frame = pd.DataFrame(rows)
    title = f"Furthest token from the top k directions of its sequence beside σ of the next, by layer, {model}"
    return Made([Table("bound", title, frame)], bound_claims(frame), [bound_picture(frame)])


def _sets(options: Options) -> list[str] | None:
    return ["sts-b"] if options.quick else None


def _repairs(options: Options) -> list[str]:
    if options.quick:
        return [WHITENING, FIXED]
    bent = (f"softdecay:alpha={alpha:g}:form=paper" for alpha in ALPHAS)
    return [WHITENING, "whitening:dimensions=256", "flow", *bent]


def _sts(options: Options, model: str, protocol: str) -> Made:
    """Table 1 by one protocol, beside what is printed where the model is the same."""
    import pandas as pd

    place = {"model": None if model == EMBEDDED else model, "data": options.data_root, "sets": _sets(options)}
    how = {"protocol": protocol, "seed": options.seed, "device": options.device, "batch_size": options.batch_size}
    found = evaluate_sts(**place, **how, repairs=_repairs(options), against=[RAW, WHITENING], progress=options.progress)  # type: ignore[arg-type]
    scores, differences = found.to_frame(), found.to_frame("differences")
    # Whitening against no repair is there the other way round.
    differences = differences[(differences["against"] == RAW) | (differences["repair"] != RAW)]
    if not options.quick:
        more = evaluate_sts(**place, **how, pooling="sbert-wk", progress=options.progress)  # type: ignore[arg-type]
        scores = pd.concat([scores, more.to_frame().assign(repair="sbert-wk")], ignore_index=True)
    scores = pd.concat([scores, best_alpha(scores)], ignore_index=True)
    scores["gain %"] = _gain(scores)
    scores["printed"] = [_printed(model, *row, protocol) for row in zip(scores["set"], scores["repair"], strict=True)]
    tables = [
        Table("scores", f"Spearman × 100 on STS, protocol {protocol}, {model}", scores),
        Table(
            "differences",
            f"Points that repairs gain, with intervals and p-values, protocol {protocol}, {model}",
            differences,
        ),
    ]
    return Made(tables, sts_claims(model, protocol, differences), [sts_picture(scores)])


def _gain(scores: pd.DataFrame) -> pd.Series[float]:
    """Δ %: how much more than without a repair, in per cent of that, on the same set."""
    raw = scores[scores["repair"] == RAW].drop_duplicates("set").set_index("set")["spearman"]
    gained: pd.Series[float] = 100.0 * (scores["spearman"] / scores["set"].map(raw) - 1.0)
    return gained


def _printed(model: str, name: str, repair: str, protocol: str) -> float:
    """What Table 1 prints, NaN where it has no such row."""
    known = table_model(model)
    row = TABLE_1[known].get(repair) if known else None
    if row is None or protocol != "paper" or name not in (*SETS, MEAN):
        return math.nan
    return float(np.mean(row)) if name == MEAN else row[SETS.index(name)]


def _repaired(options: Options, model: str) -> Made:
    """Table 4 and Fig. 6: uniformity before and after, and how much of the neighbourhoods is lost."""
    import pandas as pd

    encoder, rows = _encoder(options, model), []
    for pairs in read_sets(_sets(options), options.data_root, "concatenated"):
        sentences = list(dict.fromkeys(pairs.sentences))
        raw = np.asarray(encoder(sentences), dtype=np.float64)
        for treatment in treatments([WHITENING, FIXED], seed=options.seed):
            image = np.asarray(treatment.fit(raw, OWN, pairs.name)(raw))
            row: dict[str, Any] = {"set": pairs.name, "repair": treatment.name, "n": len(raw)}
            for name in ("explained_variance_1", "rbf_distance", "token_uniformity"):
                row |= {name: get(name)(image), f"{name}_printed": _printed_4(model, pairs.name, name, treatment.name)}
            row["lsds"] = math.nan if treatment.name == RAW else get("lsds")(raw, image)
            rows.append(row)
    title = f"Uniformity of sentences without and with repairs (Table 4) and LSDS (Fig. 6), {model}"
    return Made([Table("repaired", title, pd.DataFrame(rows))])


def _printed_4(model: str, name: str, measure: str, repair: str) -> float:
    known = table_model(model)
    if known not in TABLE_4_MODELS or name not in TABLE_4 or repair not in (RAW, FIXED):
        return math.nan
    value = TABLE_4[name][measure][2 * TABLE_4_MODELS.index(known) + (repair == FIXED)]
    return math.nan if value is None else value


def _encoder(options: Options, model: str) -> Encoder:
    return Encoder(options.input(model, layers=LAYERS["paper"], pooling="mean"))


def _tsne(options: Options, model: str) -> Made:
    """Figs. 4 and 7: sentence pairs on a plane, raw and repaired."""
    import pandas as pd

    if find_spec("openTSNE") is None:
        told = "openTSNE is not installed, so that no plane was made; pip install 'isotrope[figures]'."
        return Made((), [Claim("note", told, "Figs. 4 and 7")])
    (pairs, *_) = read_sets(["sts-b"] if options.quick else None, options.data_root, "concatenated")
    count = min(_PAIRS, len(pairs.sentences) // 2)
    half = len(pairs.sentences) // 2
    chosen = np.sort(np.random.default_rng(options.seed).choice(half, size=count, replace=False))
    sentences = [pairs.sentences[i] for i in (*chosen, *(chosen + half))]
    raw = np.asarray(_encoder(options, model)(sentences), dtype=np.float64)
    parts = []
    kept = min(_KEPT, *raw.shape)
    for treatment in treatments([f"whitening:dimensions={kept}", FIXED], seed=options.seed):
        image = np.asarray(treatment.fit(raw, OWN, pairs.name)(raw))
        parts.append(_plane(treatment.name, count, tsne(np.asarray(image, dtype=np.float64), options.seed)))
    planes = pd.concat(parts, ignore_index=True)
    title = f"t-SNE of sentence pairs of {pairs.name}, {model}"
    return Made([Table("tsne", title, planes)], (), [tsne_picture(planes)])


def _plane(repair: str, count: int, plane: Any) -> pd.DataFrame:
    import pandas as pd

    pair, side = np.tile(np.arange(count), 2), np.repeat([1, 2], count)
    columns = {"repair": repair, "pair": pair, "sentence": side, "x": plane[:, 0], "y": plane[:, 1]}
    frame: pd.DataFrame = pd.DataFrame(columns)
    return frame
