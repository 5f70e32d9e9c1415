"""Diversity of generated text with and without SoftDecay: the future work of Yan et al. 2022, Section 6."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from isotrope.compute.p_values import holm
from isotrope.errors import InputError
from isotrope.finetuning.seeds import compare_seeds
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_test

if TYPE_CHECKING:
    from isotrope.sources.models.generator import Generator

#: Prompts, tokens that are generated of each, and seeds; also of a quick study.
_PROMPTS, _TOKENS, _SEEDS = 30, 40, 3
_QUICK_PROMPTS, _QUICK_TOKENS, _QUICK_SEEDS = 4, 8, 2

#: Tokens of a prompt: a text's beginning, which a decoder goes on with, or what an encoder reads.
_BEGINNING, _READ = 16, 64

#: The α of the layer.
_ALPHA = -0.5

_WITHOUT, _WITH = "none", "softdecay"


def compute_distinct(tokens: Sequence[int], n: int) -> float:
    """Share of distinct n-grams among all n-grams of a text; NaN for a text of fewer than n tokens.

    References:
        Li et al. 2016, A Diversity-Promoting Objective Function for Neural Conversation Models.

    >>> compute_distinct([1, 2, 1, 2], 1), round(compute_distinct([1, 2, 1, 2], 2), 3)
    (0.5, 0.667)
    """
    grams = [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
    return len(set(grams)) / len(grams) if grams else float("nan")


def measure_diversity(tokens: Sequence[int]) -> dict[str, float]:
    """distinct-1 and distinct-2 of a text, and its repetition: the share of 4-grams that occurred in it before.

    References:
        Welleck et al. 2020, Neural Text Generation with Unlikelihood Training (seq-rep-4).
    """
    distinct = {f"distinct-{n}": compute_distinct(tokens, n) for n in (1, 2)}
    return distinct | {"repetition": 1.0 - compute_distinct(tokens, 4)}


def compare_generation(options: StudyOptions, model: str) -> Results:
    """Sample texts with and without an untrained SoftDecay layer in the last block of the decoder."""
    from isotrope.sources.models.generator import load_generator

    try:
        if options.modality(model) != "text":
            raise InputError(f"{model} does not generate text from text.")
        generator = load_generator(options.path(model), device=options.device)
    except InputError as error:
        return Results.note(error, "Section 6, future work")
    frame = pd.DataFrame(_generate_all(options, generator))
    differences = compare_diversity(frame)
    title = f"Diversity of texts sampled from {model}, without and with SoftDecay (α {_ALPHA:g}, untrained)"
    means = frame.drop(columns=["prompt", "seed"]).groupby("softdecay", sort=False).mean().reset_index()
    tables = [
        Table("generation", title, means),
        Table("generation_differences", f"What SoftDecay changes in texts of {model}, over prompts", differences),
        Table("generated", f"Diversity of each sampled text of {model}", frame),
    ]
    return Results(tables, judge_diversity(model, differences))


def compare_diversity(frame: pd.DataFrame) -> pd.DataFrame:
    """Differences with SoftDecay minus without, means over seeds, with 95 % intervals over prompts and Holm's p-values.

    Args:
        frame: a row for each text: softdecay, prompt, seed, and the measures of `measure_diversity`.
    """
    rows = []
    for name in ("distinct-1", "distinct-2", "repetition", "log-probability"):
        by = frame.pivot_table(index="prompt", columns="softdecay", values=name).dropna()
        d = compare_seeds(by[_WITH].tolist(), by[_WITHOUT].tolist())
        rows.append({"measure": name, "difference": d.value, "low": d.low, "high": d.high, "p": d.p, "prompts": d.n})
    found: pd.DataFrame = pd.DataFrame(rows)
    found["p_corrected"] = holm(found["p"].tolist())
    return found


def judge_diversity(model: str, differences: pd.DataFrame) -> list[Claim]:
    """Judge the expectation that less uniform tokens give more diverse text, by p-values over prompts."""
    claims, by = [], differences.set_index("measure")
    fluent = by.loc["log-probability", "difference"]
    for name, sign in (("distinct-1", 1), ("distinct-2", 1), ("repetition", -1)):
        row = by.loc[name]
        text = (
            f"SoftDecay changes {name} of texts sampled from {model} by {row['difference']:+.3f}, and their "
            f"log-probability by the model without it by {fluent:+.2f} for each token; the paper expects more diverse "
            "text."
        )
        evidence = (
            f"95 % interval over prompts {row['low']:+.3f} to {row['high']:+.3f}, corrected p {row['p_corrected']:.2g}"
        )
        outcome = judge_test(sign * row["difference"], row["p_corrected"])
        where = "Section 6, future work"
        claims.append(Claim(outcome, text, where, float(row["difference"]), evidence=evidence, model=model))
    return claims


def _generate_all(options: StudyOptions, generator: Generator) -> list[dict[str, Any]]:
    """Sample a text of each prompt with each seed, without and with SoftDecay."""
    import isotrope.nn as nn

    quick = options.quick
    texts = [text.text for text in islice(open_corpus(options.limited_text), _QUICK_PROMPTS if quick else _PROMPTS)]
    length, seeds = (_QUICK_TOKENS, _QUICK_SEEDS) if quick else (_TOKENS, _SEEDS)
    sampled = []
    for name in (_WITHOUT, _WITH):
        if name == _WITH:
            with warnings.catch_warnings():  # a text that is being written has no later tokens
                warnings.simplefilter("ignore")
                nn.attach(generator.model, _ALPHA, trainable=False, at=generator.stack)
        for prompt, text in enumerate(texts):
            for seed in range(options.seed, options.seed + seeds):
                given, tokens = sample_text(generator, text, length, seed)
                row = {"softdecay": name, "prompt": prompt, "seed": seed} | measure_diversity(tokens)
                sampled.append((row, given, tokens))
    nn.detach(generator.model)
    return [row | {"log-probability": compute_log_probability(generator, *ids)} for row, *ids in sampled]


def sample_text(generator: Generator, text: str, length: int, seed: int) -> tuple[list[int], list[int]]:
    """Sample a continuation of a text's beginning, or what a decoder writes of the text.

    Every token is computed from all before it, without a cache: SoftDecay needs the whole matrix of tokens.

    Returns:
        The ids of the prompt and of the generated tokens.
    """
    import torch

    most = _READ if generator.has_encoder else _BEGINNING
    given = generator.tokenizer(text, truncation=True, max_length=most, return_tensors="pt")["input_ids"]
    given = given.to(generator.model.device)
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(seed)
        found = generator.model.generate(
            input_ids=given,
            attention_mask=torch.ones_like(given),
            do_sample=True,
            num_beams=1,
            top_k=0,
            max_new_tokens=length,
            use_cache=False,
            forced_eos_token_id=None,  # which would be no choice of the model
            pad_token_id=generator.tokenizer.pad_token_id or 0,
        )[0].tolist()
    return given[0].tolist(), found[1:] if generator.has_encoder else found[given.shape[1] :]


def compute_log_probability(generator: Generator, given: Sequence[int], tokens: Sequence[int]) -> float:
    """Mean log-probability of generated tokens, given the prompt and the tokens before; NaN for no token."""
    import torch

    if not tokens:
        return float("nan")
    device = generator.model.device
    with torch.inference_mode():
        if generator.has_encoder:
            start = generator.model.config.decoder_start_token_id
            written = torch.tensor([[start, *tokens[:-1]]], device=device)
            prompt = torch.tensor([list(given)], device=device)
            logits = generator.model(input_ids=prompt, decoder_input_ids=written).logits[0]
        else:
            written = torch.tensor([[*given, *tokens[:-1]]], device=device)
            logits = generator.model(input_ids=written).logits[0, len(given) - 1 :]
        chances = logits.double().log_softmax(-1).cpu().numpy()
    return float(np.mean(chances[np.arange(len(tokens)), list(tokens)]))
