"""Intervals hold the truth: what endless rows of the same space would give, 90 to 100 times in 100."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import special, stats

import isotrope
from isotrope.compute.arrays import mix_ids
from isotrope.measures import MEASURES, Measure, get
from isotrope.readings.heavy_tails import tail_index
from isotrope.readings.intervals import (
    GROUPS,
    NONE,
    Interval,
    JackknifeGroups,
    compute_intervals,
    jackknife,
)
from isotrope.sources.batch import Rows
from isotrope.statistics import (
    Moments,
    Sample,
    SequenceSpectra,
    SequenceStatistics,
    TokenStatistics,
    TokenTable,
    prepare_rows,
)
from isotrope.statistics.norm_moments import NormMoments

Draw = Callable[[np.random.Generator], tuple[np.ndarray, Rows]]
ESTIMATES = {
    need: [m for m in MEASURES if m.needs == need and m.estimate]
    for need in ("moments", "tokens", "sequences", "spectra")
}
SHARE = "outlier_dimension_share"
ENDLESS = 10**12
EVERYTHING = 10**9

#: A hundred draws tell a true coverage of 95 from one below 86 with near certainty; the long tests, with hundreds of
#: draws, ask for 90.
FEW, LEAST_OF_FEW, LEAST_OF_MANY = 100, 86, 90


class Space(NamedTuple):
    """Rows to draw, the true values of measures by name, and whether the rows' lengths have heavy tails."""

    draw: Draw
    truth: Callable[[Any], dict[str, float]]
    heavy: bool = False


def read(need: str, space: Space, rng: np.random.Generator, size: int) -> tuple[list[Interval], dict[str, float]]:
    """Intervals of all measures of one need on one draw, and the truth."""
    rows = prepare_rows(*space.draw(rng))
    sample = Sample.empty(rows.values.shape[1], size)
    sample.add(rows)
    kinds: dict[str, Any] = {"moments": Moments, "tokens": TokenStatistics, "sequences": SequenceStatistics}
    # The spectra of sequences are taken on the sampled ones.
    statistic = SequenceSpectra.of(sample.to_usable_rows()) if need == "spectra" else kinds[need].of(rows)
    values = [m(statistic) for m in ESTIMATES[need]]
    return compute_intervals(ESTIMATES[need], values, JackknifeGroups(sample, [need]), need), space.truth(statistic)


def coverage(
    need: str, space: Space, size: int = EVERYTHING, times: int = FEW, *, stated: bool = False
) -> dict[str, float]:
    """How many of 100 draws have an interval that holds the truth or, with heavy tails, none, by measure.

    stated: how many of 100 intervals that are stated hold it.
    """
    rng = np.random.default_rng(20)
    hits: dict[str, list[bool]] = {}
    for _ in range(times):
        found, truth = read(need, space, rng, size)
        for m, (low, high) in zip(ESTIMATES[need], found, strict=True):
            true = truth[m.name]
            slack = 1e-9 * abs(true)  # rounding, where the truth is an end of the range
            # Shares of no common direction have no truth, and rightly claim none; nor do averages with heavy tails.
            silent = math.isnan(low) and (m.name == SHARE or (space.heavy and m.length_power > 0))
            if not (stated and silent):
                hits.setdefault(m.name, []).append(silent or low - slack <= true <= high + slack)
    return {name: 100 * float(np.mean(h)) for name, h in hits.items()}


def assert_honest(found: dict[str, float], least: float) -> None:
    assert not {name: share for name, share in found.items() if not least <= share <= 100}


# Rows


