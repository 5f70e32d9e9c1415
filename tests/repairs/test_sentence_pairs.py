"""Repairs of real sentence embeddings: the scores on STS-B that the docs show."""

from __future__ import annotations

import csv
from typing import Any

import numpy as np
import pytest
from scipy.stats import spearmanr

from isotrope.repairs import AllButTheTop, Repair, SoftDecay, Whitening
from isotrope.sources.input import Input
from testkit.models import smollm2_file
from testkit.paths import SHARED_DATA

DATA = SHARED_DATA
PAIRS = DATA / "sts" / "sts-b-test.csv"


@pytest.fixture(scope="module")
def pairs() -> tuple[list[str], np.ndarray]:
    """All first and then all second sentences of STS-B, and the scores of the pairs."""
    if not PAIRS.exists():
        pytest.skip(f"there is no {PAIRS}; set ISOTROPE_DATA to the folder of the data sets.")
    with PAIRS.open(encoding="utf-8", newline="") as file:
        lines = list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    texts = [line[5] for line in lines] + [line[6] for line in lines]
    return texts, np.array([float(line[4]) for line in lines])


def pooled(texts: list[str], **reading: Any) -> list[np.ndarray]:
    """One row for each text, in their order, for each layer."""
    source = Input(text=texts, pooling="mean", in_order=True, **reading).open()
    batches = [[batch.layers[layer].numpy() for layer in source.layers] for batch in source.batches()]
    found = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    assert {len(rows) for rows in found} == {len(texts)}
    return found


@pytest.fixture(scope="module")
def stsb(pairs: tuple[list[str], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Mean-pooled last states of MiniLM for all first and then all second sentences, and the scores of their pairs."""
    texts, scores = pairs
    (rows,) = pooled(texts, layers=[-1])
    return rows, scores


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
        (SoftDecay(-0.6, form="paper"), 80.64),
        (SoftDecay(-0.2, form="paper"), 81.20),
        (SoftDecay(-0.6, normalize=True, form="paper"), 81.81),
        (SoftDecay(-0.2, normalize=True, form="paper"), 81.87),
    ],
    ids=repr,
)
def test_scores_of_minilm(stsb: tuple[np.ndarray, np.ndarray], repair: Repair | None, expected: float) -> None:
    rows, scores = stsb
    repaired = rows if repair is None else repair.fit_transform(rows)
    assert score(repaired, scores) == pytest.approx(expected, abs=0.1)


@pytest.mark.validation
def test_scores_of_smollm2(pairs: tuple[list[str], np.ndarray]) -> None:
    texts, scores = pairs
    first, last = pooled(texts, layers=[1, -1], model=str(smollm2_file()))
    expected: list[tuple[np.ndarray, Repair | None, float]] = [
        (last, None, 36.9),
        (last, SoftDecay(-0.6, form="paper"), 57.0),
        ((first + last) / 2, None, 52.0),
        ((first + last) / 2, SoftDecay(-0.6, form="paper"), 67.7),
        ((first + last) / 2, Whitening(), 66.1),
    ]
    for rows, repair, value in expected:
        repaired = rows if repair is None else repair.fit_transform(rows)
        assert score(repaired, scores) == pytest.approx(value, abs=0.3), repair


@pytest.mark.long
def test_the_map_is_the_decomposition_on_real_rows(stsb: tuple[np.ndarray, np.ndarray]) -> None:
    """Without what a layer norm leaves of one direction, 1.6e-6, which the formula magnifies 4.6 million times."""
    rows = stsb[0].astype(np.float64)
    u, s, vt = np.linalg.svd(rows, full_matrices=False)
    bent = np.where(s > 1e-5 * s[0], np.log(1 - 0.36 + 0.6 * s) / 0.6, 0.0)
    expected = (u * (bent * s[0] / bent[0])) @ vt
    repaired = SoftDecay(-0.6, tolerance=1e-5, form="paper").fit_transform(rows)
    np.testing.assert_allclose(repaired, expected, rtol=0, atol=1e-9)
