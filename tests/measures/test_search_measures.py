"""Measures of search against plain numpy and scipy, and cases worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from scipy.sparse.csgraph import connected_components

import isotrope
from isotrope.errors import Undefined
from isotrope.measures import MEASURES, get
from isotrope.readings.null import Nulls, draw_isotropic_points
from isotrope.scanner import scan
from isotrope.statistics import Moments, Points, Summary, prepare_rows
from isotrope.statistics.metric_overlaps import find_metric_neighbours

K = 10
NAMES = [m.name for m in MEASURES if m.group == "search" and m.needs == "sample"]


def normal(n: int, d: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, d))


def _spaces() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    clusters = np.repeat(normal(50, 20, 1), 12, axis=0) + 0.05 * normal(600, 20, 2)
    return {
        "isotropic": normal(500, 12),
        "power law": normal(700, 40) / np.arange(1, 41) ** 0.7 + 0.1,
        "clusters": clusters,
        "outliers": np.vstack([normal(400, 5) @ np.diag([1, 1, 1, 0, 0]) + 1e-3 * normal(400, 5, 5), np.eye(5)[3:]]),
        "lengths": normal(500, 12) * rng.lognormal(0, 0.7, (500, 1)),
    }


SPACES = _spaces()
every_space = pytest.mark.parametrize("space", SPACES)


def lists(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All cosines (the own one is −inf), and the ten nearest of each row with their cosines, by plain sorting."""
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -np.inf)
    which = np.argsort(-cosines, axis=1)[:, :K]
    return cosines, which, np.take_along_axis(cosines, which, axis=1)


@every_space
def test_hubs_and_antihubs_are_counted_by_hand(space: str) -> None:
    rows = SPACES[space]
    n = len(rows)
    times = np.array([(lists(rows)[1] == i).sum() for i in range(n)])
    top = math.ceil(n / 100)
    assert get("hub_share")(rows) == pytest.approx(np.sort(times)[::-1][:top].sum() / (n * K), rel=1e-12)
    assert get("antihub_share")(rows) == pytest.approx((times == 0).mean(), rel=1e-12)


@every_space
@pytest.mark.parametrize("threshold", [0.99, 0.9, 0.6])
def test_near_duplicates_have_a_neighbour_of_that_cosine(space: str, threshold: float) -> None:
    cosines = lists(SPACES[space])[0]
    found = get("near_duplicate_share").value(SPACES[space], threshold=threshold)
    assert found == pytest.approx((cosines.max(axis=1) >= threshold).mean(), rel=1e-12)


@every_space
def test_contrast_is_the_median_of_mean_over_nearest_distance(space: str) -> None:
    cosines = lists(SPACES[space])[0]
    others = np.where(np.isinf(cosines), np.nan, 1 - cosines)
    expected = np.median(np.nanmean(others, axis=1) / np.nanmin(others, axis=1))
    assert get("relative_contrast")(SPACES[space]) == pytest.approx(expected, rel=1e-9)


@every_space
def test_outliers_are_beyond_six_deviations_of_the_log_distance(space: str) -> None:
    logs = np.log(1 - lists(SPACES[space])[2][:, -1])
    beyond = logs > np.median(logs) + 6 * stats.median_abs_deviation(logs)
    assert get("outlier_rows")(SPACES[space]) == pytest.approx(beyond.mean(), abs=1e-12)
    if space == "outliers":
        assert beyond[-2:].all()


@every_space
def test_islands_are_small_components_of_mutual_neighbours(space: str) -> None:
    _, which, _ = lists(SPACES[space])
    near = np.zeros((len(which),) * 2, bool)
    np.put_along_axis(near, which, True, axis=1)
    label = connected_components(near & near.T, directed=False)[1]
    expected = (np.bincount(label)[label] < 15).mean()
    assert get("island_share")(SPACES[space]) == pytest.approx(expected, abs=1e-12)
    if space == "clusters":
        assert expected > 0.9


