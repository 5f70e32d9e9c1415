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
from isotrope.studies.anisotropy.biased_block import (
    BINS,
    LENGTH,
    SEQUENCES,
    Inputs,
    apply_bias,
    count_scores,
    find_fixed_points,
)
from isotrope.studies.anisotropy.blocks import FRESH
from isotrope.studies.model_blocks import make_fresh_block, take_block
from isotrope.studies.transformer_block import TransformerBlock, has_plain_scores
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
    attention = block.module.attention.self
    query, key = (m(rows).reshape(5, 2, 64).transpose(0, 1) for m in (attention.query, attention.key))
    assert torch.allclose(block(rows).scores, query @ key.transpose(1, 2) / 8.0, atol=1e-7)


def test_output_norm_is_the_root_of_the_width_whatever_the_bias(records: list[dict[str, Any]]) -> None:
    for record in records:
        assert record["output_norm"] == pytest.approx(math.sqrt(128), abs=0.01)


def test_cosines_follow_the_closed_form(records: list[dict[str, Any]]) -> None:
    for record in records:
        square = record["bias_norm"] ** 2
        assert record["input_cosine"] == pytest.approx(square / (square + 128 * 0.02**2), abs=0.01)
        assert record["output_cosine"] > record["input_cosine"]
        assert record["cosine_gain"] == record["output_cosine"] - record["input_cosine"]


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


def find_scores(block: TransformerBlock, rows: Any) -> np.ndarray:
    """Q Kᵀ / √d_k by numpy, (heads, t, t), from the weights of the block."""
    attention = block.module.attention.self
    x = rows.double().numpy()
    made = []
    for module in (attention.query, attention.key):
        out = x @ module.weight.detach().double().numpy().T + module.bias.detach().double().numpy()
        made.append(out.reshape(len(x), 2, 64).transpose(1, 0, 2))
    return np.asarray(made[0] @ made[1].transpose(0, 2, 1) / np.sqrt(64.0))


def test_histograms_are_those_of_numpy(block: TransformerBlock) -> None:
    inputs = Inputs.draw(block, 2, 48, 0, 0)
    bins = pd.DataFrame(count_scores(block, inputs, [0.0, 20.0]))
    assert bins.groupby("bias_norm")["count"].agg(["size", "sum"]).to_numpy().tolist() == [[BINS, 2 * 2 * 48**2]] * 2
    for norm, found in bins.groupby("bias_norm"):
        given = inputs.rows + norm * inputs.direction
        scores = np.stack([find_scores(block, rows) for rows in given]).ravel()
        counts, edges = np.histogram(scores, BINS)
        np.testing.assert_allclose([*found["left"], found["right"].iloc[-1]], edges, rtol=1e-3, atol=1e-6)
        assert (
            np.abs(found["count"].to_numpy() - counts).sum() <= 0.01 * counts.sum()
        )  # float32 moves a few over an edge


def test_scores_move_away_from_zero(records: list[dict[str, Any]]) -> None:
    sizes = [abs(record["score_mean"]) for record in records]
    assert sizes == sorted(sizes)


def test_weights_of_positions_and_sequences_are_those_of_numpy(block: TransformerBlock) -> None:
    """An even number of keys, whose median is the mean of the two middle weights."""
    inputs = Inputs.draw(block, 2, 48, 0, 0)
    (record,) = apply_bias(block, inputs, [20.0])
    weights = []
    for rows in inputs.rows + 20.0 * inputs.direction:
        scores = find_scores(block, rows)
        exponents = np.exp(scores - scores.max(-1, keepdims=True))
        weights.append(exponents / exponents.sum(-1, keepdims=True))
    for name, function in (("max", np.max), ("median", np.median), ("min", np.min)):
        assert record[f"softmax_{name}"] == pytest.approx(np.mean([function(w, axis=-1) for w in weights]), rel=1e-5)
        expected = np.mean([function(w) for w in weights])
        assert record[f"softmax_sequence_{name}"] == pytest.approx(expected, rel=1e-5)


def test_weights_that_a_mask_hides_are_left_out(tmp_path: Path) -> None:
    block = take_block(load(save_model(tmp_path / "gpt2", "gpt2"), device="cpu"), 0)
    inputs = Inputs.draw(block, 1, 7, 0, 0)
    (record,) = apply_bias(block, inputs, [0.0])
    softmax = block(inputs.rows[0]).softmax.double().numpy()
    seen = [[softmax[h, i, : i + 1] for i in range(7)] for h in range(2)]
    assert record["softmax_min"] == pytest.approx(np.mean([[row.min() for row in head] for head in seen]), rel=1e-6)
    assert record["softmax_median"] == pytest.approx(np.mean([[np.median(r) for r in head] for head in seen]), rel=1e-6)
    assert record["softmax_min"] > 0


def test_the_sizes_are_those_of_the_paper() -> None:
    assert (SEQUENCES, LENGTH) == (16, 512)
    assert FRESH[:2] == (16, 512)
    assert FRESH.norms[0] == 0.0
    fresh = make_fresh_block(vocabulary=40)
    assert fresh.table.shape == (39, 768)  # without the row of padding
    assert fresh.heads == 12
    assert float(fresh.table.std()) == pytest.approx(0.02, rel=0.02)


def test_without_a_crossing_there_is_no_fixed_point(block: TransformerBlock) -> None:
    inputs = Inputs.draw(block, 1, 8, 0, 0)
    assert math.isnan(find_fixed_points(block, inputs, apply_bias(block, inputs, (0.0, 1.0)))["mean of norms"])
