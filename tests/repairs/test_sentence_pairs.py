"""Repairs of real sentence embeddings: the scores on STS-B that the docs show."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

from isotrope.repairs import AllButTheTop, Repair, SoftDecay, Whitening
from isotrope.sources.inputs import Input

DATA = Path(os.environ.get("ISOTROPE_DATA", Path(__file__).parents[3] / "shared" / "data"))
PAIRS = DATA / "sts" / "sts-b-test.csv"


@pytest.fixture(scope="module")
def stsb() -> tuple[np.ndarray, np.ndarray]:
    """Mean-pooled last states of MiniLM for all first and then all second sentences, and the scores of their pairs."""
    if not PAIRS.exists():
        pytest.skip(f"there is no {PAIRS}; set ISOTROPE_DATA to the folder of the data sets.")
    with PAIRS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [line[5] for line in lines] + [line[6] for line in lines]
    # Each text once: a source yields rows in an order of its own, with an id for each text.
    source = Input(text=texts, layers=[-1], pooling="mean").open()
    batches = list(source.batches())
    order = np.argsort(np.concatenate([batch.rows.sequence for batch in batches]))
    (layer,) = source.layers
    rows = np.concatenate([batch.layers[layer].numpy() for batch in batches])[order]
    assert len(rows) == len(texts)
    return rows, np.array([float(line[4]) for line in lines])


def score(rows: np.ndarray, scores: np.ndarray) -> float:
    """Spearman × 100 of the cosines of pairs."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    first, second = np.split(unit, 2)
    return 100 * float(spearmanr((first * second).sum(axis=1), scores).statistic)


@pytest.mark.long
@pytest.mark.parametrize(
    ("repair", "expected"),
    [
        (None, 82.03),
        (Whitening(), 78.07),
        (AllButTheTop(3), 80.76),
        (SoftDecay(-0.6), 80.64),
        (SoftDecay(-0.2), 81.20),
        (SoftDecay(-0.6, normalize=True), 81.81),
        (SoftDecay(-0.2, normalize=True), 81.87),
    ],
    ids=repr,
)
def test_scores_of_minilm(stsb: tuple[np.ndarray, np.ndarray], repair: Repair | None, expected: float) -> None:
    rows, scores = stsb
    repaired = rows if repair is None else repair.fit_transform(rows)
    assert score(repaired, scores) == pytest.approx(expected, abs=0.1)


@pytest.mark.long
def test_the_map_is_the_decomposition_on_real_rows(stsb: tuple[np.ndarray, np.ndarray]) -> None:
    """Without what a layer norm leaves of one direction, 1.6e-6, which the formula magnifies 4.6 million times."""
    rows = stsb[0].astype(np.float64)
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    bent = np.where(s > 1e-5 * s[0], np.log(1 - 0.36 + 0.6 * s) / 0.6, 0.0)
    expected = (u * (bent * s[0] / bent[0])) @ vt
    repaired = SoftDecay(-0.6, tolerance=1e-5).fit_transform(rows)
    np.testing.assert_allclose(repaired, expected, rtol=0, atol=1e-9)
