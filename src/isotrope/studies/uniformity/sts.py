"""Scores on STS with and without repairs: Table 1 of Yan et al. 2022."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.drawing.style import COLOURS, PAGE_WIDTH, SMALL_FONT_SIZE
from isotrope.errors import InputError
from isotrope.evaluation.metrics import Correlation
from isotrope.evaluation.pairs import read_sets
from isotrope.evaluation.significance import Difference, compare
from isotrope.evaluation.sts import LAYERS, MEAN, cosines, evaluate_sts
from isotrope.evaluation.treatments import RAW
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import find_blocks
from isotrope.studies.uniformity.published import BEST, FIXED, WHITENING, find_sts_score, name_fit_text, name_row
from isotrope.studies.verdict import format_p, judge_all, judge_test

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: α of SoftDecay: the paper searches these on the test sets (footnote 5), and fixes −0.6 in Appendix B.
_ALPHAS = (-0.2, -0.4, -0.6, -0.8, -1.0)

#: Columns that whitening is cut to, and the repair itself.
_CUT = 256
_WHITENING_CUT = f"{WHITENING}:dimensions={_CUT}"

#: Comparisons that are judged, a repair and what it is compared with, whatever they are fitted on.
_JUDGED = [f"{FIXED}/{RAW}", f"{WHITENING}/{RAW}", f"{FIXED}/{WHITENING}", f"{WHITENING}/flow", f"flow/{WHITENING}"]

#: Columns of a score that a mean over several α's does not have.
_OF_ONE_ALPHA = ["low", "high", "pearson", "pearson_low", "pearson_high"]

#: What claims call some of the repairs.
_LABELS = {RAW: "raw rows", FIXED: "SoftDecay (α −0.6)"}

#: Pairs of STS-B that a quick study scores.
_QUICK_PAIRS = 300


def list_sets(options: StudyOptions) -> list[str] | None:
    """The sets of a study, None for all that the data holds."""
    return ["sts-b"] if options.quick else None


def make_encoder(options: StudyOptions, model: str) -> Encoder:
    """The sentence vectors of the paper: the mean over tokens of the first and the last layer."""
    layers = find_encoder_layers(options, model) or LAYERS["paper"]
    return Encoder(options.input(model, layers=layers, pooling="mean"))


def find_encoder_layers(options: StudyOptions, model: str) -> str | None:
    """The first and the last layer of the encoder of an encoder-decoder; None for a model of one stack.

    The last layer of the whole model is the decoder's, whose rows no mean joins with the encoder's.
    """
    loaded = options.input(model).load()
    return f"1,{len(find_blocks(loaded.model.get_encoder())[1])}" if loaded.encoder_decoder else None


def _list_repairs(options: StudyOptions, wide: bool) -> list[str]:
    """Repairs that are fitted on the sentences of each set. wide: whether rows have the columns that are cut to."""
    if options.quick:
        return [WHITENING, FIXED]
    softdecay = (f"softdecay:alpha={alpha:g}:form=paper" for alpha in _ALPHAS)
    return [WHITENING, *([_WHITENING_CUT] if wide else []), "flow", *softdecay]


def score_sts(
    options: StudyOptions, model: str, protocol: str, fit_text: str | Path | Sequence[str] | None = None
) -> Results:
    """Table 1 by one protocol, with the printed numbers if the model is the same.

    Args:
        options: of the study.
        model: its short name.
        protocol: "paper" or "concatenated".
        fit_text: the text that flow and whitening are fitted on in rows of their own, such as sentences of NLI.
    """
    evaluate = partial(
        evaluate_sts,
        model=options.path(model),
        data=options.data_root,
        sets=list_sets(options),
        protocol=protocol,
        layers=find_encoder_layers(options, model) if protocol == "paper" else None,
        seed=options.seed,
        device=options.device,
        batch_size=options.batch_size,
        progress=options.progress,
    )
    wide = not options.quick and make_encoder(options, model)(["a"]).shape[1] > _CUT
    found = evaluate(repairs=_list_repairs(options, wide), against=[RAW, WHITENING])
    scores, differences = found.to_frame(), found.to_frame("differences")
    # Whitening against no repair is there the other way round.
    differences = differences[(differences["against"] == RAW) | (differences["repair"] != RAW)]
    if fit_text is not None:
        repairs = [WHITENING] if options.quick else [WHITENING, *([_WHITENING_CUT] if wide else []), "flow"]
        more = evaluate(repairs=repairs, fit_text=fit_text, against=[RAW] if options.quick else [RAW, "flow"])
        fitted = [_name_fitted(more.to_frame(name), fit_text) for name in ("scores", "differences")]
        scores = pd.concat([scores, fitted[0]], ignore_index=True)
        differences = pd.concat([differences, fitted[1]], ignore_index=True)
    notes = []
    if not options.quick:
        try:
            more = evaluate(pooling="sbert-wk", layers=None).to_frame().assign(repair="sbert-wk")
            scores = pd.concat([scores, more], ignore_index=True)
        except InputError as error:
            notes.append(Claim("note", f"there is no row of SBERT-WK for {model}: {error}", "Table 1", model=model))
    scores = complete_scores(scores.assign(model=model), model, protocol)
    title = f"Points that repairs gain, with intervals and p-values, protocol {protocol}, {model}"
    tables = [
        Table("scores", f"Spearman × 100 on STS, protocol {protocol}, {model}", scores),
        Table("differences", title, differences),
    ]
    caption = "Spearman × 100 on each set, raw and repaired, with 95 % intervals (Table 1)."
    draw = partial(draw_scores, scores[~scores["set"].str.contains(".", regex=False)], "set", "repair", "spearman")
    figure = make_figure("sts", caption, draw, width=PAGE_WIDTH, height=2.6)
    return Results(tables, [*judge_sts(model, protocol, differences), *notes], [figure])


def _name_fitted(frame: pd.DataFrame, fit_text: str | Path | Sequence[str]) -> pd.DataFrame:
    """Scores or differences of repairs that were fitted on a text, under the names of Table 1's rows."""
    text = name_fit_text(fit_text)
    kept: pd.DataFrame = frame[frame["repair"] != RAW].copy()
    kept["repair"] = [name_row(repair, text) for repair in kept["repair"]]
    if "against" in kept:
        kept["against"] = [against if against == RAW else name_row(against, text) for against in kept["against"]]
    if "fitted_on" in kept:
        kept["fitted_on"] = text
    return kept


