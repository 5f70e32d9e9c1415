"""Intervals of measures of the sample hold what they are about, 90 to 100 times in 100.

That is the space's own value for some; for others, which depend on the number of rows by their nature, what so many
rows of the space give on average.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from isotrope.measures import MEASURES, Measure, get
from isotrope.readings.intervals import GROUPS, Interval, JackknifeGroups, compute_intervals, jackknife
from isotrope.sources.batch import Rows
from isotrope.statistics import Points, Sample, prepare_rows

ESTIMATES = [m for m in MEASURES if m.needs == "sample" and m.estimate]

#: As for the other intervals: a hundred draws tell 95 from below 86, hundreds ask for 90.
FEW, LEAST_OF_FEW, LEAST_OF_MANY = 100, 86, 90


class Space(NamedTuple):
    """Sequences of Gaussian rows that have a part of their variance in common."""

    mean: np.ndarray
    spectrum: np.ndarray
    sequences: int
    length: int = 1
    together: float = 0.0
    size: int = 10**9

    def draw(self, rng: np.random.Generator, sequences: int | None = None) -> Sample:
        count, d = sequences or self.sequences, len(self.mean)
        shared = rng.standard_normal((count, 1, d)) * math.sqrt(self.together)
        rows = shared + rng.standard_normal((count, self.length, d)) * math.sqrt(1 - self.together)
        basis = stats.ortho_group.rvs(d, random_state=1)
        ids = np.repeat(np.arange(count, dtype=np.uint64), self.length)
        sample = Sample.empty(d, self.size)
        sample.add(prepare_rows(self.mean + rows.reshape(-1, d) @ (np.sqrt(self.spectrum)[:, None] * basis), Rows(ids)))
        return sample

    def truth(self, draws: int) -> dict[str, float]:
        """What the intervals are about."""
        rng = np.random.default_rng(1)
        at_n = [m for m in ESTIMATES if m.at_n]
        found = np.array(
            [[m(p) for m in at_n] for p in (Points.of(self.draw(rng).to_usable_rows()) for _ in range(draws))]
        )
        share = self.spectrum * len(self.spectrum) / self.spectrum.sum()
        many = self._replace(length=1, together=0.0, size=10**9).draw(rng, 12_000)
        return dict(zip((m.name for m in at_n), found.mean(axis=0), strict=True)) | {
            "vrm": float(np.mean((1 - np.sqrt(share)) ** 2)),  # of a Gaussian, whose entropies are known
            "rbf_distance": get("rbf_distance")(Points.of(many.to_usable_rows())),
        }


def read(measures: list[Measure], sample: Sample) -> list[Interval]:
    groups = JackknifeGroups(sample, ["sample"])
    return compute_intervals(measures, [m(groups.points) for m in measures], groups, "sample")


def coverage(space: Space, times: int) -> dict[str, float]:
    """How many of 100 intervals hold the truth, by measure."""
    rng, truth = np.random.default_rng(20), space.truth(3 * FEW)
    found = [read(ESTIMATES, space.draw(rng)) for _ in range(times)]
    hits = [[low <= truth[m.name] <= high for m, (low, high) in zip(ESTIMATES, ends, strict=True)] for ends in found]
    return dict(zip((m.name for m in ESTIMATES), 100 * np.mean(hits, axis=0), strict=True))


def assert_honest(found: dict[str, float], least: float) -> None:
    assert len(found) == len(ESTIMATES)
    assert not {name: share for name, share in found.items() if not least <= share <= 100}


def power(d: int) -> np.ndarray:
    return 1 / np.arange(1.0, d + 1)


def off(d: int, size: float) -> np.ndarray:
    return size * np.random.default_rng(3).standard_normal(d)


SPACES = {
    "isotropic": Space(np.zeros(16), np.ones(16), 400),
    "power law and mean": Space(off(16, 1.0), power(16), 500),
    "sequences, sampled": Space(off(12, 0.5), power(12), 90, 10, 0.5, size=600),
}
MORE = SPACES | {
    "isotropic, wider": Space(np.zeros(48), np.ones(48), 1000),
    "point plus noise": Space(off(32, 2.0), np.ones(32), 800),
    "power law": Space(np.zeros(32), power(32), 800),
    "two levels": Space(off(24, 0.05), np.repeat([2.0, 1.0], 12), 800),
    "sequences": Space(off(24, 0.5), power(24), 120, 12, 0.5),
}


@pytest.mark.parametrize(
    "space",
    [pytest.param(name, marks=[] if name == "isotropic" else pytest.mark.long) for name in SPACES],
)
def test_intervals_hold_what_they_are_about(space: str) -> None:
    assert_honest(coverage(SPACES[space], FEW), LEAST_OF_FEW)


@pytest.mark.validation
@pytest.mark.parametrize("space", MORE)
def test_intervals_hold_what_they_are_about_many_times(space: str) -> None:
    assert_honest(coverage(MORE[space], 300), LEAST_OF_MANY)


def test_which_intervals_are_about_this_number_of_rows() -> None:
    others = {m.name for m in ESTIMATES if m.group != "search"}
    assert others == {"rbf_distance", "vrm", "intrinsic_dimension_twonn", "intrinsic_dimension_mle"}
    assert {m.name for m in ESTIMATES if not m.at_n} == {"rbf_distance", "vrm"}


def test_leaving_groups_out_shares_work_and_changes_nothing() -> None:
    """Each interval is that of a jackknife which measures every left-out sample from scratch."""
    sample = SPACES["power law and mean"].draw(np.random.default_rng(0))
    groups = JackknifeGroups(sample, ["sample"])
    points = groups.points
    found = read(ESTIMATES, sample)
    for m, (low, high) in zip(ESTIMATES, found, strict=True):
        fresh = [m(Points.of(prepare_rows(points.rows[points.group != g]))) for g in range(GROUPS)]
        _, error = jackknife(m(points), np.array(fresh))
        margin = stats.t.ppf(0.975, GROUPS - 1) * error
        bounds = m.bounds(points.n, points.d)
        ends = np.clip([m(points) - margin, m(points) + margin], *bounds)
        if m.row_share:  # wider where few rows are of that kind
            assert low <= ends[0] + 1e-12
            assert high >= ends[1] - 1e-12
        elif m.at_n:
            np.testing.assert_allclose([low, high], ends, rtol=1e-9, atol=1e-12)
        else:
            assert high - low >= 2 * margin * (1 - 1e-9)


def test_repeated_rows_break_no_interval() -> None:
    """Most rows repeat rows of other groups: leaving a group out takes few distinct ones away."""
    rows = np.random.default_rng(0).standard_normal((150, 5))
    sample = Sample.empty(5, 10**9)
    sample.add(prepare_rows(np.vstack([rows] * 4)))
    for low, high in read(ESTIMATES, sample):
        assert math.isfinite(low)
        assert low <= high


def test_below_forty_rows_there_is_none() -> None:
    sample = Sample.empty(3, 10**9)
    sample.add(prepare_rows(np.random.default_rng(0).standard_normal((39, 3))))
    assert all(map(math.isnan, [end for ends in read(ESTIMATES, sample) for end in ends]))


@pytest.mark.parametrize(
    "name", ["partition_isotropy", "log_partition_isotropy", "outlier_dimensions", "hubness", "lsds"]
)
def test_what_cannot_have_an_honest_interval_says_why(name: str) -> None:
    m = get(name)
    assert not m.estimate
    assert "no interval" in m.blind


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("log_partition_isotropy", Space(np.zeros(48), 100 * power(48), 600)),
        ("hubness", Space(off(48, 1.5), np.ones(48), 500)),
    ],
)
def test_some_would_have_a_dishonest_interval(name: str, space: Space) -> None:
    """What their records say: the spread over left-out groups misses the spread over samples."""
    m, rng = get(name), np.random.default_rng(0)
    values, errors = [], []
    for _ in range(100):
        points = JackknifeGroups(space.draw(rng), ["sample"]).points
        values.append(m(points))
        errors.append(jackknife(values[-1], np.array([m(points.leave_out(g)) for g in range(GROUPS)]))[1])
    held = np.abs(np.array(values) - np.mean(values)) <= stats.t.ppf(0.975, GROUPS - 1) * np.array(errors)
    assert held.mean() < 0.86


def test_the_share_of_a_coordinate_has_an_interval_where_there_is_a_common_direction() -> None:
    m = get("outlier_dimension_share")
    rng = np.random.default_rng(0)
    for shift, there in ((0.0, False), (0.3, True)):
        rows = rng.standard_normal((800, 16)) + shift
        sample = Sample.empty(16, 10**9)
        sample.add(prepare_rows(rows))
        low, high = compute_intervals([m], [m(rows)], JackknifeGroups(sample, ["moments"]), "moments")[0]
        assert math.isfinite(low) == math.isfinite(high) == there
