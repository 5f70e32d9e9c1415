"""Measures over sequences against loops and hand-worked cases."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import Undefined
from isotrope.measures import MEASURES
from isotrope.measures.sequence_spectrum import GRID, mean_cdf
from isotrope.sources.batch import Rows
from isotrope.statistics import SequenceSpectra, SequenceStatistics, prepare_rows

LENGTHS = [3, 8, 1, 5, 2, 20]


@pytest.fixture(scope="module")
def matrices() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal((t, 6)) / np.arange(1, 7) + 0.3 for t in LENGTHS]


def statistics(matrices: list[np.ndarray]) -> tuple[SequenceStatistics, SequenceSpectra]:
    ids = np.repeat(np.arange(len(matrices), dtype=np.uint64), [len(x) for x in matrices])
    rows = prepare_rows(np.concatenate(matrices), Rows(ids))
    return SequenceStatistics.of(rows), SequenceSpectra.of(rows)


def read(name: str, matrices: list[np.ndarray], variant: str = "definition") -> float:
    m = MEASURES.get(name)
    return m.value(statistics(matrices)[0 if m.needs == "sequences" else 1], variant=variant)


def spectra(matrices: list[np.ndarray]) -> list[np.ndarray]:
    return [np.linalg.svd(x, compute_uv=False) for x in matrices if len(x) > 1]


def unit(x: np.ndarray) -> np.ndarray:
    return np.asarray(x / np.linalg.norm(x, axis=-1, keepdims=True))


def test_uniformity(matrices: list[np.ndarray]) -> None:
    pairs = [unit(x) @ unit(x).T for x in matrices if len(x) > 1]
    off = [c[~np.eye(len(c), dtype=bool)].mean() for c in pairs]
    assert read("sequence_uniformity", matrices) == pytest.approx(np.mean(off), abs=1e-12)
    assert read("cls_uniformity", matrices) == pytest.approx(np.mean([c[0, 1:].mean() for c in pairs]), abs=1e-12)
    assert read("cls_uniformity", matrices, "published") == pytest.approx(np.mean([c[0].mean() for c in pairs]))


def test_cls_uniformity_across_sequences_is_of_all_pairs_of_first_tokens(matrices: list[np.ndarray]) -> None:
    first = [unit(x)[0] for x in matrices if len(x) > 1]
    pairs = [a @ b for i, a in enumerate(first) for j, b in enumerate(first) if i != j]
    assert read("cls_uniformity", matrices, "across") == pytest.approx(np.mean(pairs), abs=1e-12)
    assert abs(read("cls_uniformity", matrices) - np.mean(pairs)) > 0.01  # the two readings differ
    with pytest.raises(Undefined, match="two rows"):
        read("cls_uniformity", matrices[:1], "across")


def test_the_rank_one_residual_is_of_each_sequence(matrices: list[np.ndarray]) -> None:
    residuals = [np.linalg.norm(x - x.mean(axis=0)) / np.linalg.norm(x) for x in matrices if len(x) > 1]
    assert read("sequence_rank_one_residual", matrices) == pytest.approx(np.mean(residuals), rel=1e-12)
    # The mean is the nearest row: no other one is closer in the Frobenius norm.
    x = matrices[1]
    for row in (x[0], np.median(x, axis=0), np.zeros(6)):
        assert np.linalg.norm(x - row) / np.linalg.norm(x) > residuals[1]


def test_sequences_that_collapse_to_different_rows_have_no_residual() -> None:
    collapsed = [np.tile(row, (7, 1)) for row in np.random.default_rng(3).standard_normal((50, 6))]
    assert read("sequence_rank_one_residual", collapsed) == 0.0
    assert MEASURES.get("rank_one_residual")(np.concatenate(collapsed)) > 0.9  # that of all rows as one matrix


@pytest.mark.parametrize("spread", [1e-2, 1e-4, 1e-7, 1e-10])
def test_a_small_rank_one_residual_keeps_its_digits(spread: float) -> None:
    rng = np.random.default_rng(4)
    matrices = [1000 * (rng.standard_normal(6) + spread * rng.standard_normal((9, 6))) for _ in range(5)]
    exact = []
    for x in matrices:
        rows = [[Fraction(float(v)) for v in row] for row in x]
        means = [sum(column, Fraction(0)) / 9 for column in zip(*rows, strict=True)]
        apart = sum((v - m) ** 2 for row in rows for v, m in zip(row, means, strict=True))
        exact.append(math.sqrt(apart / sum(v**2 for row in rows for v in row)))
    assert read("sequence_rank_one_residual", matrices) == pytest.approx(np.mean(exact), rel=1e-9)


def test_statistics_of_version_0_1_have_no_residual_and_say_why(matrices: list[np.ndarray]) -> None:
    now = statistics(matrices)[0]
    before = SequenceStatistics.from_arrays(
        {name: array for name, array in now.arrays().items() if name not in ("residual", "firsts")}
    )
    for old in (before, before + now, SequenceStatistics.from_arrays((now + before).arrays())):
        assert MEASURES.get("sequence_uniformity").value(old) == pytest.approx(read("sequence_uniformity", matrices))
        for name, variant in (("sequence_rank_one_residual", "definition"), ("cls_uniformity", "across")):
            with pytest.raises(Undefined, match=r"version 0\.1"):
                MEASURES.get(name).value(old, variant=variant)


def test_intra_sentence_similarity(matrices: list[np.ndarray]) -> None:
    inner = np.mean([(unit(x) @ unit(x.mean(axis=0))).mean() for x in matrices if len(x) > 1])
    overall = MEASURES.get("mean_cosine")(np.concatenate(matrices))
    assert read("intra_sentence_similarity", matrices) == pytest.approx(inner, abs=1e-12)
    assert read("intra_sentence_similarity_adjusted", matrices) == pytest.approx(inner - overall, abs=1e-12)


def test_spectral_shape_is_averaged_over_sequences(matrices: list[np.ndarray]) -> None:
    normal = [s / s[0] for s in spectra(matrices)]
    assert read("sequence_spectral_skewness", matrices) == pytest.approx(np.mean([stats.skew(s) for s in normal]))
    assert read("sequence_spectral_median", matrices) == pytest.approx(np.mean([np.median(s) for s in normal]))
    vanished = np.mean([(s < 0.05).sum() for s in normal])
    assert read("sequence_vanished_dimensions", matrices) == pytest.approx(vanished)


def test_published_spectra_are_pooled_over_the_largest_and_lose_their_smallest(matrices: list[np.ndarray]) -> None:
    pooled = np.concatenate([s[:-1] for s in spectra(matrices)]) / max(s[0] for s in spectra(matrices))
    assert read("sequence_spectral_skewness", matrices, "published") == pytest.approx(stats.skew(pooled))
    assert read("sequence_spectral_median", matrices, "published") == pytest.approx(np.median(pooled))


def test_published_spectra_by_hand() -> None:
    # Orthogonal rows: the singular values are their lengths, 4 2 1 and 2 2; 4 2 2 are left, over 4.
    matrices = [np.diag([4.0, 2.0, 1.0]), np.diag([2.0, 2.0, 0.0])[:2]]
    assert read("sequence_spectral_median", matrices, "published") == pytest.approx(0.5)
    assert read("sequence_spectral_skewness", matrices, "published") == pytest.approx(stats.skew([1, 0.5, 0.5]))
    assert read("sequence_spectral_median", matrices) == pytest.approx((0.5 + 1.0) / 2)


def test_the_mean_curve_is_the_mean_of_the_curves(matrices: list[np.ndarray]) -> None:
    normal = [s / s[0] for s in spectra(matrices)]
    expected = [np.mean([(s <= x + 1e-12).mean() for s in normal]) for x in GRID]
    found = mean_cdf(statistics(matrices)[1])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (np.diff(found) >= 0).all()
    assert found[-1] == pytest.approx(1.0)


def test_the_reach_is_where_the_curve_is_at_four_fifths() -> None:
    # Singular values 10 1 1 1 1, 10 times: four fifths of them are at or below 0.1.
    matrices = [np.diag([10.0, 1.0, 1.0, 1.0, 1.0])] * 10
    assert read("sequence_spectral_reach", matrices) == pytest.approx(0.1, abs=1.001e-3)
    rng = np.random.default_rng(1)
    many = [rng.standard_normal((12, 12)) for _ in range(200)]
    pooled = np.concatenate([s / s[0] for s in spectra(many)])  # all of one length: the mean curve is the pooled one
    assert read("sequence_spectral_reach", many) == pytest.approx(np.quantile(pooled, 0.8), abs=2e-3)
    assert read("sequence_spectral_reach", [np.outer(np.ones(9), np.ones(9))]) == 0.0


@pytest.mark.parametrize("length", [3, 10, 40])
def test_rank_one_has_the_skewness_of_its_length(length: int) -> None:
    matrices = [np.outer(np.linspace(1, 2, length), np.arange(1.0, 65.0))] * 3
    expected = (length - 2) / math.sqrt(length - 1)
    assert read("sequence_spectral_skewness", matrices) == pytest.approx(expected)
    assert read("sequence_uniformity", matrices) == pytest.approx(1.0)
    assert read("intra_sentence_similarity", matrices) == pytest.approx(1.0)


def test_opposite_tokens_count_in_pairs_but_have_no_mean() -> None:
    opposite = np.array([[1.0, 2.0], [-1.0, -2.0]])
    assert read("sequence_uniformity", [opposite]) == pytest.approx(-1.0)
    with pytest.raises(Undefined, match="direction"):
        read("intra_sentence_similarity", [opposite])
    assert read("intra_sentence_similarity", [opposite, np.ones((3, 2))]) == pytest.approx(1.0)


def test_sequences_of_one_token_are_left_out() -> None:
    for name in ("sequence_uniformity", "cls_uniformity", "sequence_spectral_median", "sequence_rank_one_residual"):
        with pytest.raises(Undefined, match="two tokens"):
            read(name, [np.ones((1, 3)), np.ones((1, 3))])
