"""Diversity of generated text: n-grams by hand, sampling without a cache, and verdicts over prompts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from isotrope import nn
from isotrope.errors import InputError
from isotrope.sources.models.generator import Generator, load_generator
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.generation import (
    compare_diversity,
    compare_generation,
    compute_distinct,
    compute_log_probability,
    judge_diversity,
    measure_diversity,
    sample_text,
)
from testkit.models import save_model
from testkit.small_studies import TEXTS


def test_distinct_n_grams_by_hand() -> None:
    text = [7, 8, 7, 8, 7]  # unigrams 7 8; bigrams 78 87; 4-grams 7878 8787
    assert compute_distinct(text, 1) == 2 / 5
    assert compute_distinct(text, 2) == 2 / 4
    assert measure_diversity(text) == {"distinct-1": 0.4, "distinct-2": 0.5, "repetition": 0.0}
    assert measure_diversity([1, 2, 3, 4, 1, 2, 3, 4])["repetition"] == pytest.approx(1 - 4 / 5)
    assert measure_diversity([5] * 10) == {"distinct-1": 0.1, "distinct-2": 1 / 9, "repetition": pytest.approx(6 / 7)}
    assert math.isnan(compute_distinct([1], 2))


def frame(gains: list[float]) -> pd.DataFrame:
    rows = []
    for prompt, gain in enumerate(gains):
        for seed in range(2):
            base = {"distinct-1": 0.5, "distinct-2": 0.6, "repetition": 0.3, "log-probability": -2.0}
            rows.append({"softdecay": "none", "prompt": prompt, "seed": seed} | base)
            signs = {"distinct-1": 1, "distinct-2": 1, "repetition": -1, "log-probability": -3}
            moved = {name: value + signs[name] * gain for name, value in base.items()}
            rows.append({"softdecay": "softdecay", "prompt": prompt, "seed": seed} | moved)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [
        ([0.10, 0.12, 0.09, 0.11, 0.1], "agrees"),
        ([-0.10, -0.12, -0.09, -0.11, -0.1], "contradicts"),
        ([0.1, -0.1, 0.02, -0.03, 0.0], "undecided"),
        ([0.1], "undecided"),
    ],
)
def test_diversity_is_decided_over_prompts(gains: list[float], outcome: str) -> None:
    differences = compare_diversity(frame(gains))
    assert differences["difference"].tolist() == pytest.approx([s * np.mean(gains) for s in (1, 1, -1, -3)])
    assert [claim.outcome for claim in judge_diversity("m", differences)] == [outcome] * 3


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_texts_are_sampled_with_and_without_the_layer(tmp_path: Path, family: str) -> None:
    model = save_model(tmp_path / "small", family)
    options = StudyOptions(models=[str(model)], text=TEXTS, output=tmp_path / "s", quick=True, device="cpu")
    results = compare_generation(options, "small")
    means, differences, texts = (table.frame for table in results.tables)
    assert means["softdecay"].tolist() == ["none", "softdecay"]
    assert len(texts) == 2 * 4 * 2  # with and without, prompts, seeds
    plain = texts[texts["softdecay"] == "none"]
    assert means["distinct-1"][0] == pytest.approx(plain["distinct-1"].mean())
    by = texts.groupby(["softdecay", "prompt"])["distinct-2"].mean()
    row = differences.set_index("measure").loc["distinct-2"]
    assert row["difference"] == pytest.approx((by["softdecay"] - by["none"]).mean())
    assert len(results.claims) == 3


def test_an_encoder_and_other_media_are_told_apart(model: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not generate text: it is an encoder"):
        load_generator(model, device="cpu")
    options = StudyOptions(models=[model], text=TEXTS, output=tmp_path / "s", quick=True, device="cpu")
    (claim,) = compare_generation(options, "small").claims
    assert claim.outcome == "note"


@pytest.fixture(scope="module", params=["gpt2", "t5", "bart"])
def generator(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Generator:
    return load_generator(save_model(tmp_path_factory.mktemp("g") / "small", request.param), device="cpu")


@pytest.mark.filterwarnings("ignore:.*predicts next tokens")
def test_sampling_sees_the_whole_text_so_far(generator: Generator) -> None:
    """Each drawn token has the probabilities that one pass over all tokens before it gives, with the layer in it."""
    nn.attach(generator.model, -0.5, trainable=False, at=generator.stack)
    try:
        given, tokens = sample_text(generator, "the cat sat on a mat", 6, seed=3)
        assert (given, tokens) == sample_text(generator, "the cat sat on a mat", 6, seed=3)
        again: list[int] = []
        torch.manual_seed(3)
        for _ in tokens:
            with torch.inference_mode():
                if generator.has_encoder:
                    written = [[generator.model.config.decoder_start_token_id, *again]]
                    prompt = torch.tensor([given])
                    logits = generator.model(
                        input_ids=prompt, decoder_input_ids=torch.tensor(written), use_cache=False
                    ).logits
                else:
                    logits = generator.model(input_ids=torch.tensor([[*given, *again]]), use_cache=False).logits
            again.append(int(torch.multinomial(logits[0, -1].softmax(-1)[None], 1)))
        assert again == tokens
    finally:
        nn.detach(generator.model)


def test_log_probabilities_are_those_of_single_steps(generator: Generator) -> None:
    given, tokens = sample_text(generator, "old dogs ran", 5, seed=0)
    found = compute_log_probability(generator, given, tokens)
    chances = []
    for i, token in enumerate(tokens):
        with torch.inference_mode():
            if generator.has_encoder:
                start = generator.model.config.decoder_start_token_id
                inputs = {"input_ids": torch.tensor([given]), "decoder_input_ids": torch.tensor([[start, *tokens[:i]]])}
            else:
                inputs = {"input_ids": torch.tensor([[*given, *tokens[:i]]])}
            logits = generator.model(**inputs, use_cache=False).logits[0, -1]
        chances.append(float(logits.double().log_softmax(-1)[token]))
    assert found == pytest.approx(np.mean(chances), abs=1e-5)
    assert math.isnan(compute_log_probability(generator, given, []))