class Factor(NamedTuple):
    """A random factor of each row, with its mean and mean square."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    mean: float
    mean_square: float


ONE = Factor(lambda rng, n: np.ones(n), 1.0, 1.0)


def lognormal(sigma: float) -> Factor:
    return Factor(lambda rng, n: np.exp(sigma * rng.standard_normal(n)), math.exp(sigma**2 / 2), math.exp(2 * sigma**2))


def student(freedom: float) -> Factor:
    """What makes Gaussian rows those of a multivariate t distribution."""
    mean = math.sqrt(freedom / 2) * math.exp(special.gammaln((freedom - 1) / 2) - special.gammaln(freedom / 2))
    return Factor(lambda rng, n: np.sqrt(freedom / rng.chisquare(freedom, n)), mean, freedom / (freedom - 2))


def gaussian(
    mean: np.ndarray, spectrum: np.ndarray, n: int, length: int = 1, together: float = 0.0, factor: Factor = ONE
) -> Space:
    """Rows of a Gaussian, each times a factor, in sequences whose rows have a part of their variance in common."""
    d = len(mean)
    basis = stats.ortho_group.rvs(d, random_state=1)
    root = np.sqrt(spectrum)[:, None] * basis
    sequences = n // length
    known = Rows(
        np.repeat(np.arange(sequences, dtype=np.uint64), length), position=np.tile(np.arange(length), sequences)
    )

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Rows]:
        own = rng.standard_normal((sequences, length, d)) * math.sqrt(1 - together)
        shared = rng.standard_normal((sequences, 1, d)) * math.sqrt(together)
        return factor.draw(rng, n)[:, None] * (mean + (own + shared).reshape(-1, d) @ root), known

    @cache
    def truth() -> dict[str, float]:
        drift = factor.mean * mean
        covariance = factor.mean_square * (root.T @ root + np.outer(mean, mean)) - np.outer(drift, drift)
        many = mean + np.random.default_rng(0).standard_normal((500_000, d)) @ root
        lengths = np.linalg.norm(many, axis=1)
        unit = (many / lengths[:, None]).mean(axis=0) if mean.any() else np.zeros(d)
        length = factor.mean * float(lengths.mean())
        spread = factor.mean_square * float(np.mean(lengths**2)) - length**2
        endless = Moments(
            n=ENDLESS,
            mean=drift,
            scatter=ENDLESS * covariance,
            unit_mean=unit,
            unit_scatter=(ENDLESS - 1) * (1 - float(unit @ unit)),
            energy=ENDLESS * float(covariance.trace() + drift @ drift),
            norms=NormMoments(length, ENDLESS * spread),
        )
        return {m.name: m(endless) for m in ESTIMATES["moments"]}

    return Space(draw, lambda _: truth(), heavy=factor is not ONE)


def flat(d: int) -> np.ndarray:
    return np.ones(d)


def power(d: int) -> np.ndarray:
    return 1 / np.arange(1.0, d + 1)


def off(d: int, size: float) -> np.ndarray:
    return size * np.random.default_rng(3).standard_normal(d)


def long_but(names: Iterable[str], *quick: str) -> list[Any]:
    """The names of spaces as parameters; those that are not quick are for the long tests."""
    return [pytest.param(name, marks=[] if name in quick else pytest.mark.long) for name in names]


MOMENTS: dict[str, tuple[Space, int]] = {
    "isotropic, few rows": (gaussian(np.zeros(32), flat(32), 200), EVERYTHING),
    "isotropic": (gaussian(np.zeros(32), flat(32), 600), EVERYTHING),
    "isotropic, wider": (gaussian(np.zeros(64), flat(64), 2000), EVERYTHING),
    "isotropic, sampled": (gaussian(np.zeros(32), flat(32), 3000), 800),
    "point plus noise": (gaussian(off(32, 2.0), flat(32), 1000), EVERYTHING),
    "power law": (gaussian(np.zeros(48), power(48), 1000), EVERYTHING),
    "power law and mean": (gaussian(off(48, 1.0), power(48), 1000), EVERYTHING),
    "power law and mean, sampled": (gaussian(off(32, 1.0), power(32), 3000), 800),
    "two levels": (gaussian(off(32, 0.05), np.repeat([2.0, 1.0], 16), 800), EVERYTHING),
    "sequences": (gaussian(off(32, 0.5), power(32), 6000, 15, 0.5), EVERYTHING),
    "sequences, sampled": (gaussian(off(32, 0.5), power(32), 9000, 15, 0.5), 2500),
}


@pytest.mark.parametrize("space", long_but(MOMENTS, "isotropic", "isotropic, sampled", "power law", "sequences"))
def test_intervals_of_moments_hold_the_truth(space: str) -> None:
    assert_honest(coverage("moments", *MOMENTS[space]), LEAST_OF_FEW)


@pytest.mark.validation
@pytest.mark.parametrize("space", MOMENTS)
def test_intervals_of_moments_hold_the_truth_many_times(space: str) -> None:
    assert_honest(coverage("moments", *MOMENTS[space], times=400), LEAST_OF_MANY)


HEAVY: dict[str, Space] = {
    "lognormal 0.5": gaussian(off(16, 0.5), flat(16), 1000, factor=lognormal(0.5)),
    "lognormal 1": gaussian(off(16, 0.5), flat(16), 1000, factor=lognormal(1.0)),
    "lognormal 1, far": gaussian(off(16, 2.0), flat(16), 400, factor=lognormal(1.0)),
    "lognormal 1, sequences": gaussian(off(16, 0.5), power(16), 3000, 10, 0.3, factor=lognormal(1.0)),
    "lognormal 1.5": gaussian(off(16, 0.5), power(16), 1000, factor=lognormal(1.5)),
    "Student t, 3": gaussian(off(16, 0.5), power(16), 1000, factor=student(3.0)),
    "Student t, 5": gaussian(off(16, 0.5), flat(16), 1000, factor=student(5.0)),
    "Student t, 5, few rows": gaussian(off(16, 0.5), power(16), 300, factor=student(5.0)),
}
SOME_HEAVY = ("lognormal 1", "lognormal 1, far", "Student t, 3", "Student t, 5, few rows")
MODERATE = ("lognormal 0.5", "Student t, 5", "Student t, 5, few rows")


@pytest.mark.parametrize("space", long_but(SOME_HEAVY, "lognormal 1, far", "Student t, 3"))
def test_intervals_of_heavy_tails_hold_the_truth_or_are_not_stated(space: str) -> None:
    assert_honest(coverage("moments", HEAVY[space]), LEAST_OF_FEW)


@pytest.mark.validation
@pytest.mark.parametrize("space", HEAVY)
def test_intervals_of_heavy_tails_hold_the_truth_or_are_not_stated_many_times(space: str) -> None:
    assert_honest(coverage("moments", HEAVY[space], times=400), LEAST_OF_MANY)


@pytest.mark.parametrize("space", long_but(MODERATE, "Student t, 5, few rows"))
def test_intervals_stated_for_moderate_tails_hold_the_truth(space: str) -> None:
    found = coverage("moments", HEAVY[space], stated=True)
    assert found.keys() == {m.name for m in ESTIMATES["moments"]}
    assert_honest(found, LEAST_OF_FEW)


@pytest.mark.parametrize("space", ["lognormal 1", "lognormal 1.5", "Student t, 3"])
def test_heavy_tails_leave_intervals_of_directions_alone(space: str) -> None:
    stated = np.zeros(len(ESTIMATES["moments"]))
    rng = np.random.default_rng(1)
    for _ in range(20):
        found, _ = read("moments", HEAVY[space], rng, EVERYTHING)
        stated += [math.isfinite(low) for low, _ in found]
    for m, count in zip(ESTIMATES["moments"], stated, strict=True):
        assert m.length_power != 0 or count == 20, m.name
        assert m.length_power != 2 or count <= 2, m.name


# Tokens


def texts(
    types: int,
    frequency: np.ndarray,
    sequences: int,
    length: int,
    d: int = 8,
    together: float = 0.3,
    factor: Factor = ONE,
) -> Space:
    """Rows around the mean of their type, times a factor, types drawn by frequency, sequences with a part in common."""
    rng = np.random.default_rng(5)
    p = frequency / frequency.sum()
    size = 0.6 + 0.8 * rng.random(types)
    means = rng.standard_normal((types, d)) * size[:, None] + 0.3
    own = np.sqrt(np.maximum(2.2 - size**2 + 0.2 * rng.standard_normal(types), 0.2))
    spread = np.sqrt(own**2 + together)
    n = sequences * length
    index = np.arange(n)

    def draw(rng: np.random.Generator) -> tuple[np.ndarray, Rows]:
        token = rng.choice(types, size=n, p=p)
        shared = np.repeat(rng.standard_normal((sequences, d)) * math.sqrt(together), length, axis=0)
        values = means[token] + own[token, None] * rng.standard_normal((n, d)) + shared
        values *= factor.draw(rng, n)[:, None]
        return values, Rows((index // length).astype(np.uint64), token=token, position=index % length)

    # The mean direction of a Gaussian around a mean, in closed form (the projected normal law).
    norm = np.linalg.norm(means, axis=1)
    ratio = norm / spread
    scale = math.exp(special.gammaln((d + 1) / 2) - special.gammaln(d / 2 + 1)) / math.sqrt(2)
    shortening = scale * ratio * special.hyp1f1(0.5, d / 2 + 1, -(ratio**2) / 2)
    units = means * (shortening / norm)[:, None]
    q = factor.mean_square * (norm**2 + d * spread**2)
    drifts = factor.mean * means
    overall, m = p @ drifts, (drifts**2).sum(axis=1)
    many = p * 1e9

    def truth(found: TokenStatistics) -> dict[str, float]:
        """Of the types that are in the window now: true Q, M and V against true frequency."""
        seen = np.zeros(types, np.int64)
        seen[found.types] = found.n
        endless = TokenTable(
            types=np.arange(types),
            n=many,  # type: ignore[arg-type]
            q=q,
            m=m,
            v=q - m,
            b=((drifts - overall) ** 2).sum(axis=1),
            unit_squares=many + many * (many - 1) * (units**2).sum(axis=1),
            mean_square=float(overall @ overall),
            unit_square=1e9 + 1e9 * (1e9 - 1) * float(((p @ units) ** 2).sum()),
            seen=seen,
        )
        return {m.name: m(endless) for m in ESTIMATES["tokens"]}

    return Space(draw, truth, heavy=factor is not ONE)


CLOSED, ZIPF = 1 / (np.arange(60) + 10.0), 1 / (np.arange(4000) + 2.7)
TOKENS: dict[str, tuple[Space, int]] = {
    "closed vocabulary": (texts(60, CLOSED, 300, 16), EVERYTHING),
    "closed vocabulary, sampled": (texts(60, CLOSED, 600, 16), 2400),
    "open vocabulary": (texts(4000, ZIPF, 400, 16), EVERYTHING),
    "open vocabulary, sampled": (texts(4000, ZIPF, 800, 16), 3200),
    "closed vocabulary, lognormal 1": (texts(60, CLOSED, 300, 16, factor=lognormal(1.0)), EVERYTHING),
    "closed vocabulary, Student t, 5": (texts(60, CLOSED, 300, 16, factor=student(5.0)), EVERYTHING),
}


@pytest.mark.parametrize("space", long_but(TOKENS, "closed vocabulary", "open vocabulary, sampled"))
def test_intervals_of_tokens_hold_the_truth(space: str) -> None:
    assert_honest(coverage("tokens", *TOKENS[space]), LEAST_OF_FEW)


@pytest.mark.validation
@pytest.mark.parametrize("space", TOKENS)
def test_intervals_of_tokens_hold_the_truth_many_times(space: str) -> None:
    assert_honest(coverage("tokens", *TOKENS[space], times=300), LEAST_OF_MANY)


# Sequences


def sequences(
    need: str, spectrum: np.ndarray, mean: np.ndarray, count: int, lengths: tuple[int, int], together: float
) -> Space:
    """Sequences of unequal lengths, the first row of each apart from the others."""
    d = len(mean)

    def some(rng: np.random.Generator, count: int) -> tuple[np.ndarray, Rows]:
        length = rng.integers(*lengths, size=count, endpoint=True)
        which = np.repeat(np.arange(count), length)
        position = np.arange(len(which)) - np.repeat(np.cumsum(length) - length, length)
        shared = rng.standard_normal((count, d))[which] * math.sqrt(together)
        values = mean + (shared + rng.standard_normal((len(which), d)) * math.sqrt(1 - together)) * np.sqrt(spectrum)
        values[position == 0] += 0.5
        return values, Rows(which.astype(np.uint64), position=position)

    rng = np.random.default_rng(0)
    kind: Any = SequenceStatistics if need == "sequences" else SequenceSpectra
    parts = [kind.of(prepare_rows(*some(rng, 3000))) for _ in range(8)]
    truth = {m.name: float(np.mean([m(part) for part in parts])) for m in ESTIMATES[need]}
    return Space(lambda rng: some(rng, count), lambda _: truth)


SHAPES: dict[str, tuple[tuple[Any, ...], int]] = {
    "isotropic": ((flat(24), np.zeros(24), 300, (8, 30), 0.0), EVERYTHING),
    "power law and mean": ((power(24), np.full(24, 0.2), 300, (8, 30), 0.4), EVERYTHING),
    "collapsed": ((power(24) ** 2, np.full(24, 1.0), 200, (16, 16), 0.8), EVERYTHING),
    "power law and mean, sampled": ((power(24), np.full(24, 0.2), 600, (8, 30), 0.4), 3000),
}


@pytest.mark.parametrize("need", ["sequences", "spectra"])
@pytest.mark.parametrize("shape", long_but(SHAPES, "power law and mean"))
def test_intervals_of_sequences_hold_the_truth(need: str, shape: str) -> None:
    made, size = SHAPES[shape]
    assert_honest(coverage(need, sequences(need, *made), size), LEAST_OF_FEW)


@pytest.mark.validation
@pytest.mark.parametrize("need", ["sequences", "spectra"])
@pytest.mark.parametrize("shape", SHAPES)
def test_intervals_of_sequences_hold_the_truth_many_times(need: str, shape: str) -> None:
    made, size = SHAPES[shape]
    assert_honest(coverage(need, sequences(need, *made), size, times=300), LEAST_OF_MANY)


# The recipe itself


def sampled(rows: np.ndarray, size: int = EVERYTHING) -> Sample:
    sample = Sample.empty(rows.shape[1], size)
    sample.add(prepare_rows(rows))
    return sample


def interval(name: str, rows: np.ndarray, size: int = EVERYTHING) -> Interval:
    m = MEASURES.get(name)
    return compute_intervals([m], [m(rows)], JackknifeGroups(sampled(rows, size), ["moments"]), "moments")[0]


def test_the_jackknife_of_a_mean_is_the_textbook_one() -> None:
    groups = np.random.default_rng(0).standard_normal(GROUPS)
    without = (groups.sum() - groups) / (GROUPS - 1)
    bias, error = jackknife(float(groups.mean()), without)
    assert bias == pytest.approx(0.0, abs=1e-12)
    assert error == pytest.approx(stats.sem(groups))


def test_the_jackknife_takes_the_bias_of_a_variance_out() -> None:
    groups = np.random.default_rng(1).standard_normal(GROUPS)
    without = np.array([np.var(np.delete(groups, g)) for g in range(GROUPS)])
    bias, _ = jackknife(float(np.var(groups)), without)
    assert np.var(groups) - bias == pytest.approx(np.var(groups, ddof=1))


def test_the_interval_of_a_mean_is_a_t_interval() -> None:
    rows = np.random.default_rng(2).standard_normal((400, 3)) + 1
    sample = sampled(rows)
    order = sample.rows.sequence.astype(int)
    groups = np.array([(rows[order[g::GROUPS]] ** 2).sum(axis=1).mean() for g in range(GROUPS)])
    m = replace(MEASURES.get("mean_squared_norm"), smooth=None)
    low, high = compute_intervals([m], [m(rows)], JackknifeGroups(sample, ["moments"]), "moments")[0]
    expected = stats.t.interval(0.95, GROUPS - 1, np.mean(groups), stats.sem(groups))
    assert (low, high) == pytest.approx(expected, rel=1e-9)
    logs = np.log((groups.sum() - groups) / (GROUPS - 1))
    bias, error = jackknife(math.log(groups.mean()), logs)
    expected = stats.t.interval(0.95, GROUPS - 1, math.log(groups.mean()) - bias, error)
    assert np.log(interval("mean_squared_norm", rows)) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("index", [0.8, 2.0, 5.0])
def test_the_tail_index_of_a_power_law_is_its_exponent(index: float) -> None:
    values = stats.pareto.rvs(index, size=40_000, random_state=0)
    assert tail_index(values) == pytest.approx(index, rel=0.07)
    assert tail_index(7.0 * values) == pytest.approx(tail_index(values))


def test_the_tail_index_of_light_tails_and_of_single_values() -> None:
    rng = np.random.default_rng(0)
    assert tail_index(rng.chisquare(16, 1000)) > 5
    assert tail_index(np.ones(100)) == math.inf
    assert tail_index(np.zeros(100)) == math.inf
    assert tail_index(np.append(np.zeros(100), 1.0)) == 0.0


def test_a_reading_says_that_heavy_tails_have_no_interval() -> None:
    rng = np.random.default_rng(0)
    rows = np.exp(1.5 * rng.standard_normal((500, 1))) * (rng.standard_normal((500, 8)) + 0.5)
    findings = isotrope.scan(vectors=rows, measures="variance,mean_cosine")
    assert math.isnan(findings.get("variance").low)
    assert "no interval: the rows' lengths have heavy tails" in str(findings.get("variance").note)
    assert math.isfinite(findings.get("mean_cosine").low)
    assert findings.get("mean_cosine").note is None


def test_below_forty_sequences_there_is_none() -> None:
    rows = np.random.default_rng(3).standard_normal((2 * GROUPS, 2))
    assert all(map(math.isnan, interval("mean_cosine", rows[:-1])))
    assert not any(map(math.isnan, interval("mean_cosine", rows)))
    assert compute_intervals([], [], JackknifeGroups(sampled(rows), ["moments"]), "moments") == []


def test_a_spectrum_of_few_rows_has_none_and_reaches_back_to_its_value_before_rows_are_ample() -> None:
    rows = np.random.default_rng(4).standard_normal((1000, 40))
    for name in ("isoscore", "eee", "effective_rank", "effective_rank_eigenvalues", "explained_variance_1"):
        m = MEASURES.get(name)
        assert all(map(math.isnan, interval(name, rows[:79]))), name
        low, high = interval(name, rows[:200])
        assert low <= m(rows[:200]) <= high, name
    low, high = interval("eee", rows)
    assert high < MEASURES.get("eee")(rows)  # biased, and the reading says so
    assert low == 0.0


def test_an_undefined_value_has_no_interval() -> None:
    m = MEASURES.get("isoscore")
    assert all(
        map(
            math.isnan,
            compute_intervals([m], [math.nan], JackknifeGroups(sampled(np.ones((100, 3))), ["moments"]), "moments")[0],
        )
    )


@pytest.mark.parametrize("size", [EVERYTHING, 500])
def test_intervals_stay_in_the_range_and_are_the_same_each_time(size: int) -> None:
    rows = np.random.default_rng(5).standard_normal((2000, 8)) * np.arange(1, 9)
    for m in ESTIMATES["moments"]:
        low, high = interval(m.name, rows + 1.0, size)
        bottom, top = m.bounds(ENDLESS, 8)
        assert bottom <= low <= high <= top, m.name
        assert interval(m.name, rows + 1.0, size) == (low, high)


def test_a_sample_of_all_rows_says_less_with_each_row_it_lacks() -> None:
    rows = np.random.default_rng(6).standard_normal((4000, 4)) + 1
    width = {size: np.ptp(interval("mean_cosine", rows, size)) for size in (EVERYTHING, 1000)}
    # A quarter of the rows, taken for what all of them would show: about as wide.
    assert width[1000] == pytest.approx(width[EVERYTHING], rel=0.6)
    assert np.ptp(interval("mean_cosine", rows[:1000])) == pytest.approx(2 * width[EVERYTHING], rel=0.6)


WITHOUT: dict[str, str] = {
    "spectral_median": "no interval",
    "spectral_skewness": "no interval",
    "vanished_dimensions": "no interval",
    "within_variance": "no interval",
    "between_variance": "no interval",
    "within_share": "no interval",
    "between_share": "no interval",
    "within_of_variance": "no interval",
}


@pytest.mark.parametrize("name", WITHOUT)
def test_what_cannot_have_an_honest_interval_says_why(name: str) -> None:
    m: Measure = MEASURES.get(name)
    assert not m.estimate
    assert WITHOUT[name] in m.blind


def test_none_is_none() -> None:
    assert all(map(math.isnan, NONE))


def test_a_type_left_with_one_occurrence_breaks_no_interval() -> None:
    """Ten occurrences in two sequences of one group and one in another: leaving the group out leaves one."""
    rng = np.random.default_rng(0)
    sequences = np.repeat(np.arange(200, dtype=np.uint64), 20)
    token = rng.integers(1, 50, len(sequences))
    starts = np.arange(0, len(sequences), 20)
    order = np.argsort(mix_ids(np.arange(200, dtype=np.uint64), 0))
    token[starts[order[0]] : starts[order[0]] + 10] = 0  # the first group
    token[starts[order[1]]] = 0  # the second
    known = Rows(sequences, token)
    rows = rng.standard_normal((len(sequences), 8))
    sample = Sample.empty(8, 10_000)
    sample.add(prepare_rows(rows, known))
    m = get("self_similarity")
    low, high = compute_intervals(
        [m], [m(TokenStatistics.of(prepare_rows(rows, known)))], JackknifeGroups(sample, ["tokens"]), "tokens"
    )[0]
    assert -0.2 < low < 0 < high < 0.2


@pytest.mark.parametrize("times", [1e7, 1e12, 1e60])
def test_one_row_with_nearly_all_of_the_squared_length(times: float) -> None:
    """Without the group of that row the values are those of the other rows: nothing is lost by subtraction."""
    rows = np.random.default_rng(0).normal(size=(3_000, 32))
    rows[5] *= times
    sample = Sample.empty(32, 3_000)
    sample.add(prepare_rows(rows))
    sample.settle()
    total, left_out, _ = JackknifeGroups(sample, ("moments",)).split("moments")
    energies = [left.energy for left in left_out]
    assert total.n == 3_000
    without = min(energies)
    assert without == pytest.approx(32 * 2_850, rel=0.05)
    assert sum(energy > 0.99 * total.energy for energy in energies) == 19
    for found in isotrope.scan(vectors=rows).readings:
        assert math.isnan(found.low) == math.isnan(found.high)
        assert math.isnan(found.low) or found.low <= found.high
