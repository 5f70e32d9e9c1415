"""SimCSE with and without SoftDecay on sentence similarity: Table 5 of Yan et al. 2022."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.errors import InputError, MissingExtra
from isotrope.evaluation.metrics import Correlation
from isotrope.evaluation.pairs import PairSet, read_sets
from isotrope.evaluation.sts import MEAN, cosines
from isotrope.finetuning.seeds import compare_seeds, compute_spread
from isotrope.finetuning.settings import Training
from isotrope.finetuning.tasks import TaskRows, find_glue_folder, read_task
from isotrope.finetuning.triplets import make_triplets, read_triplets
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.options import StudyOptions
from isotrope.studies.representative_sample import split_sequences
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.uniformity.published import SETS, TABLE_5, find_simcse_score
from isotrope.studies.verdict import judge_exact, judge_test

#: Rows that are learnt from, at most, and in a quick study; also the pairs of each set that a quick study scores.
_ROWS, _QUICK_ROWS, _QUICK_PAIRS = 100_000, 100, 300

#: Seeds of a quick study.
_QUICK_SEEDS = 2

#: The α that the layer begins with.
_ALPHA = -0.5

_PLAIN, _WITH = "simcse", "simcse+softdecay"


def score_simcse(options: StudyOptions, model: str, method: str, seeds: int, source: str | None = None) -> Results:
    """Spearman on all sets of the model as it is, after SimCSE, and after SimCSE with SoftDecay, over seeds.

    Args:
        options: of the study.
        model: the name of the model.
        method: "simcse", unsupervised on sentences, or "simcse-nli", supervised on triplets.
        seeds: the number of seeds, of which a quick study uses two.
        source: the text of one sentence a line, or the file of triplets; None for sentences of the study's text, or
            triplets made of MNLI.
    """
    try:
        rows = _read_triplets(options, source) if method == "simcse-nli" else _read_sentences(options, source)
        rows = rows.take(range(min(len(rows), _QUICK_ROWS if options.quick else _ROWS)))
        sets = read_sets(["sts-b"] if options.quick else None, options.data_root, "concatenated")
        scores = _score_seeds(options, model, method, min(seeds, _QUICK_SEEDS) if options.quick else seeds, rows, sets)
    except (InputError, MissingExtra) as error:
        return Results.note(f"{model} was not trained by {method}: {error}", "Table 5")
    frame = _tabulate(model, method, scores)
    differences = compare_trained(scores)
    what = f"{len(rows):,} {'triplets' if method == 'simcse-nli' else 'sentences'}"
    title = f"Spearman × 100 by the last layer, as it is and after {method} on {what}, {model}"
    return Results(
        [
            Table("contrastive", title, frame),
            Table("differences", f"Points that SoftDecay gains, {model}", differences),
        ],
        [judge_simcse(model, method, what, differences)],
    )


def judge_printed() -> list[Claim]:
    """Judge by its own rows whether Table 5 shows that SoftDecay outperforms SimCSE in general."""
    claims = []
    for data, rows in TABLE_5.items():
        gains = np.subtract(rows[_WITH], rows[_PLAIN])
        lost = [name for name, gain in zip(SETS, gains, strict=True) if gain < 0]
        text = (
            f"by the printed rows of {data} SoftDecay gains {gains.mean():+.2f} points on average over SimCSE and "
            f"loses on {', '.join(lost) or 'no set'}; the paper: SoftDecay outperforms SimCSE in general."
        )
        claims.append(Claim(judge_exact(not lost), text, "Table 5", round(float(gains.mean()), 2)))
    return claims


def judge_simcse(model: str, method: str, what: str, differences: pd.DataFrame) -> Claim:
    """Judge by the p-value over seeds whether SoftDecay gains over SimCSE on the mean of the sets, or the only one."""
    row = differences.iloc[-1]
    gains = differences["difference"].iloc[:-1] if len(differences) > 1 else differences["difference"]
    text = (
        f"SoftDecay changes {model} trained by {method} on {what} by {row['difference']:+.2f} points on {row['set']}, "
        f"seeds: {row['n']}; it gains on {(gains > 0).sum()} of {len(gains)} sets; the paper: gains in general."
    )
    evidence = f"95 % interval over seeds {row['low']:+.2f} to {row['high']:+.2f}, corrected p {row['p_corrected']:.2g}"
    published = TABLE_5["mnli and snli" if method == "simcse-nli" else "wikipedia"]
    printed = round(float(np.mean(np.subtract(published[_WITH], published[_PLAIN]))), 2)
    outcome = judge_test(row["difference"], row["p_corrected"])
    return Claim(outcome, text, "Table 5", float(row["difference"]), printed, evidence, model)


def compare_trained(scores: pd.DataFrame) -> pd.DataFrame:
    """Points that SoftDecay gains over SimCSE on each set and on their mean, over seeds, p-values corrected by Holm.

    Args:
        scores: set, method, seed and Spearman × 100.
    """
    rows: list[dict[str, Any]] = []
    by = scores.pivot_table(index=["set", "seed"], columns="method", values="spearman", sort=False)
    for name, part in by.groupby(level="set", sort=False):
        d = compare_seeds(part[_WITH].tolist(), part[_PLAIN].tolist())
        rows.append({"set": name, "difference": d.value, "low": d.low, "high": d.high, "p": d.p, "n": d.n})
    frame: pd.DataFrame = pd.DataFrame(rows)
    frame["p_corrected"] = holm(frame["p"].tolist())
    return frame


def _tabulate(model: str, method: str, scores: pd.DataFrame) -> pd.DataFrame:
    """A row for each set and method: the printed score, and mean and interval over seeds."""
    rows = []
    for (name, how), part in scores.groupby(["set", "method"], sort=False):
        spread = compute_spread(part["spearman"].tolist())._asdict()
        printed = find_simcse_score(model, method, str(name), str(how))
        rows.append({"set": name, "method": how, "printed": printed} | spread)
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def _score_seeds(
    options: StudyOptions, model: str, method: str, seeds: int, rows: TaskRows, sets: Iterable[PairSet]
) -> pd.DataFrame:
    """Score × 100 of each set, method and seed; a mean over sets where there are several."""
    kept, found = list(sets), []
    for seed in range(options.seed, options.seed + seeds):
        # The model as it is does not depend on a seed.
        for how in ("none", _PLAIN, _WITH) if seed == options.seed else (_PLAIN, _WITH):
            encoder = Encoder(options.input(model, layers="-1", pooling="mean"))
            if how != "none":
                _train_encoder(options, encoder, method, rows, seed, softdecay=how == _WITH)
            scores = {pairs.name: _score(encoder, pairs, options.quick) for pairs in kept}
            if len(scores) > 1:
                scores[MEAN] = float(np.mean(list(scores.values())))
            found += [{"set": name, "method": how, "seed": seed, "spearman": score} for name, score in scores.items()]
    frame: pd.DataFrame = pd.DataFrame(found)
    return frame


def _score(encoder: Encoder, found: PairSet, quick: bool) -> float:
    pairs = found.parts[0].pairs[: _QUICK_PAIRS if quick else None]
    sentences = [pair.first for pair in pairs] + [pair.second for pair in pairs]
    return 100 * Correlation(cosines(encoder(sentences)), np.array([pair.gold for pair in pairs]), "spearman").value


def _read_sentences(options: StudyOptions, text: str | None) -> TaskRows:
    if text is not None:
        return TaskRows.of_sentences(each.text for each in open_corpus(text))
    return TaskRows.of_sentences(split_sequences(each.text for each in open_corpus(options.limited_text)))


def _read_triplets(options: StudyOptions, file: str | None) -> TaskRows:
    if file is not None:
        return read_triplets(file)
    folder = find_glue_folder(options.data_root)
    if folder is None or not (folder / "mnli").is_dir():
        raise InputError("there are no triplets of NLI; give a file with --simcse-triplets, or the data of MNLI.")
    return make_triplets(read_task("mnli", folder).train)


def _train_encoder(
    options: StudyOptions, encoder: Encoder, method: str, rows: TaskRows, seed: int, *, softdecay: bool
) -> None:
    """Train the model of an encoder by SimCSE, in place."""
    import torch

    import isotrope.nn as nn
    from isotrope.finetuning.encoder_pretraining import pretrain_encoder
    from isotrope.finetuning.loop import encode

    loaded, training = encoder.loaded, Training()
    how: dict[str, Any] = {"max_length": training.max_length, "pad": loaded.pad, "device": loaded.device}
    report = options.progress or (lambda *_: None)
    label = f"{method}{' with softdecay' if softdecay else ''}, seed {seed}"
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        if softdecay:
            nn.attach(loaded.model, _ALPHA)
        ids, rng = partial(encode, loaded.tokenizer, **how), np.random.default_rng(seed)
        pretrain_encoder(method, loaded.model, ids, rows, training, rng, partial(report, label))
    loaded.model.eval()