def complete_scores(scores: pd.DataFrame, model: str, protocol: str) -> pd.DataFrame:
    """Add the rows of the best α, the gain in per cent and the printed scores.

    Args:
        scores: set, repair and spearman, a row for each system and set.
        model: its short name.
        protocol: "paper" or "concatenated".
    """
    found = pd.concat([scores, select_best_alpha(scores)], ignore_index=True)
    found["gain %"] = _relative_gain(found)
    sets = [name for name in dict.fromkeys(found["set"]) if name != MEAN and "." not in name]
    found["printed"] = [
        find_sts_score(model, *row, protocol, sets) for row in zip(found["set"], found["repair"], strict=True)
    ]
    first = ["set", "repair", "spearman", "printed", "gain %"]
    ordered: pd.DataFrame = found[[*first, *(name for name in found.columns if name not in first)]]
    return ordered


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


def select_best_alpha(scores: pd.DataFrame) -> pd.DataFrame:
    """Select a row for each set with the best of SoftDecay's α's, where there are several.

    The α is chosen on the very scores that it is then shown with, as the paper does (footnote 5). The mean is that of
    the sets' rows, each with its own α, and has no interval.
    """
    candidates: pd.DataFrame = scores[scores["repair"].str.startswith("softdecay:")]
    if candidates["repair"].nunique() < 2:
        candidates = candidates.head(0)
    best: pd.DataFrame = candidates.sort_values("spearman", ascending=False).drop_duplicates("set").assign(repair=BEST)
    mean, whole = best["set"] == MEAN, ~best["set"].str.contains(".", regex=False)
    best.loc[mean, best.columns.intersection(_OF_ONE_ALPHA)] = np.nan
    best.loc[mean, "spearman"] = best.loc[whole & ~mean, "spearman"].mean()
    return best


def judge_sts(model: str, protocol: str, differences: pd.DataFrame) -> list[Claim]:
    """Judge what Section 5.1 says of Table 1 by p-values that are corrected for the number of comparisons judged.

    Whitening and SoftDecay gain over no repair, whitening over flow, and SoftDecay over whitening on every set. The
    correction is for these alone: all differences of the evaluation are so many that none could be significant.

    Args:
        model: its short name.
        protocol: "paper" or "concatenated".
        differences: set, metric, repair, against, the difference in points, and its p-value.
    """
    whole = ~differences["set"].str.contains(".", regex=False)
    here = differences[whole & (differences["metric"] == "spearman")]
    over = MEAN if (here["set"] == MEAN).any() else str(here["set"].iloc[0])
    kinds = [row.repair.partition(" ")[0] + "/" + row.against.partition(" ")[0] for row in here.itertuples()]
    at_mean = here[(here["set"] == over) & np.isin(kinds, _JUDGED)]
    by_set = here[(here["set"] != MEAN) & (here["repair"] == FIXED) & (here["against"] == WHITENING)]
    by_set = by_set if len(by_set) > 1 else by_set.head(0)
    judged = pd.concat([at_mean, by_set])
    judged["p_judged"] = holm(judged["p"].tolist())
    claims = []
    for row in judged.head(len(at_mean)).to_dict("records"):
        sign = -1 if row["repair"] == "flow" else 1
        first, second = (row["repair"], row["against"])[::sign]
        points, p = sign * float(row["difference"]), float(row["p_judged"])
        text = (
            f"{_LABELS.get(first, first)} is {points:+.2f} points from {_LABELS.get(second, second)} on {over}, "
            f"protocol {protocol}, {model}; the paper: ahead."
        )
        claims.append(Claim(judge_test(points, p), text, "Table 1", points, evidence=format_p(p), model=model))
    if len(by_set):
        claims.append(_judge_every_set(model, protocol, judged.tail(len(by_set))))
    return claims


def _judge_every_set(model: str, protocol: str, rows: pd.DataFrame) -> Claim:
    """Whether SoftDecay is ahead of whitening on every set."""
    outcomes = [judge_test(*pair) for pair in zip(rows["difference"], rows["p_judged"], strict=True)]
    ahead, behind = (outcomes.count(outcome) for outcome in ("agrees", "contradicts"))
    text = (
        f"SoftDecay with α −0.6 is ahead of whitening on {ahead} of {len(rows)} sets and behind on {behind}, protocol "
        f"{protocol}, {model}; the paper: ahead of the best baseline on all seven, with the best α of each set."
    )
    evidence = f"largest {format_p(rows['p_judged'].max())}"
    return Claim(judge_all(outcomes), text, "Table 1", float(ahead), float(len(rows)), evidence, model)


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
