"""A block on its own does what it does in its model, and a fresh one what theory says."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.sources.models.load import load
from isotrope.studies.anisotropy.biased_block import Inputs, apply_bias, find_fixed_points
from isotrope.studies.anisotropy.blocks import judge_block
from isotrope.studies.transformer_block import TransformerBlock, has_plain_scores, make_fresh_block, take_block
from testkit.models import save_model

NORMS = (0.0, 2.0, 5.0, 9.0, 20.0)


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_block_alone_gives_the_next_hidden_state(family: str, number: int, tmp_path: Path) -> None:
    loaded = load(save_model(tmp_path / family, family), device="cpu")
    ids = np.arange(4, 12)[None]
    states, _ = compute_hidden_states(loaded, ids, np.ones_like(ids, dtype=bool))
    seen = take_block(loaded, number)(states[number][0])
    assert torch.allclose(seen.output, states[number + 1][0], atol=1e-5)
    assert seen.softmax.shape == (2, 8, 8)
    assert torch.allclose(seen.softmax.sum(-1), torch.ones(2, 8), atol=1e-5)
    assert seen.query.shape[1:] == (8, 8)
    assert has_plain_scores(seen) == (family == "bert")  # the others hide what comes later, or turn by place
    after, _ = compute_hidden_states(loaded, ids, np.ones_like(ids, dtype=bool))
    assert len(after) == len(states)
    assert torch.allclose(after[-1], states[-1], atol=1e-5)


@pytest.fixture(scope="module")
def block() -> TransformerBlock:
    return make_fresh_block(128, seed=3, vocabulary=2_000)


@pytest.fixture(scope="module")
def records(block: TransformerBlock) -> list[dict[str, Any]]:
    return apply_bias(block, Inputs.draw(block, 2, 48, 0, 0), NORMS)


def test_scores_are_products_of_queries_and_keys_by_hand(block: TransformerBlock) -> None:
    rows = block.table[:5]
    attention = block.model.encoder.layer[0].attention.self
    query, key = (m(rows).reshape(5, 2, 64).transpose(0, 1) for m in (attention.query, attention.key))
    assert torch.allclose(block(rows).scores, query @ key.transpose(1, 2) / 8.0, atol=1e-7)


def test_output_norm_is_the_root_of_the_width_whatever_the_bias(records: list[dict[str, Any]]) -> None:
    for record in records:
        assert record["output_norm"] == pytest.approx(math.sqrt(128), abs=0.01)


def test_cosines_follow_the_closed_form(records: list[dict[str, Any]]) -> None:
    for record in records:
        square = record["bias_norm"] ** 2
        assert record["input_cosine"] == pytest.approx(square / (square + 128 * 0.02**2), abs=0.01)
    assert records[0]["output_cosine"] > records[0]["input_cosine"]


def test_both_fixed_points_are_at_the_root_of_the_width(block: TransformerBlock, records: list[dict[str, Any]]) -> None:
    found = find_fixed_points(block, Inputs.draw(block, 2, 48, 0, 0), records)
    assert found["mean of norms"] == pytest.approx(math.sqrt(128 * (1 - 0.02**2)), abs=0.1)
    assert found["norm of mean"] == pytest.approx(math.sqrt(128), abs=0.3)


def test_the_softmax_sharpens_by_one_term_alone(records: list[dict[str, Any]]) -> None:
    raw = records[0]
    assert records[-1]["softmax_max"] > 1.001 * raw["softmax_max"]
    for record in records:
        for end in ("max", "median", "min", "sequence_max", "sequence_median", "sequence_min"):
            assert record[f"no_bAx_{end}"] == pytest.approx(raw[f"softmax_{end}"], rel=1e-4)


def test_mean_query_is_the_query_of_the_mean_and_so_are_keys(records: list[dict[str, Any]]) -> None:
    for name in ("query", "key"):
        assert 0 < max(record[f"{name}_mean_error"] for record in records) < 1e-4
    norms = [record["query_norm"] for record in records]
    assert norms == sorted(norms)


def test_what_the_paper_says_of_queries_and_keys(records: list[dict[str, Any]]) -> None:
    """They grow with the bias; at initialisation x has mean 0, and so has Wx, whose cosines then are 0 on average."""
    frame = pd.DataFrame(records).assign(block="fresh")
    said = {claim.text: claim for claim in judge_block(frame, 128) if claim.where == "Fig. 8"}
    grows = [claim.outcome for text, claim in said.items() if "grows" in text]
    assert grows == ["agrees", "agrees"]
    (alike,) = (claim for text, claim in said.items() if "without a bias" in text)
    assert alike.outcome == "contradicts"
    assert abs(alike.ours) < 0.02
    falling = frame.assign(key_norm=frame["key_norm"].to_numpy()[::-1])
    assert [c.outcome for c in judge_block(falling, 128) if "norm of keys" in c.text] == ["contradicts"]


def test_without_a_crossing_there_is_no_fixed_point(block: TransformerBlock) -> None:
    inputs = Inputs.draw(block, 1, 8, 0, 0)
    assert math.isnan(find_fixed_points(block, inputs, apply_bias(block, inputs, (0.0, 1.0)))["mean of norms"])
