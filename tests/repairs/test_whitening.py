"""Whitening: covariance afterwards, against scikit-learn's PCA, its forms and strengths, and what it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from isotrope.errors import InputError
from isotrope.repairs import Whitening

Values = np.ndarray


def spread(n: int = 200, d: int = 10, smallest: float = 1e-3) -> Values:
    rng = np.random.default_rng(d)
    return rng.normal(size=(n, d)) * np.geomspace(1, smallest, d) @ np.linalg.qr(rng.normal(size=(d, d)))[0] + 7.0


def covariance(rows: Values) -> Values:
    return np.cov(np.asarray(rows, dtype=np.float64).T)


@pytest.mark.parametrize("form", ["pca", "zca"])
@pytest.mark.parametrize("smallest", [1.0, 1e-2, 1e-4])
def test_the_covariance_becomes_the_identity(form: str, smallest: float) -> None:
    white = Whitening(form=form).fit_transform(spread(smallest=smallest))
    assert_allclose(covariance(white), np.eye(10), rtol=0, atol=1e-6)
    assert_allclose(white.mean(axis=0), 0.0, atol=1e-6)


@pytest.mark.parametrize(("n", "k"), [(200, 10), (200, 4), (9, 3)])
def test_it_is_scikit_learns(n: int, k: int) -> None:
    rows = spread(n)
    ours, theirs = Whitening(k).fit_transform(rows), PCA(k, whiten=True).fit_transform(rows)
    signs = np.sign((ours * theirs).sum(axis=0))
    assert_allclose(ours, theirs * signs, rtol=0, atol=1e-7)


def test_signs_of_columns_are_not_left_to_chance() -> None:
    weight = Whitening().fit(spread()).affine_.weight
    largest = np.abs(weight).argmax(axis=0)
    assert (weight[largest, np.arange(10)] > 0).all()


def test_as_many_columns_as_there_are_directions() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 3)) @ rng.normal(size=(3, 8)) + 5
    white = Whitening().fit_transform(rows)
    assert white.shape == (60, 3)
    assert_allclose(covariance(white), np.eye(3), rtol=0, atol=1e-6)
    turned = Whitening(form="zca").fit_transform(rows)
    assert_allclose(np.linalg.eigvalsh(covariance(turned)), [0] * 5 + [1] * 3, atol=1e-6)


@pytest.mark.parametrize("strength", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("k", [10, 4])
def test_part_of_the_strength_leaves_part_of_the_spread(strength: float, k: int) -> None:
    rows = spread()
    values, vectors = (x[..., ::-1] for x in np.linalg.eigh(covariance(rows)))
    expected = values[:k] ** (1 - strength)
    assert_allclose(covariance(Whitening(k, strength).fit_transform(rows)), np.diag(expected), rtol=0, atol=1e-6)
    turned = (vectors[:, :k] * expected) @ vectors[:, :k].T
    found = covariance(Whitening(k, strength, form="zca").fit_transform(rows))
    assert_allclose(found, turned, rtol=0, atol=1e-6)


def test_zca_is_the_closest_of_all_whitenings() -> None:
    """Kessy, Lewin and Strimmer 2018: its cross-covariance with the rows is symmetric and positive."""
    rows = spread()
    weight = Whitening(form="zca").fit(rows).affine_.weight
    assert_allclose(weight, weight.T, atol=1e-9 * np.abs(weight).max())
    assert (np.linalg.eigvalsh(weight) > 0).all()


def test_a_tolerance_drops_weak_directions() -> None:
    rows = spread(smallest=1e-3)
    values = np.linalg.eigvalsh(covariance(rows))[::-1]
    between = float(np.sqrt(values[4] * values[5]) / values[0])
    assert Whitening(tolerance=between).fit(rows).transform(rows).shape == (200, 5)


def test_fewer_rows_than_columns_need_a_k_or_a_tolerance() -> None:
    rows = np.random.default_rng(0).normal(size=(12, 30))
    with pytest.raises(InputError, match="the same cosine, −1/"):
        Whitening().fit(rows)
    with pytest.raises(InputError, match="12 rows of width 12"):
        Whitening().fit(rows[:, :12])
    assert Whitening(5).fit_transform(rows).shape == (12, 5)
    white = Whitening(tolerance=0.0).fit_transform(rows)
    assert white.shape == (12, 11)
    unit = white / np.linalg.norm(white, axis=1, keepdims=True)
    assert_allclose((unit @ unit.T)[~np.eye(12, dtype=bool)], -1 / 11, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "says"),
    [
        ({"form": "zcb"}, "there is no form 'zcb'"),
        ({"strength": 1.2}, "strength is 1.2"),
        ({"strength": float("nan")}, "strength is nan"),
        ({"tolerance": -0.1}, "tolerance is -0.1"),
        ({"n_components": 0}, "n_components is 0"),
        ({"n_components": 11}, "n_components is 11, expected at most 10"),
    ],
)
def test_what_is_outside_its_domain_is_refused(parameters: dict, says: str) -> None:
    with pytest.raises(InputError, match=says):
        Whitening(**parameters).fit(spread())
