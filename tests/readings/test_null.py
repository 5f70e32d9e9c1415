"""What isotropic rows would give: closed forms against simulation, drawn moments against drawn rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from isotrope.measures import MEASURES
from isotrope.readings import null
from isotrope.readings.null import (
    draw_isotropic_moments,
    draw_isotropic_points,
    draw_isotropic_sequences,
    draw_isotropic_tokens,
)
from isotrope.sources.batch import Rows
from isotrope.statistics import (
    Moments,
    Points,
    QueriedPoints,
    SequenceSpectra,
    SequenceStatistics,
    TextLengths,
    TokenStatistics,
    prepare_rows,
)

CLOSED = [m for m in MEASURES if m.null is not None]


def rows(n: int, d: int, seed: int) -> tuple[np.ndarray, Rows]:
    rng = np.random.default_rng(seed)
    index = np.arange(n)
    known = Rows((index // 12).astype(np.uint64), token=rng.integers(0, 15, n), position=index % 12)
    return rng.standard_normal((n, d)) / np.sqrt(d), known


@pytest.mark.parametrize("m", CLOSED, ids=lambda m: m.name)
@pytest.mark.parametrize(("n", "d"), [(600, 8), (360, 40)])
def test_closed_forms_are_the_mean_of_simulated_values(m: object, n: int, d: int) -> None:
    found = [m(make_statistic(m.needs, n, d, seed)) for seed in range(60)]  # type: ignore[operator,attr-defined]
    error = np.std(found) / np.sqrt(len(found))
    slack = 0.003 if m.needs == "queries" else 1e-12  # type: ignore[attr-defined]  # 0.01 is that of endless documents
    assert abs(np.mean(found) - m.null(n, d)) < 4 * error + slack  # type: ignore[attr-defined]


def make_statistic(need: str, n: int, d: int, seed: int) -> Any:
    if need == "queries":
        return QueriedPoints.of(rows(n, d, seed)[0], rows(n, d, seed + 1_000)[0])
    if need == "texts":
        points = Points.of(prepare_rows(rows(n, d, seed)[0]))
        lengths = np.random.default_rng(seed).integers(1, 1_000, n).tolist()
        return TextLengths.of(points, dict(enumerate(lengths)))
    kinds = {"moments": Moments, "tokens": TokenStatistics, "sequences": SequenceStatistics, "sample": Points}
    return kinds[need].of(prepare_rows(*rows(n, d, seed)))


def test_which_measures_have_a_closed_form() -> None:
    assert {m.name for m in CLOSED} >= {
        "mean_cosine",
        "drift_share",
        "rank_one_residual",
        "self_similarity",
        "rbf_distance",
    }


@pytest.mark.parametrize(("n", "d"), [(300, 6), (90, 40)])
def test_moments_drawn_by_bartlett_are_those_of_drawn_rows(n: int, d: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(null, "_DRAW_ROWS_UP_TO", 0)
    drawn, direct = [], []
    for k in range(80):
        monkeypatch.setattr(null, "_SEED", k)
        drawn.append(draw_isotropic_moments(n, d))
        direct.append(Moments.of(prepare_rows(rows(n, d, k)[0])))
    for m in MEASURES:
        if m.needs == "moments":
            a, b = np.array([m(x) for x in drawn]), np.array([m(x) for x in direct])
            error = np.sqrt((a.var() + b.var()) / len(a))
            assert abs(a.mean() - b.mean()) < 4 * error + 1e-12, m.name
            if a.std() > 1e-9:
                assert 0.6 < a.std() / b.std() < 1.7, m.name


@pytest.mark.parametrize(("n", "d"), [(5, 30), (30, 30), (1000, 8), (3_000_000, 3)])
def test_drawn_moments_are_whole_and_the_same_each_time(n: int, d: int) -> None:
    a, b = draw_isotropic_moments(n, d), draw_isotropic_moments(n, d)
    assert (a.n, a.d) == (n, d)
    for name, array in a.arrays().items():
        np.testing.assert_array_equal(array, b.arrays()[name])
    assert a.energy / n == pytest.approx(1.0, rel=0.5)
    assert a.energy == pytest.approx(a.scatter.trace() + n * a.mean @ a.mean, rel=1e-12)


def test_tokens_keep_their_counts() -> None:
    q = 4.0
    drawn, direct = [], []
    for seed in range(30):
        values, known = rows(900, 10, seed)
        like = TokenStatistics.of(prepare_rows(values, known))
        drawn.append(draw_isotropic_tokens(like, q).table)
        direct.append(TokenStatistics.of(prepare_rows(values * np.sqrt(q), known)).table)
        np.testing.assert_array_equal(drawn[-1].n, like.n)
        np.testing.assert_array_equal(drawn[-1].types, like.types)
    for column in ("q", "m", "v", "unit_squares"):
        a, b = (np.concatenate([getattr(t, column) for t in tables]) for tables in (drawn, direct))
        assert abs(a.mean() - b.mean()) < 4 * np.sqrt((a.var() + b.var()) / len(a)), column
    assert np.allclose(drawn[0].q, drawn[0].m + drawn[0].v)


def test_sequences_keep_the_distribution_of_lengths() -> None:
    values, known = rows(600, 8, 0)
    like = SequenceStatistics.of(prepare_rows(values, known))
    drawn = draw_isotropic_sequences(like)
    lengths = SequenceStatistics.of(drawn).lengths
    assert set(np.flatnonzero(lengths)) <= set(np.flatnonzero(like.lengths))
    assert lengths.sum() == 64
    a, b = SequenceSpectra.of(drawn), SequenceSpectra.of(prepare_rows(values, known))
    m = MEASURES.get("sequence_spectral_median")
    assert m(a) == pytest.approx(m(b), abs=0.03)


def test_without_sequences_none_are_drawn() -> None:
    assert len(draw_isotropic_sequences(SequenceStatistics.empty(4))) == 0


def test_points_are_isotropic_and_the_same_each_time() -> None:
    points = draw_isotropic_points(3000, 20)
    assert (points.n, points.d) == (3000, 20)
    assert np.mean(np.sum(points.rows**2, axis=1)) == pytest.approx(1.0, rel=0.02)
    np.testing.assert_array_equal(points.rows, draw_isotropic_points(3000, 20).rows)
    assert MEASURES.get("vrm")(points) == pytest.approx(20 / (4 * 3000), rel=0.2)


def test_the_null_of_a_sample_has_its_number_and_length() -> None:
    """The partition function depends on the length of rows, and its null on that of the rows measured."""
    import isotrope

    names = [m.name for m in MEASURES if m.needs == "sample"]
    for scale in (0.1, 3.0):
        drawn = [scale * np.random.default_rng(k).standard_normal((500, 6)) for k in range(20)]
        values = [isotrope.measure(x, names) for x in drawn]
        found = isotrope.scan(vectors=np.vstack(drawn), measures=names, sample=500)
        for name in names:
            seen = [v[name] for v in values]
            assert found.get(name).n == 500
            assert abs(found.get(name).null - np.mean(seen)) <= 4 * np.std(seen), name
