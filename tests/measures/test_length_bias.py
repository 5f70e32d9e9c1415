"""Length bias: rank correlations of text lengths with norms, closeness and results, against scipy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import isotrope
from isotrope.measures import length_bias_closeness, length_bias_norm, length_bias_results
from isotrope.statistics import QueriedPoints, TextLengths


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((300, 10)) + 0.3


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return ["x" * n for n in np.random.default_rng(1).integers(1, 500, 300)]


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_lengths_are_compared_by_rank(rows: np.ndarray, texts: list[str]) -> None:
    cosines = unit(rows) @ unit(rows).T
    np.fill_diagonal(cosines, np.nan)
    times = np.bincount(np.argsort(-np.nan_to_num(cosines, nan=-9.0), axis=1)[:, :10].ravel(), minlength=300)
    lengths = [len(text) for text in texts]
    expected = {
        "length_bias_norm": np.linalg.norm(rows, axis=1),
        "length_bias_closeness": np.nanmean(cosines, axis=1),
        "length_bias_results": times,
    }
    findings = isotrope.scan(vectors=rows, text_column=texts)
    for name, values in expected.items():
        reading = findings.get(name)
        assert reading.value == pytest.approx(stats.spearmanr(lengths, values).statistic, abs=1e-9)
        assert reading.low < reading.value < reading.high
        assert (reading.null, reading.n) == (0.0, 300)


def test_with_queries_results_are_theirs(rows: np.ndarray, texts: list[str]) -> None:
    queries = np.random.default_rng(2).standard_normal((80, 10))
    times = np.bincount(np.argsort(-(unit(queries) @ unit(rows).T), axis=1)[:, :10].ravel(), minlength=300)
    found = isotrope.scan(vectors=rows, text_column=texts, queries=queries).get("length_bias_results")
    assert found.value == pytest.approx(stats.spearmanr([len(t) for t in texts], times).statistic, abs=1e-9)


def test_norms_that_grow_with_the_text_are_fully_biased(rows: np.ndarray) -> None:
    made = QueriedPoints.of(unit(rows) * np.arange(1, 301)[:, None], rows[:20])
    lengths = TextLengths.of(made.documents, {row: 3 * row + 7 for row in range(300)}, made)
    assert length_bias_norm(lengths) == pytest.approx(1.0)
    assert abs(length_bias_closeness(lengths)) < 0.3
    assert abs(length_bias_results(lengths)) < 0.3


def test_rows_without_a_text_are_left_out(rows: np.ndarray) -> None:
    made = QueriedPoints.of(rows, rows[:20]).documents
    assert TextLengths.of(made, {row: row for row in range(0, 300, 3)}).n == 100


def test_without_texts_there_is_no_reading(rows: np.ndarray) -> None:
    assert not [r for r in isotrope.scan(vectors=rows).readings if r.measure.startswith("length_bias")]
    reading = isotrope.scan(vectors=rows, measures="length_bias_norm").get("length_bias_norm")
    assert reading.reason == "the texts of the rows are not known (--text-column)"
