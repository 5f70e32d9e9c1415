"""What SoftDecay gains by model: depth, shared parameters and uniformity (Section 5.1 of Yan et al. 2022, Fig. 3)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from isotrope.compute.p_values import holm
from isotrope.drawing.style import BLUE, GREY, ORANGE, PAGE_WIDTH
from isotrope.evaluation.sts import MEAN
from isotrope.evaluation.treatments import RAW
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results, load_part
from isotrope.studies.uniformity.published import BEST, FIXED, GLUE_ROWS, TABLE_1, TABLES_2_AND_6, find_printed_gain
from isotrope.studies.uniformity.sentence_spectra import make_spectra_figure
from isotrope.studies.verdict import LEVEL, format_p, format_range, judge_all, judge_exact, judge_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WHERE = "Section 5.1, result 3"

#: Models that a rank correlation needs.
_FEWEST = 3


def join_models(options: StudyOptions) -> Results:
    """Result 3 of Section 5.1 and Fig. 3: gains and spectra of all models together."""
    frame = pd.DataFrame([{"model": model} | _describe_model(options, model) for model in options.names])
    spectra = pd.concat(
        [_load_table(options, f"{model} sentence spectra", "spectra").assign(model=model) for model in options.names]
    )
    first = str(spectra["set"].iloc[0])
    title = "Gain of SoftDecay (α −0.6) over raw rows on STS in per cent, with depth and uniformity, by model"
    caption = (
        f"Cumulative distribution of the singular values of the sentences of {first}, divided by the largest, by "
        "layer, before (above) and after (below) SoftDecay with α −0.6 in the last layer, all models (Fig. 3)."
    )
    gain = "Gain of SoftDecay over raw rows on STS with its 95 % interval (orange: shared parameters; cross: printed)."
    gains = make_figure("gains", gain, partial(_draw_gains, frame), width=PAGE_WIDTH, height=1 + 0.3 * len(frame))
    figures = [gains, make_spectra_figure(caption, spectra[spectra["set"] == first], "model")]
    claims = [judge_printed_gains(), *judge_printed_glue(), *judge_models(frame)]
    return Results([Table("gains", title, frame)], claims, figures)


def _load_table(options: StudyOptions, part: str, name: str) -> pd.DataFrame:
    """A table of an experiment that is saved already."""
    (frame,) = (table.frame for table in load_part(options.folder, part).tables if table.name == name)
    return frame


def _describe_model(options: StudyOptions, model: str) -> dict[str, Any]:
    """The gain of a model with its interval, and what the paper explains it by."""
    scores, differences = (_load_table(options, f"{model} sts paper", name) for name in ("scores", "differences"))
    whole = scores[~scores["set"].str.contains(".", regex=False)]
    over = MEAN if (whole["set"] == MEAN).any() else str(whole["set"].iloc[0])
    scores = scores[scores["set"] == over].drop_duplicates("repair").set_index("repair")
    layers, shape = (
        _load_table(options, f"{model} {part}", name)
        for part, name in (("layers", "layers"), ("sentence spectra", "shape"))
    )
    raw = float(scores.loc[RAW, "spearman"])
    chosen = (differences["set"] == over) & (differences["metric"] == "spearman") & (differences["against"] == RAW)
    gained = differences[chosen & (differences["repair"] == FIXED)].iloc[0]
    row: dict[str, Any] = {"blocks": len(layers) - 1, "shared": is_shared(options.input(model).load().config)}
    row |= {"over": over, "raw": raw, "softdecay": float(scores.loc[FIXED, "spearman"])}
    ends = {"gain %": "difference", "gain_low": "low", "gain_high": "high"}
    row |= {name: 100 * float(gained[column]) / abs(raw) for name, column in ends.items()}
    row["best α gain %"] = float(scores.loc[BEST, "gain %"]) if BEST in scores.index else math.nan
    row["printed gain %"] = find_printed_gain(model)
    row["uniformity"] = float(layers["sequence_uniformity"].iloc[-1])
    return row | {name: float(shape[name].iloc[0]) for name in shape.columns if name.startswith(("apart", "after"))}


def is_shared(config: Any) -> bool:
    """Whether blocks share their parameters, as those of ALBERT do."""
    groups = getattr(config, "num_hidden_groups", None)
    return groups is not None and groups < config.num_hidden_layers


def judge_printed_gains() -> Claim:
    """Whether the printed rows of Table 1 say that ALBERT gains most and DistilBERT least."""
    gains = {model: find_printed_gain(model) for model in TABLE_1}
    ordered = sorted(gains, key=lambda model: gains[model])
    text = (
        "the averages of Table 1 gain " + ", ".join(f"{gains[model]:.1f} % ({model})" for model in ordered[::-1]) + "."
    )
    holds = (ordered[0], ordered[-1]) == ("distilbert-base", "albert-base")
    return Claim(judge_exact(holds), text, _WHERE, evidence="printed numbers")


def judge_printed_glue() -> list[Claim]:
    """Whether the printed rows of Table 2 say what Section 5.2 says of its models and tasks."""
    gains = {
        model: {
            row: 100 * after / before - 100
            for row, before, after in zip(GLUE_ROWS, rows["base"], rows["softdecay"], strict=True)
        }
        for model, rows in TABLES_2_AND_6.items()
    }
    means = {model: float(np.mean(list(by.values()))) for model, by in gains.items()}
    rte, qnli = ([by[task, "accuracy"] for by in gains.values()] for task in ("rte", "qnli"))
    mrpc = {model: (by["mrpc", "accuracy"], by["mrpc", "f1"]) for model, by in gains.items()}
    order = sorted(means, key=means.__getitem__)
    shown = ", ".join(f"{mean:.2f} % ({model})" for model, mean in means.items())
    falls = [model for model, both in mrpc.items() if max(both) < 0]
    found = [
        (
            (order[-1], order[0]) == ("bert-base", "distilbert-base"),
            f"over the rows of Table 2 SoftDecay gains {shown}; the paper: most on BERT, less on DistilBERT.",
        ),
        (
            all(one > two > 0 for one, two in zip(rte, qnli, strict=True)),
            f"Table 2 gains {format_range(rte, '.2f')} % on RTE and {format_range(qnli, '.2f')} % on QNLI; the paper: "
            "gains on both for all models, more on the smaller RTE.",
        ),
        (
            falls == ["albert-base", "distilbert-base"],
            f"scores on MRPC fall in Table 2 for {' and '.join(falls)}; the paper: for ALBERT and DistilBERT.",
        ),
    ]
    return [
        Claim(judge_exact(holds), text, "Section 5.2, Table 2", evidence="printed numbers") for holds, text in found
    ]


def judge_models(frame: pd.DataFrame) -> list[Claim]:
    """Judge what is said of the models by p-values that are corrected for all comparisons of two models.

    Args:
        frame: a row for each model: `blocks`, `shared`, `uniformity`, and `gain %`, `apart` and `after` with the ends
            of their intervals.
    """
    found = list(_list_comparisons(frame))
    correlation = [_correlate(frame)] if len(frame) >= _FEWEST else []
    corrected = iter(holm([p for _, _, pairs in found for _, p in pairs] + [p for _, p in correlation]))
    claims = []
    for text, where, pairs in found:
        values = [(effect, next(corrected)) for effect, _ in pairs]
        evidence = f"largest {format_p(max(p for _, p in values))}, over {len(values)} pairs of models"
        claims.append(Claim(judge_all([judge_test(*value) for value in values]), text, where, evidence=evidence))
    for rho, _ in correlation:
        p = next(corrected)
        text = (
            "the gain of SoftDecay and the uniformity of tokens in the last layer have the rank correlation "
            f"{rho:.2f} over {len(frame)} models; the paper: models with more token uniformity gain more."
        )
        claims.append(Claim(judge_test(rho, p), text, _WHERE, rho, evidence=format_p(p)))
    if not claims:
        text = (
            "gains were compared for no two models: the paper's claims about depth and shared parameters need models "
            "of several depths, and one such as ALBERT beside another."
        )
        claims.append(Claim("note", text, _WHERE))
    return claims


#: Claims about two groups of models: what the first group has more of, the column, where, and the sentence.
_SHARED_CLAIMS = (
    ("gain %", 1, _WHERE, "SoftDecay gains more on models that share parameters across layers"),
    ("apart", -1, "Section 5.1, Fig. 3", "the spectra of layers are more alike where layers share parameters"),
    ("after", -1, "Section 5.1, Fig. 3", "after SoftDecay the last layer is less skewed where layers share parameters"),
)


def _list_comparisons(frame: pd.DataFrame) -> Iterator[tuple[str, str, list[tuple[float, float]]]]:
    """A sentence, its place in the paper, and effects with p-values of the pairs of models that it is about."""
    shared, others = frame[frame["shared"]], frame[~frame["shared"]]
    if len(shared) and len(others):
        names = f"{', '.join(shared['model'])} against {', '.join(others['model'])}"
        for column, sign, where, sentence in _SHARED_CLAIMS:
            pairs = [_compare(one, two, column, sign) for _, one in shared.iterrows() for _, two in others.iterrows()]
            yield f"{sentence}: {names}.", where, pairs
    shallow = frame[frame["blocks"] == frame["blocks"].min()]
    deep = frame[frame["blocks"] > frame["blocks"].min()]
    if len(deep):
        names = f"{', '.join(deep['model'])} against {', '.join(shallow['model'])}"
        pairs = [_compare(one, two, "gain %", 1) for _, one in deep.iterrows() for _, two in shallow.iterrows()]
        yield f"SoftDecay gains more on deeper models: {names}.", _WHERE, pairs


def _compare(one: Any, two: Any, column: str, sign: int) -> tuple[float, float]:
    """The difference of two models and its p-value by the normal approximation of their intervals, as independent."""
    stem = column.removesuffix(" %")
    width = 2 * stats.norm.ppf(1 - LEVEL / 2)
    errors = [(model[f"{stem}_high"] - model[f"{stem}_low"]) / width for model in (one, two)]
    effect = sign * float(one[column] - two[column])
    return effect, float(2 * stats.norm.sf(abs(effect) / math.hypot(*errors)))


def _correlate(frame: pd.DataFrame) -> tuple[float, float]:
    """Rank correlation of the gain with uniformity over models, and its p-value by permutation."""
    ranks = [stats.rankdata(frame[name]) for name in ("gain %", "uniformity")]
    if any(len(set(rank)) < 2 for rank in ranks):
        return math.nan, math.nan
    found = stats.permutation_test(
        (ranks[0],),
        lambda rank: np.corrcoef(rank, ranks[1])[0, 1],
        permutation_type="pairings",
        n_resamples=9_999,
        rng=np.random.default_rng(0),
    )
    return float(found.statistic), float(found.pvalue)


def _draw_gains(frame: pd.DataFrame, figure: Figure) -> None:
    axes, at = figure.subplots(), range(len(frame))
    colours = [ORANGE if shared else BLUE for shared in frame["shared"]]
    axes.hlines(at, frame["gain_low"], frame["gain_high"], color=colours, linewidth=1.2)
    axes.scatter(frame["gain %"], at, color=colours, s=16, zorder=3)
    axes.scatter(frame["printed gain %"], at, color=GREY, marker="x", s=16, zorder=3)
    axes.axvline(0.0, color=GREY, linewidth=0.6)
    axes.set_yticks(at, [f"{row.model}, {row.blocks} blocks" for row in frame.itertuples()])
    axes.set_ylim(len(frame) - 0.5, -0.5)
    axes.set_xlabel("gain of SoftDecay in per cent")
