"""Ranks of token matrices against numpy's, and the verdict on them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.sources.batch import Rows
from isotrope.sources.input import Input
from isotrope.statistics import Sample, prepare_rows
from isotrope.studies.uniformity.full_rank import compute_full_rank, judge_full_rank
from testkit.models import save_model


def make_sample(matrices: list[np.ndarray]) -> Sample:
    rows = np.concatenate(matrices).astype(np.float32)
    sample = Sample.empty(rows.shape[1], 10_000)
    ids = np.repeat(np.arange(len(matrices), dtype=np.uint64), [len(matrix) for matrix in matrices])
    sample.add(prepare_rows(rows, Rows(ids)))
    return sample


def test_ranks_are_those_of_numpy() -> None:
    rng = np.random.default_rng(0)
    matrices = [rng.normal(size=(rng.integers(2, 12), 8)).astype(np.float32) for _ in range(40)]
    for matrix in matrices[:13]:
        matrix[-1] = matrix[0]  # the same token twice
    found = compute_full_rank(make_sample(matrices))
    full = [np.linalg.matrix_rank(matrix) == min(matrix.shape) for matrix in matrices]
    assert 20 < sum(full) < 40
    assert found["sequences"] == 40
    assert found["full rank"] == pytest.approx(np.mean(full))
    values = [np.linalg.svd(matrix.astype(float), compute_uv=False) for matrix in matrices]
    assert found["median smallest"] == pytest.approx(np.median([v[-1] / v[0] for v in values]))
    # Clopper and Pearson by the quantiles of beta distributions.
    k = sum(full)
    assert found["low"] == pytest.approx(stats.beta.ppf(0.025, k, 40 - k + 1))
    assert found["high"] == pytest.approx(stats.beta.ppf(0.975, k + 1, 40 - k))


def test_a_repeated_token_without_positions_has_no_full_rank_before_the_blocks(tmp_path: Path) -> None:
    """A llama adds no positions to the embeddings; a block mixes them in."""
    model = save_model(tmp_path / "llama", "llama")
    batches = Input(model=model, text=["cat sat cat sat"], device="cpu", layers="0,-1").open().batches()
    ranks = [compute_full_rank(make_sample([np.asarray(rows)])) for batch in batches for rows in batch.layers.values()]
    assert [found["full rank"] for found in ranks] == [0.0, 1.0]


def layers(*shares: tuple[float, float, float]) -> pd.DataFrame:
    rows = [{"layer": i, "full rank": s, "low": low, "high": high} for i, (s, low, high) in enumerate(shares)]
    return pd.DataFrame(rows)


def test_the_verdict_needs_all_layers() -> None:
    good, unsure, bad = (1.0, 0.98, 1.0), (0.97, 0.93, 0.99), (0.5, 0.4, 0.6)
    for shares, outcome in (((good, good), "agrees"), ((good, unsure), "undecided"), ((good, bad), "contradicts")):
        (claim,) = judge_full_rank("m", layers(*shares))
        assert claim.outcome == outcome
    assert "layer 1" in claim.text


def test_without_sequences_there_is_no_claim() -> None:
    nothing = compute_full_rank(make_sample([np.ones((1, 3)), np.ones((1, 3))]))
    assert nothing["sequences"] == 0
    assert judge_full_rank("m", pd.DataFrame([{"layer": 0} | nothing])) == []
