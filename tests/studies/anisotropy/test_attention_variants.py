"""Variants of self-attention against numpy, and the claims on them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch

from isotrope.studies.anisotropy.attention_variants import (
    PLAIN,
    SHARPEST,
    centre_keys,
    compare_variants,
    describe_variants,
    divide_scores,
    list_variants,
)
from isotrope.studies.anisotropy.biased_block import Inputs
from isotrope.studies.model_blocks import make_fresh_block
from isotrope.studies.transformer_block import TransformerBlock


@pytest.fixture(scope="module")
def block() -> TransformerBlock:
    return make_fresh_block(128, seed=1, vocabulary=500)


@pytest.fixture(scope="module")
def inputs(block: TransformerBlock) -> Inputs:
    return Inputs.draw(block, 2, 24, 0, 0)


def softmax(scores: np.ndarray) -> np.ndarray:
    exponents = np.exp(scores - scores.max(-1, keepdims=True))
    return np.asarray(exponents / exponents.sum(-1, keepdims=True))


def test_temperature_one_is_the_block_itself(block: TransformerBlock, inputs: Inputs) -> None:
    rows = inputs.rows[0] + 20.0 * inputs.direction
    plain, same = block(rows), block(rows, divide_scores(1.0))
    assert torch.equal(plain.output, same.output)
    assert torch.equal(plain.softmax, same.softmax)


@pytest.mark.parametrize("temperature", [1 / 16, 4.0])
def test_a_temperature_divides_scores(block: TransformerBlock, inputs: Inputs, temperature: float) -> None:
    rows = inputs.rows[0] + 20.0 * inputs.direction
    plain, changed = block(rows), block(rows, divide_scores(temperature))
    expected = softmax(plain.scores.double().numpy() / temperature)
    np.testing.assert_allclose(changed.softmax.numpy(), expected, rtol=1e-4)
    assert not torch.equal(changed.output, plain.output)  # the block goes on with the changed weights


def test_without_the_term_a_bias_changes_no_weight(block: TransformerBlock, inputs: Inputs) -> None:
    rows, bias = inputs.rows[0], 20.0 * inputs.direction
    change = list_variants(block, rows, bias)["without bᵀAx"]
    raw = block(rows)
    np.testing.assert_allclose(block(rows + bias, change).softmax.numpy(), raw.softmax.numpy(), rtol=1e-3)
    assert not np.allclose(block(rows + bias).softmax.numpy(), raw.softmax.numpy(), rtol=1e-3)


def test_centred_keys_take_out_what_all_queries_share() -> None:
    scores = torch.randn((2, 5, 5), dtype=torch.double)
    shared = torch.randn((2, 1, 5), dtype=torch.double)
    assert torch.allclose(centre_keys(scores + shared), centre_keys(scores))
    assert torch.allclose(centre_keys(scores).mean(dim=1), torch.zeros(2, 5, dtype=torch.double), atol=1e-12)


def test_records_of_all_variants(block: TransformerBlock, inputs: Inputs) -> None:
    found = {record["variant"]: record for record in compare_variants(block, inputs, 20.0)}
    assert len(found) == 6
    rows = [row + 20.0 * inputs.direction for row in inputs.rows]
    scores = [block(one).scores.double().numpy() for one in rows]
    for name, change in ((PLAIN, lambda s: s), (SHARPEST, lambda s: 1024 * s)):
        expected = np.mean([softmax(change(s)).max(-1).mean() for s in scores])
        assert found[name]["softmax_max"] == pytest.approx(expected, rel=1e-4)
    output = np.concatenate([block(one).output.double().numpy() for one in rows])
    unit = output / np.linalg.norm(output, axis=1, keepdims=True)
    n = len(unit)
    assert found[PLAIN]["output_cosine"] == pytest.approx(((unit.sum(0) ** 2).sum() - n) / n / (n - 1), rel=1e-6)


def make_frame(sharp: float, cosine: float, spread: float = 0.01) -> pd.DataFrame:
    rows = []
    for seed in range(3):
        at = {"seed": seed}
        rows += [
            at | {"variant": PLAIN, "bias_norm": norm, "softmax_max": 1.0, "output_cosine": 0.5} for norm in (0.0, 40.0)
        ]
        rows.append(
            at
            | {"variant": SHARPEST, "bias_norm": 0.0, "softmax_max": sharp + spread * seed}
            | {"output_cosine": cosine + spread * seed}
        )
    return pd.DataFrame(rows)


def test_notes_give_the_means_over_draws() -> None:
    """The temperature was chosen low enough, so that nothing is tested: both sentences are notes."""
    sharper, less_alike = describe_variants(make_frame(2.0, 0.1))
    assert {sharper.outcome, less_alike.outcome} == {"note"}
    assert sharper.ours == pytest.approx((2.0 * 2.01 * 2.02) ** (1 / 3))  # the geometric mean
    assert less_alike.ours == pytest.approx(0.5 - 0.11)
