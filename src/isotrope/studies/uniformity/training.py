"""SoftDecay in training: the GLUE tables of Yan et al. 2022, the block and the number of rows, and SimCSE."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.drawing.style import COLOURS, PAGE_WIDTH
from isotrope.errors import InputError, MissingExtra
from isotrope.finetuning.settings import ALPHAS, METHODS, Training
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.figures import make_figure
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions, to_model
from isotrope.studies.representative_sample import split_sequences
from isotrope.studies.result import Claim, Table, judge_gain, rank_correlation
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import count_blocks
from isotrope.studies.uniformity.published import SETS, TABLE_5, find_glue_score
from isotrope.studies.uniformity.sts import draw_scores, score_on_sts_b

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: What a study compares, and a quick one: the α's that SoftDecay begins with are the paper's, or the middle one.
_METHODS, _QUICK_METHODS = [name for name in METHODS if name != "base"], ["softdecay"]
_QUICK_ALPHAS = (-0.5,)

#: Shares of the training rows.
_SHARES, _QUICK_SHARES = (0.125, 0.25, 0.5, 1.0), (0.25, 1.0)

#: α that the layer begins with, and the sentences that are learnt from, at most, also in a quick study.
_ALPHA, _SENTENCES, _QUICK_SENTENCES = -0.5, 100_000, 300

_PLAIN, _WITH = "simcse", "simcse+softdecay"


def count_runs(options: StudyOptions) -> int:
    """How many models each seed trains on a task."""
    methods, alphas = (_QUICK_METHODS, _QUICK_ALPHAS) if options.quick else (_METHODS, ALPHAS)
    return 1 + sum(len(alphas) if METHODS[name].softdecay else 1 for name in methods)


def compare_methods(options: StudyOptions, model: str, plan: FineTuning, seeds: int) -> Results:
    """Tables 2 and 6: all methods on all tasks over seeds, with the printed numbers."""
    how: dict[str, Any] = {"methods": _METHODS, "alphas": ALPHAS, "seeds": seeds}
    if options.quick:
        how = {"methods": _QUICK_METHODS, "alphas": _QUICK_ALPHAS, "seeds": 1}
    found = plan.evaluate(f"{model} methods", to_model(model), **how)
    scores = found.to_frame()
    scores["printed"] = [
        find_glue_score(model, *row) for row in zip(scores["task"], scores["metric"], scores["method"], strict=True)
    ]
    differences = found.to_frame("differences")
    kept, spectra = scores.drop(columns=["seeds", "values"]), found.to_frame("spectra")
    tables = [
        Table("scores", f"Scores × 100 on GLUE's validation rows over seeds, {model}", kept),
        Table("differences", f"Points that methods gain, with intervals and p-values, {model}", differences),
        Table("alphas", f"Where α of SoftDecay goes in training, {model}", found.to_frame("alphas")),
        Table("spectra", f"CDF of singular values of sequences before and after training, {model}", spectra),
    ]
    caption = "Scores × 100 by task and method, with 95 % intervals over seeds (Tables 2 and 6)."
    lines = scores.assign(line=scores["task"] + " " + scores["metric"])
    draw = partial(draw_scores, lines, "line", "method", "mean")
    figure = make_figure("glue", caption, draw, width=PAGE_WIDTH, height=2.6)
    return Results(tables, _judge_glue(model, differences), [figure])


def _judge_glue(model: str, differences: pd.DataFrame) -> list[Claim]:
    """Whether SoftDecay gains in fine-tuning (Table 2)."""
    claims = []
    first = differences[(differences["against"] == "base") & differences["method"].str.startswith("softdecay")]
    for (task, metric), rows in first.groupby(["task", "metric"], sort=False):
        row = rows.iloc[0]
        spread = f"({row['low']:+.2f} to {row['high']:+.2f})" if row["n"] > 1 else "(no interval)"
        text = (
            f"{row['method']} changes {model} on {task}, {metric}, by {row['difference']:+.2f} points {spread}, seeds: "
            f"{row['n']}; the paper: gains, most of them on small sets."
        )
        claims.append(Claim(judge_gain(row["low"], row["high"]), text, "Table 2", float(row["difference"])))
    return claims


def compare_blocks(options: StudyOptions, model: str, plan: FineTuning) -> Results:
    """Footnote 3: SoftDecay in each block in turn, in training, one seed and one α."""
    count, rows = count_blocks(options.input(model).load()), []
    for block in range(count):
        more = {"methods": ["softdecay"], "alphas": _QUICK_ALPHAS, "seeds": 1, "softdecay_block": block}
        for score in plan.evaluate(f"{model} block {block}", to_model(model), **more).scores:
            row = {"block": block, "task": score.task, "metric": score.metric, "method": score.method}
            rows.append(row | {"score": score.mean})
    frame = pd.DataFrame(rows)
    title = f"Scores × 100 with SoftDecay in one block or another, one seed, {model}"
    text = f"with one seed a difference between blocks of {model} is no proof; the paper saw none that was significant."
    return Results([Table("blocks", title, frame)], [Claim("note", text, "footnote 3")])


def compare_sizes(options: StudyOptions, model: str, plan: FineTuning) -> Results:
    """Section 5.2 and Fig. 8: whether more training rows make rows of a sequence more alike (a smaller ΔL)."""
    rows = []
    for share in _QUICK_SHARES if options.quick else _SHARES:
        for data in plan.data:
            whole = min(len(data.train), plan.training.train_rows or len(data.train))
            count = max(3, round(share * whole))
            how: dict[str, Any] = {"tasks": [data.task.name], "methods": (), "seeds": 1, "train_rows": count}
            found = plan.evaluate(f"{model} {count} rows", to_model(model), **how)
            (run,) = [run for run in found.runs if run.task == data.task.name]
            reach = {f"reach {when}": run.spectra[when]["reach"] for when in ("pretrained", "trained")}
            score = next(score.mean for score in found.scores if score.task == data.task.name)
            rows.append({"task": data.task.name, "rows": count, "score": score} | reach)
    frame = pd.DataFrame(rows)
    title = f"ΔL (σ/σ₁ below which four fifths of the singular values lie) after training on so many rows, {model}"
    caption = "ΔL after training by number of training rows, dashed before training."
    figure = make_figure("sizes", caption, partial(_draw_sizes, frame))
    return Results([Table("sizes", title, frame)], _judge_sizes(model, frame), [figure])


def _judge_sizes(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether more training rows make the rows of a sequence more alike (Section 5.2)."""
    claims = []
    for task, rows in frame.groupby("task", sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        falls = bool(last["reach trained"] < first["reach trained"])
        rho = rank_correlation(rows["rows"], rows["reach trained"])
        text = (
            f"ΔL of {model} after training on {task} is {first['reach trained']:.3f} with {first['rows']:,} rows and "
            f"{last['reach trained']:.3f} with {last['rows']:,}; the paper: more training rows, more alike."
        )
        claims.append(Claim.judge(falls, text, "Section 5.2", rho, -1.0))
    return claims


def _draw_sizes(frame: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for (task, rows), colour in zip(frame.groupby("task", sort=False), COLOURS, strict=False):
        axes.plot(rows["rows"], rows["reach trained"].astype(float), marker="o", color=colour, label=str(task))
        axes.axhline(float(rows["reach pretrained"].iloc[0]), color=colour, linestyle="--", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("training rows")
    axes.set_ylabel("ΔL")
    axes.legend()


def score_contrastive(options: StudyOptions, model: str) -> Results:
    """Spearman on STS-B of the model as it is, after SimCSE on the text's sentences, and the same with SoftDecay."""
    sequences = split_sequences(text.text for text in open_corpus(options.limited_text))
    sentences = sequences[: _QUICK_SENTENCES if options.quick else _SENTENCES]
    encoders = ((name, _train_encoder(options, model, name, sentences)) for name in (_PLAIN, "none", _WITH))
    try:
        rows, differences = score_on_sts_b(options, "method", encoders)
    except (InputError, MissingExtra) as error:
        return Results.note(f"{model} was not trained by SimCSE: {error}", "Table 5")
    d = differences[_WITH]
    first, second = (TABLE_5["wikipedia"][name][SETS.index("sts-b")] for name in (_PLAIN, _WITH))
    text = (
        f"SoftDecay changes {model} trained by SimCSE on {len(sentences):,} sentences by {100 * d.value:+.2f} points "
        f"({100 * d.low:+.2f} to {100 * d.high:+.2f}) on STS-B; the paper: by {second - first:+.2f}, BERT trained on a "
        "million sentences of Wikipedia."
    )
    claim = Claim(judge_gain(d.low, d.high), text, "Table 5", 100 * d.value, round(second - first, 2))
    title = f"Spearman × 100 on STS-B by the last layer, as it is and after SimCSE on the text's sentences, {model}"
    return Results([Table("contrastive", title, pd.DataFrame(rows))], [claim])


def _train_encoder(options: StudyOptions, model: str, method: str, sentences: list[str]) -> Encoder:
    """The model as an encoder, after SimCSE where the method says so."""
    encoder = Encoder(options.input(model, layers="-1", pooling="mean"))
    if method == "none":
        return encoder
    import torch

    import isotrope.nn as nn
    from isotrope.finetuning.encoder_pretraining import pretrain_encoder
    from isotrope.finetuning.loop import encode

    loaded, training = encoder.loaded, Training()
    how: dict[str, Any] = {"max_length": training.max_length, "pad": loaded.pad, "device": loaded.device}
    rng, progress = np.random.default_rng(options.seed), options.progress or (lambda *_: None)
    with torch.random.fork_rng():
        torch.manual_seed(options.seed)
        if method == _WITH:
            nn.attach(loaded.model, _ALPHA)
        ids = partial(encode, loaded.tokenizer, **how)
        pretrain_encoder("simcse", loaded.model, ids, sentences, None, training, rng, partial(progress, method))
    loaded.model.eval()
    return encoder
