"""SoftDecay in training: the GLUE tables of Yan et al. 2022, the block and the number of rows, and SimCSE."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np

from isotrope.errors import InputError, MissingExtra
from isotrope.evaluation.metrics import Correlation
from isotrope.evaluation.significance import compare
from isotrope.evaluation.sts import cosines
from isotrope.finetuning.glue import evaluate_glue
from isotrope.finetuning.result import GlueEvaluation
from isotrope.finetuning.settings import ALPHAS, METHODS, Training
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.claims import judge_gain
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.options import StudyOptions, to_file_name, to_model
from isotrope.studies.representative_sample import split_sequences
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import count_blocks
from isotrope.studies.uniformity.ablations import read_sts_b
from isotrope.studies.uniformity.claims import judge_glue, judge_sizes
from isotrope.studies.uniformity.figures import make_glue_figure, make_sizes_figure
from isotrope.studies.uniformity.published import SETS, TABLE_5, find_glue_score

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


def compare_methods(options: StudyOptions, plan: FineTuning, seeds: int, model: str) -> Results:
    """Tables 2 and 6: all methods on all tasks over seeds, with the printed numbers."""
    quick = options.quick
    found = _evaluate(
        options,
        plan,
        model,
        "methods",
        methods=_QUICK_METHODS if quick else _METHODS,
        alphas=_QUICK_ALPHAS if quick else ALPHAS,
        seeds=1 if quick else seeds,
    )
    scores = found.to_frame()
    scores["printed"] = [
        find_glue_score(model, *row) for row in zip(scores["task"], scores["metric"], scores["method"], strict=True)
    ]
    differences = found.to_frame("differences")
    tables = [
        Table(
            "scores",
            f"Scores × 100 on GLUE's validation rows over seeds, {model}",
            scores.drop(columns=["seeds", "values"]),
        ),
        Table("differences", f"Points that methods gain, with intervals and p-values, {model}", differences),
        Table("alphas", f"Where α of SoftDecay goes in training, {model}", found.to_frame("alphas")),
        Table(
            "spectra",
            f"CDF of singular values of sequences before and after training, {model}",
            found.to_frame("spectra"),
        ),
    ]
    return Results(tables, judge_glue(model, differences), [make_glue_figure(scores)])


def _evaluate(options: StudyOptions, plan: FineTuning, model: str, what: str, **more: Any) -> GlueEvaluation:
    given = asdict(plan.training) | {"seed": options.seed} | more
    return evaluate_glue(
        model=to_model(model),
        data=options.data_root,
        tasks=plan.names,
        output=options.folder / "glue" / to_file_name(f"{model} {what}"),
        resume=True,
        device=options.device,
        progress=options.progress,
        **given,
    )


def compare_blocks(options: StudyOptions, plan: FineTuning, model: str) -> Results:
    """Footnote 3: SoftDecay in each block in turn, in training, one seed and one α."""
    import pandas as pd

    count, rows = count_blocks(options.input(model).load()), []
    for block in range(count):
        more = {"methods": ["softdecay"], "alphas": _QUICK_ALPHAS, "seeds": 1, "softdecay_block": block}
        for score in _evaluate(options, plan, model, f"block {block}", **more).scores:
            rows.append(
                {
                    "block": block,
                    "task": score.task,
                    "metric": score.metric,
                    "method": score.method,
                    "score": score.mean,
                }
            )
    frame = pd.DataFrame(rows)
    title = f"Scores × 100 with SoftDecay in one block or another, one seed, {model}"
    text = f"with one seed a difference between blocks of {model} is no proof; the paper saw none that was significant."
    return Results([Table("blocks", title, frame)], [Claim("note", text, "footnote 3")])


def compare_sizes(options: StudyOptions, plan: FineTuning, model: str) -> Results:
    """Section 5.2 and Fig. 8: whether more training rows make rows of a sequence more alike (a smaller ΔL)."""
    import pandas as pd

    rows = []
    for share in _QUICK_SHARES if options.quick else _SHARES:
        for data in plan.data:
            whole = min(len(data.train), plan.training.train_rows or len(data.train))
            count = max(3, round(share * whole))
            one = FineTuning([data], plan.training)
            found = _evaluate(options, one, model, f"{count} rows", methods=(), seeds=1, train_rows=count)
            (run,) = [run for run in found.runs if run.task == data.task.name]
            reach = {f"reach {when}": run.spectra[when]["reach"] for when in ("pretrained", "trained")}
            score = next(score.mean for score in found.scores if score.task == data.task.name)
            rows.append({"task": data.task.name, "rows": count, "score": score} | reach)
    frame = pd.DataFrame(rows)
    title = f"ΔL (σ/σ₁ below which four fifths of the singular values lie) after training on so many rows, {model}"
    return Results([Table("sizes", title, frame)], judge_sizes(model, frame), [make_sizes_figure(frame)])


def score_contrastive(options: StudyOptions, model: str) -> Results:
    """Spearman on STS-B of the model as it is, after SimCSE on the text's sentences, and the same with SoftDecay."""
    import pandas as pd

    every = split_sequences(text.text for text in open_corpus(options.limited_text))
    sentences = every[: _QUICK_SENTENCES if options.quick else _SENTENCES]
    pairs, gold = read_sts_b(options)
    try:
        scored = {
            name: Correlation(cosines(_train_encoder(options, model, name, sentences)(pairs)), gold, "spearman")
            for name in (_PLAIN, "none", _WITH)
        }
    except (InputError, MissingExtra) as error:
        return Results((), [Claim("note", f"{model} was not trained by SimCSE: {error}", "Table 5")])
    found = compare(scored, seed=options.seed, items="sts-b")
    rows = [
        {"method": name, "spearman": 100 * score.value, "low": 100 * score.low, "high": 100 * score.high}
        for name, score in found.scores.items()
    ]
    d = found.differences[_WITH]
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