@every_space
def test_metric_agreement_is_the_overlap_of_plain_rankings(space: str) -> None:
    rows = SPACES[space]
    lengths = np.linalg.norm(rows, axis=1)
    inner = rows @ rows.T
    distance = ((rows[:, None] - rows[None]) ** 2).sum(axis=2)
    scores = {"cosine": -inner / np.outer(lengths, lengths), "inner": -inner, "euclidean": distance}
    top = {}
    for name, values in scores.items():
        np.fill_diagonal(values, np.inf)
        top[name] = [set(row[:K]) for row in np.argsort(values, axis=1).tolist()]
    for one, other in (("cosine", "inner"), ("cosine", "euclidean"), ("inner", "euclidean")):
        expected = np.mean([len(a & b) / K for a, b in zip(top[one], top[other], strict=True)])
        assert get(f"metric_agreement_{one}_{other}")(rows) == pytest.approx(expected, rel=1e-12)


def test_rows_of_equal_length_agree_in_all_metrics() -> None:
    rows = normal(300, 6)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    for dtype in (np.float32, np.float64):
        for pair in ("cosine_inner", "cosine_euclidean", "inner_euclidean"):
            assert get(f"metric_agreement_{pair}")(rows.astype(dtype)) == 1.0


def test_a_thousand_rows_ask_where_there_are_more() -> None:
    rows = SPACES["lengths"]
    many = np.vstack([rows, normal(900, 12, 7)])
    m = get("metric_agreement_cosine_inner")
    points = Points.of(prepare_rows(many))
    assert points.metric_overlaps.shape == (1_000, 3)
    assert str(m.note(points)).endswith("n = 1,400 directions; 1,000 rows ask")  # type: ignore[misc]
    everyone = find_metric_neighbours(many, np.arange(1_400), np.zeros(1_400, np.int64), K).compute_overlaps(K)
    assert m(points) == pytest.approx(everyone[:, 0].mean(), abs=0.02)


def test_a_group_that_is_left_out_neither_asks_nor_answers() -> None:
    rows, group = SPACES["lengths"], np.arange(500) % 20
    points = Points(rows, np.arange(500, dtype=np.uint64), group)
    for g in (0, 7):
        left, alone = points.leave_out(g), Points.of(prepare_rows(rows[group != g]))
        for name in NAMES:
            assert get(name)(left) == pytest.approx(get(name)(alone), rel=1e-12), name


@pytest.mark.parametrize("name", NAMES)
def test_equal_directions_count_once(name: str) -> None:
    rows = SPACES["power law"]
    repeated = np.vstack([rows, 2.0 * rows[:50], rows[:20]])
    note = get(name).note
    assert note is not None
    assert "70 rows point the same way as others" in str(note(Points.of(prepare_rows(repeated))))
    if not name.startswith("metric"):  # of which lengths the first row of each direction counts
        assert get(name)(repeated) == pytest.approx(get(name)(rows), rel=1e-12)


@pytest.mark.parametrize("name", ["hub_share", "antihub_share", "outlier_rows", "island_share"])
def test_too_few_directions_have_no_value(name: str) -> None:
    with pytest.raises(Undefined, match="more than 11 rows that point in different directions, found 11"):
        get(name).value(np.vstack([normal(11, 4)] * 3))
    assert math.isfinite(get(name)(normal(12, 4)))


