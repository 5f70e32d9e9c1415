"""Table 5 of Yan et al. 2022: an encoder trained by SimCSE, with and without a SoftDecay layer, on sentence pairs."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from isotrope.errors import InputError, MissingExtra
from isotrope.evaluation.metrics import Correlation
from isotrope.evaluation.significance import compare
from isotrope.evaluation.sts import cosines
from isotrope.finetuning.settings import Training
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.claims import judge_gain
from isotrope.studies.options import Options
from isotrope.studies.representative_sample import split_sequences
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.ablations import read_sts_b
from isotrope.studies.uniformity.published import SETS, TABLE_5

#: α that the layer begins with, and the sentences that are learnt from, at most, also in a quick study.
_ALPHA, _SENTENCES, _QUICK_SENTENCES = -0.5, 100_000, 300

_PLAIN, _WITH = "simcse", "simcse+softdecay"


def score_contrastive(options: Options, model: str) -> Results:
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


def _train_encoder(options: Options, model: str, method: str, sentences: list[str]) -> Encoder:
    """The model as an encoder, after SimCSE where the method says so."""
    encoder = Encoder(options.input(model, layers="-1", pooling="mean"))
    if method == "none":
        return encoder
    import torch

    from isotrope import nn
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
