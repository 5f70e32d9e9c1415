"""False alarms, power and coverage of the two-sample tests, over many small simulations."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from isotrope.errors import InputError
from isotrope.two_sample import RowSet, SetComparison, compare_sets, shift_tests
from isotrope.two_sample.shift_tests import compute_tests
from isotrope.two_sample.two_sets import TwoSets

Maker = Callable[[np.random.Generator], tuple[RowSet, RowSet]]


@pytest.fixture(autouse=True)
def fewer_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shift_tests, "PERMUTATIONS", 99)
    monkeypatch.setattr(shift_tests, "RESAMPLES", 199)


def simulate(make: Maker, repeats: int, *, paired: bool = False) -> np.ndarray:
    """p, effect, low and high of the three tests, (repeats, 3, 4)."""
    found = []
    for seed in range(repeats):
        sets = TwoSets.join(*make(np.random.default_rng([seed, 5])), paired=paired)
        found.append([(t.p, t.effect, t.low, t.high) for t in compute_tests(sets, seed)])
    return np.array(found)


def make_independent(n: int, m: int, d: int, **after: float) -> Maker:
    def make(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
        before = rng.normal(size=(n, d)) + 1.0
        changed = rng.normal(size=(m, d)) * after.get("scale", 1.0) + 1.0 + after.get("shift", 0.0)
        return RowSet.of_rows(before), RowSet.of_rows(changed)

    return make


def make_heavy(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
    return RowSet.of_rows(rng.standard_t(3, size=(40, 4))), RowSet.of_rows(rng.standard_t(3, size=(25, 4)))


def make_sequences(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
    """Rows of a sequence share most of what they are; taken for independent, they would give false alarms."""
    sets = []
    for _ in range(2):
        sequence = np.repeat(np.arange(16), rng.integers(2, 9, 16))
        rows = rng.normal(size=(16, 4))[sequence] + 0.5 * rng.normal(size=(len(sequence), 4))
        sets.append(RowSet(rows, np.arange(len(rows)), sequence))
    return sets[0], sets[1]


def make_pairs(shift: float = 0.0) -> Maker:
    def make(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
        items = rng.normal(size=(50, 4))
        noise = 0.3 * rng.normal(size=(2, 50, 4))
        return RowSet.of_rows(items + noise[0]), RowSet.of_rows(items + noise[1] + shift)

    return make


NULLS: dict[str, tuple[Maker, bool]] = {
    "as many rows": (make_independent(40, 40, 3), False),
    "fewer rows": (make_independent(60, 20, 3), False),
    "more dimensions than rows": (make_independent(20, 40, 100), False),
    "heavy tails": (make_heavy, False),
    "sequences": (make_sequences, False),
    "pairs": (make_pairs(), True),
}


@pytest.mark.parametrize("name", NULLS)
def test_false_alarms_are_as_rare_as_the_level(name: str) -> None:
    """At a level of 0.05, within the limits of a binomial count, and p-values are uniform."""
    make, paired = NULLS[name]
    repeats = 200
    p = simulate(make, repeats, paired=paired)[:, :, 0]
    most = stats.binom.ppf(0.9995, repeats, 0.05)
    assert ((p <= 0.05).sum(axis=0) <= most).all(), (p <= 0.05).mean(axis=0)
    for test in p.T:
        assert stats.kstest(test, "uniform").pvalue > 1e-4
        assert (test <= 0.5).mean() > 0.35  # not so careful that nothing is ever found


@pytest.mark.long
@pytest.mark.parametrize("name", NULLS)
def test_false_alarms_in_a_thousand(name: str) -> None:
    make, paired = NULLS[name]
    p = simulate(make, 1000, paired=paired)[:, :, 0]
    rejected = (p <= 0.05).sum(axis=0)
    # Covariances are of rows about their own mean, which makes their exchange approximate: with Student's t of three
    # degrees of freedom, which has no fourth moment, and 25 rows, 84 of 1,000 were false alarms.
    levels = np.array([0.05, 0.09 if name == "heavy tails" else 0.05, 0.05])
    assert (rejected <= stats.binom.ppf(0.999, 1000, levels)).all(), rejected
    assert (rejected[[0, 2]] >= stats.binom.ppf(0.001, 1000, 0.05)).all(), rejected


def test_sequences_taken_for_rows_give_false_alarms() -> None:
    """What the exchange of whole sequences is for."""

    def forget(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
        first, second = make_sequences(rng)
        return RowSet.of_rows(first.rows), RowSet.of_rows(second.rows)

    assert (simulate(forget, 60)[:, 0, 0] <= 0.05).mean() > 0.3


def test_a_shift_of_the_mean_is_found_and_is_no_change_of_the_covariance() -> None:
    found = simulate(make_independent(60, 60, 5, shift=0.5), 60)
    rejected = (found[:, :, 0] <= 0.05).mean(axis=0)
    assert rejected[0] > 0.95
    assert rejected[1] < 0.2
    assert found[:, 0, 1].mean() == pytest.approx(0.5, abs=0.03)


def test_a_change_of_the_covariance_is_found_where_the_means_are_equal() -> None:
    found = simulate(make_independent(80, 80, 4, scale=1.5), 60)
    rejected = (found[:, :, 0] <= 0.05).mean(axis=0)
    assert rejected[1] > 0.95
    assert rejected[0] < 0.2
    assert found[:, 1, 1].mean() == pytest.approx(1.25, abs=0.1)  # ‖2.25 I − I‖ / ‖I‖


def make_mixture(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
    """A Gaussian, and eight clusters with the same mean and the same covariance."""
    rows = rng.normal(size=(150, 3))
    signs = rng.choice([-1.0, 1.0], size=(150, 3))
    return RowSet.of_rows(rng.normal(size=(150, 3))), RowSet.of_rows(0.95 * signs + np.sqrt(1 - 0.95**2) * rows)


def test_neighbourhoods_see_what_leaves_mean_and_covariance_as_they_are() -> None:
    rejected = (simulate(make_mixture, 30)[:, :, 0] <= 0.05).mean(axis=0)
    assert rejected[2] > 0.95
    assert (rejected[:2] < 0.25).all()


def test_neighbourhoods_see_a_small_set_of_hubs() -> None:
    """Rows of both sets have neighbours among rows close to the mean: the sum of own neighbours would not change."""

    def make(rng: np.random.Generator) -> tuple[RowSet, RowSet]:
        return RowSet.of_rows(rng.normal(size=(200, 16)) + 0.3), RowSet.of_rows(rng.normal(size=(40, 16)) + 2.0)

    found = simulate(make, 10)
    assert (found[:, 2, 0] <= 0.05).all()
    assert (found[:, 2, 1] > 0.5).all()


def test_pairs_show_a_shift_that_two_sets_would_hide() -> None:
    make = make_pairs(shift=0.1)
    assert (simulate(make, 40, paired=True)[:, 0, 0] <= 0.05).mean() > 0.7
    assert (simulate(make, 40, paired=False)[:, 0, 0] <= 0.05).mean() < 0.3


@pytest.mark.parametrize(("test", "truth", "after"), [(0, 0.4, {"shift": 0.4}), (1, 0.96, {"scale": 1.4})])
def test_intervals_hold_the_truth(test: int, truth: float, after: dict[str, float]) -> None:
    found = simulate(make_independent(100, 80, 4, **after), 100)
    held = (found[:, test, 2] <= truth) & (truth <= found[:, test, 3])
    assert held.mean() > 0.87, held.mean()


def test_the_interval_of_neighbourhoods_holds_their_mean() -> None:
    found = simulate(make_independent(60, 60, 4, shift=0.5), 100)
    held = (found[:, 2, 2] <= found[:, 2, 1].mean()) & (found[:, 2, 1].mean() <= found[:, 2, 3])
    assert held.mean() > 0.87, held.mean()


class TestDesign:
    """What is compared with what, by the ids of rows."""

    rows = np.random.default_rng(1).normal(size=(400, 8))

    def _compare(self, after: np.ndarray) -> SetComparison:
        return compare_sets(RowSet.of_rows(self.rows), RowSet.of_rows(after))

    def test_other_items_under_the_same_numbers_are_independent(self) -> None:
        found = self._compare(np.random.default_rng(2).normal(size=(400, 8)))
        assert (found.design, found.rows, len(found.tests)) == ("independent", (400, 400), 3)

    def test_the_same_items_are_compared_in_pairs_even_in_another_space(self) -> None:
        rotation, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(8, 8)))
        found = self._compare(self.rows @ rotation)
        assert (found.design, found.same, found.unchanged) == ("pairs", 400, 0)
        effects = {test.test: test.effect for test in found.tests}
        assert effects["neighbour_overlap"] == 1.0
        assert abs(effects["row_cosine"]) < 0.7

    def test_other_sequences_under_the_same_numbers_are_independent(self) -> None:
        """Rows of a sequence are neighbours of each other in both sets, whatever the sequence is."""
        sequence = np.repeat(np.arange(80), 5)
        rng = np.random.default_rng(5)
        sets = [
            RowSet(rng.normal(size=(80, 8))[sequence] + 0.1 * rng.normal(size=(400, 8)), np.arange(400), sequence)
            for _ in range(2)
        ]
        assert compare_sets(*sets).design == "independent"
        again = RowSet(sets[0].rows + 0.1 * rng.normal(size=(400, 8)), np.arange(400), sequence)
        assert compare_sets(sets[0], again).design == "pairs"

    def test_rows_that_were_added_are_compared_with_the_others(self) -> None:
        added = np.random.default_rng(4).normal(size=(50, 8)) + 1.0
        found = self._compare(np.concatenate([self.rows, added]))
        assert (found.design, found.rows, found.unchanged) == ("new rows", (400, 50), 400)
        assert found.tests[0].effect == pytest.approx(1.0, abs=0.15)
        assert found.tests[0].significant

    def test_nothing_changed(self) -> None:
        found = self._compare(self.rows * (1 + 1e-4))
        assert (found.design, found.rows, found.unchanged) == ("new rows", (400, 0), 400)
        assert [(test.effect, test.p) for test in found.tests[:3]] == [(0.0, 1.0)] * 3

    def test_refusals(self) -> None:
        with pytest.raises(InputError, match="width 8 and 7"):
            self._compare(self.rows[:, :7])
        with pytest.raises(InputError, match="needs 10 rows or sequences of each set, got 3"):
            self._compare(self.rows[:3])
        with pytest.raises(InputError, match="all the same"):
            compare_sets(RowSet.of_rows(np.ones((20, 3))), RowSet.of_rows(np.ones((20, 3))))

    def test_the_seed_decides(self) -> None:
        after = np.random.default_rng(2).normal(size=(300, 8)) + 0.02
        one, same, other = (
            compare_sets(RowSet.of_rows(self.rows), RowSet.of_rows(after), seed=seed) for seed in (1, 1, 2)
        )
        assert one == same != other