@pytest.mark.parametrize(("n", "d"), [(400, 4), (1_000, 32)])
def test_closed_null_values_are_those_of_isotropic_rows(n: int, d: int) -> None:
    drawn = [Points.of(prepare_rows(normal(n, d, seed))) for seed in range(8)]
    for name in ("relative_contrast", "near_duplicate_share"):
        m = get(name)
        values = [m(points) for points in drawn]
        assert m.null is not None
        assert m.null(n, d) == pytest.approx(np.mean(values), abs=4 * np.std(values) / math.sqrt(8) + 1e-9)
    lengths = np.linalg.norm(normal(200_000 // d, d, 9), axis=1)
    null = get("norm_variation").null
    assert null is not None
    assert null(n, d) == pytest.approx(lengths.std() / lengths.mean(), rel=0.05)


def test_smaller_simulations_give_the_null_of_more_rows() -> None:
    """The share of slots that hubs of isotropic rows hold hardly depends on n."""
    m = get("hub_share")
    assert m.null_rows == 4_000
    small, large = (m(draw_isotropic_points(n, 16)) for n in (1_000, 6_000))
    assert small == pytest.approx(large, abs=0.002)
    rows = prepare_rows(normal(300, 16))
    found = Nulls().value(m, Summary(Moments.of(rows)))
    assert found == pytest.approx(0.0187, abs=0.003)


def test_the_participation_ratio_is_that_of_the_eigenvalues() -> None:
    rows = SPACES["power law"]
    values = np.linalg.eigvalsh(np.cov(rows.T))
    expected = values.sum() ** 2 / (values**2).sum()
    assert get("participation_ratio")(rows) == pytest.approx(expected, rel=1e-9)
    assert (expected - 1) / 39 == pytest.approx(get("isoscore")(rows), rel=1e-9)


@pytest.mark.parametrize("shift", [0.0, 1e6])
def test_norm_variation_is_that_of_the_lengths_in_any_split(shift: float) -> None:
    rows = SPACES["lengths"] + shift
    lengths = np.linalg.norm(rows, axis=1)
    expected = lengths.std() / lengths.mean()
    total = Moments.empty(12)
    for part in np.array_split(rows, 7):
        total += Moments.of(prepare_rows(part))
    assert get("norm_variation")(total) == pytest.approx(expected, rel=1e-8)
    fewer = total.without(Moments.of(prepare_rows(rows[:100])))
    rest = lengths[100:]
    assert get("norm_variation")(fewer) == pytest.approx(rest.std() / rest.mean(), rel=1e-7)


def test_moments_that_an_earlier_version_saved_have_no_norm_variation() -> None:
    arrays = Moments.of(prepare_rows(SPACES["isotropic"])).arrays()
    del arrays["norms"]
    loaded = Moments.from_arrays(arrays)
    with pytest.raises(Undefined, match="lengths of the rows are not known"):
        get("norm_variation").value(loaded)
    assert math.isnan(get("norm_variation")(loaded + loaded))


def test_measures_by_name_and_by_group() -> None:
    rows = SPACES["isotropic"]
    found = isotrope.measure(rows, ["participation_ratio", "hub_share"])
    assert found == {"participation_ratio": get("participation_ratio")(rows), "hub_share": get("hub_share")(rows)}
    assert list(isotrope.measure(rows, "search")) == NAMES


def test_a_scan_of_vectors_looks_at_search_and_counts_equal_rows() -> None:
    rows = np.vstack([SPACES["isotropic"], SPACES["isotropic"][[4, 4, 9]]])
    findings = scan(vectors=rows)
    expected = {m.name for m in MEASURES if m.group in ("moments", "search") and m.needs in ("moments", "sample")}
    assert {r.measure for r in findings.readings} == expected
    for name in NAMES:
        reading = findings.get(name)
        assert reading.low <= reading.value <= reading.high
        assert math.isfinite(reading.null)
    assert findings.counts["duplicate_rows"] == 3
    named = [(row["group"], row["row"], row["size"], row["equal"]) for row in findings.rows["duplicates"]]
    assert named == [(0, 4, 3, True), (0, 500, 3, True), (0, 501, 3, True), (1, 9, 2, True), (1, 502, 2, True)]
    without_sample = scan(vectors=rows, sample=0)
    assert not {r.measure for r in without_sample.readings} & {*NAMES}
    assert without_sample.counts["duplicate_rows"] == 3
