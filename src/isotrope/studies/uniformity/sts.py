"""STS with and without repairs, and what repairs do to sentences: Tables 1 and 4 of Yan et al. 2022."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.projections import project_tsne
from isotrope.drawing.style import BLUE, COLOURS, GREY, ORANGE, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.evaluation.metrics import Correlation
from isotrope.evaluation.pairs import read_sets
from isotrope.evaluation.significance import Difference, compare
from isotrope.evaluation.sts import LAYERS, MEAN, cosines, evaluate_sts
from isotrope.evaluation.treatments import OWN, RAW, parse_treatments
from isotrope.measures import get
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions, to_model
from isotrope.studies.result import Claim, Table, judge_gain
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.published import FIXED, WHITENING, find_sts_score, find_uniformity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: α of SoftDecay: the paper searches these on the test sets (footnote 5), and fixes −0.6 in Appendix B.
_ALPHAS = (-0.2, -0.4, -0.6, -0.8, -1.0)

#: Pairs that t-SNE projects, about, and the directions that whitening keeps there: all of them would make every two
#: of so few rows equally far apart.
_PAIRS, _KEPT = 400, 64

#: Pairs of STS-B that a quick study scores.
_QUICK_PAIRS = 300

#: What the row of the best α is called: chosen on the very scores that it is then shown with, as the paper does.
_BEST = "softdecay, best α"


def _list_sets(options: StudyOptions) -> list[str] | None:
    return ["sts-b"] if options.quick else None


def _list_repairs(options: StudyOptions) -> list[str]:
    if options.quick:
        return [WHITENING, FIXED]
    softdecay = (f"softdecay:alpha={alpha:g}:form=paper" for alpha in _ALPHAS)
    return [WHITENING, "whitening:dimensions=256", "flow", *softdecay]


def score_sts(options: StudyOptions, model: str, protocol: str) -> Results:
    """Table 1 by one protocol, with the printed numbers if the model is the same."""
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
    scores = pd.concat([scores, _select_best_alpha(scores)], ignore_index=True)
    scores["gain %"] = _relative_gain(scores)
    scores["printed"] = [
        find_sts_score(model, *row, protocol) for row in zip(scores["set"], scores["repair"], strict=True)
    ]
    title = f"Points that repairs gain, with intervals and p-values, protocol {protocol}, {model}"
    tables = [
        Table("scores", f"Spearman × 100 on STS, protocol {protocol}, {model}", scores),
        Table("differences", title, differences),
    ]
    caption = "Spearman × 100 on each set, raw and repaired, with 95 % intervals (Table 1)."
    draw = partial(draw_scores, scores[~scores["set"].str.contains(".", regex=False)], "set", "repair", "spearman")
    figure = make_figure("sts", caption, draw, width=PAGE_WIDTH, height=2.6)
    return Results(tables, _judge_sts(model, protocol, differences), [figure])


def score_on_sts_b(
    options: StudyOptions, column: str, encoders: Iterable[tuple[str, Encoder]]
) -> tuple[list[dict[str, Any]], Mapping[str, Difference]]:
    """Score encoders on STS-B, or on some of its pairs in a quick study.

    Args:
        options: of the study.
        column: the column of their names.
        encoders: with their names; each is used before the next one is asked for.

    Returns:
        A row for each encoder with its score × 100, and the differences of the others from the first.
    """
    (found,) = read_sets(["sts-b"], options.data_root, "concatenated")
    pairs = found.parts[0].pairs[: _QUICK_PAIRS if options.quick else None]
    sentences, gold = [p.first for p in pairs] + [p.second for p in pairs], np.array([p.gold for p in pairs])
    systems = {name: Correlation(cosines(encoder(sentences)), gold, "spearman") for name, encoder in encoders}
    compared = compare(systems, seed=options.seed, items="sts-b")
    rows: list[dict[str, Any]] = [
        {column: name, "spearman": 100 * score.value, "low": 100 * score.low, "high": 100 * score.high}
        for name, score in compared.scores.items()
    ]
    return rows, compared.differences


def _relative_gain(scores: pd.DataFrame) -> pd.Series[float]:
    """Δ %: the gain in per cent of the size of the score without a repair, on the same set."""
    raw = scores[scores["repair"] == RAW].drop_duplicates("set").set_index("set")["spearman"]
    before = scores["set"].map(raw)
    return 100.0 * (scores["spearman"] - before) / before.abs()


def _select_best_alpha(scores: pd.DataFrame) -> pd.DataFrame:
    """A row for each set with the best of SoftDecay's α's, where there are several."""
    candidates: pd.DataFrame = scores[scores["repair"].str.startswith("softdecay:")]
    if candidates["repair"].nunique() < 2:
        candidates = candidates.head(0)
    best: pd.DataFrame = candidates.sort_values("spearman", ascending=False).drop_duplicates("set").assign(repair=_BEST)
    return best


def _judge_sts(model: str, protocol: str, differences: pd.DataFrame) -> list[Claim]:
    """Whether whitening and SoftDecay gain over no repair, and SoftDecay over whitening, as Table 1 has it.

    differences: set, metric, repair, against, and points with their interval.
    """
    over = MEAN if (differences["set"] == MEAN).any() else str(differences["set"].iloc[0])
    here = differences[(differences["set"] == over) & (differences["metric"] == "spearman")]
    claims = []
    for row in here.to_dict("records"):
        if row["repair"] not in (FIXED, WHITENING):
            continue
        text = (
            f"{row['repair']} is {row['difference']:+.2f} points ({row['low']:+.2f} to {row['high']:+.2f}) from "
            f"{'raw rows' if row['against'] == RAW else row['against']} on {over}, protocol {protocol}, {model}; "
            "the paper: ahead on all of its models."
        )
        claims.append(Claim(judge_gain(row["low"], row["high"]), text, "Table 1", float(row["difference"])))
    return claims


def draw_scores(frame: pd.DataFrame, by: str, of: str, column: str, figure: Figure) -> None:
    """Draw a group for each value of `by`, and in it a point with its interval for each value of `of`."""
    axes = figure.subplots()
    groups, kinds = list(dict.fromkeys(frame[by])), list(dict.fromkeys(frame[of]))
    for number, kind in enumerate(kinds):
        rows = frame[frame[of] == kind].set_index(by)
        at = [groups.index(group) + 0.7 * ((number + 0.5) / len(kinds) - 0.5) for group in rows.index]
        colour = COLOURS[number % len(COLOURS)]
        axes.vlines(at, rows["low"].astype(float), rows["high"].astype(float), color=colour, linewidth=0.8)
        marker = "os^Dv"[number // len(COLOURS) % 5]
        axes.scatter(at, rows[column].astype(float), s=9, color=colour, marker=marker, label=kind)
    axes.set_xlim(-0.5, len(groups) - 0.5)
    axes.set_xticks(range(len(groups)), groups, rotation=20 if len(groups) > 4 else 0)
    axes.set_ylabel("score × 100")
    figure.legend(loc="outside right center", fontsize=SMALL_FONT_SIZE)


def measure_repairs(options: StudyOptions, model: str) -> Results:
    """Table 4 and Fig. 6: uniformity before and after, and how much of the neighbourhoods is lost."""
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


def project_pairs(options: StudyOptions, model: str) -> Results:
    """Figs. 4 and 7: sentence pairs on a plane, raw and repaired."""
    if find_spec("openTSNE") is None:
        text = "openTSNE is not installed, so that there is no projection; pip install 'isotrope[figures]'."
        return Results.note(text, "Figs. 4 and 7")
    (pairs, *_) = read_sets(_list_sets(options), options.data_root, "concatenated")
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
    caption = (
        "Sentence pairs by t-SNE, raw and repaired; the two sentences of a pair have two colours and a line between."
    )
    figure = make_figure("tsne", caption, partial(_draw_pairs, planes), width=PAGE_WIDTH, height=2.5)
    return Results([Table("tsne", title, planes)], (), [figure])


def _draw_pairs(planes: pd.DataFrame, figure: Figure) -> None:
    names = list(dict.fromkeys(planes["repair"]))
    for axes, name in zip(figure.subplots(1, len(names), squeeze=False).flat, names, strict=True):
        rows = planes[planes["repair"] == name]
        first, second = (rows[rows["sentence"] == side].sort_values("pair") for side in (1, 2))
        axes.plot([first["x"], second["x"]], [first["y"], second["y"]], color=GREY, linewidth=0.2, zorder=1)
        for side, colour in ((first, BLUE), (second, ORANGE)):
            axes.scatter(side["x"], side["y"], s=2.5, linewidth=0, color=colour, zorder=2)
        axes.set_title("raw" if name == "none" else name)
        axes.set_aspect("equal", adjustable="datalim")
        axes.set_axis_off()  # its directions and distances mean nothing
