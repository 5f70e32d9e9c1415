"""The soft k-means: gradients, and hard k-means and point patchiness as the temperature goes to zero."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from isotrope.errors import InputError
from isotrope.nn import PatchinessLoss, soft_kmeans
from isotrope.nn.soft_quantizer import assign_softly, compute_patchiness


def make_rows(n: int = 90, d: int = 3) -> torch.Tensor:
    rng = np.random.default_rng(0)
    rows = 4 * rng.normal(size=(5, d))[rng.choice(5, n, p=[0.5, 0.2, 0.1, 0.1, 0.1])] + rng.normal(size=(n, d))
    return torch.from_numpy(rows)


def test_shares_by_the_formula() -> None:
    rows, centres = make_rows(6), make_rows(4)[:3]
    weights = np.exp(-(((rows.numpy()[:, None] - centres.numpy()) ** 2).sum(-1)) / 7.0)
    np.testing.assert_allclose(assign_softly(rows, centres, 7.0), weights / weights.sum(1, keepdims=True))


def test_at_temperature_zero_it_is_hard_k_means_and_point_patchiness() -> None:
    rows = make_rows()
    begin = rows[:6]
    hard = KMeans(6, init=begin.numpy(), n_init=1, max_iter=300, tol=0, algorithm="lloyd").fit(rows.numpy())
    centres, shares = soft_kmeans(rows, begin, 1e-9, steps=300)
    np.testing.assert_allclose(centres, hard.cluster_centers_, atol=1e-8)
    counts = np.bincount(hard.labels_, minlength=6)
    np.testing.assert_allclose(shares.sum(0), counts)
    m, v = counts.mean(), counts.var()
    assert float(compute_patchiness(shares.sum(0))) == pytest.approx((m + v / m - 1) / m)


def test_the_loss_is_the_patchiness_of_its_cells() -> None:
    rows = make_rows()
    chosen = torch.randperm(90, generator=torch.Generator().manual_seed(3))[:6]
    hard = KMeans(6, init=rows[chosen].numpy(), n_init=1, max_iter=300, tol=0, algorithm="lloyd").fit(rows.numpy())
    counts = np.bincount(hard.labels_, minlength=6)
    m = counts.mean()
    loss = PatchinessLoss(weight=2.0, cells=6, temperature=1e-9, steps=300, seed=3)(rows)
    assert float(loss) == pytest.approx(2 * (m + counts.var() / m - 1) / m)


def test_gradients_are_those_of_differences() -> None:
    rows = make_rows(20).requires_grad_()
    begin = make_rows(20)[:4]
    assert torch.autograd.gradcheck(lambda x: compute_patchiness(soft_kmeans(x, begin, 3.0, 3)[1].sum(0)), (rows,))


def test_a_step_against_the_gradient_lowers_patchiness() -> None:
    rows, loss = make_rows().requires_grad_(), PatchinessLoss(cells=6, temperature=0.2)
    before = loss(rows)
    (gradient,) = torch.autograd.grad(before, rows)
    assert float(loss(rows.detach() - 0.5 * gradient / gradient.norm())) < float(before.detach())


def test_scale_padding_and_few_rows() -> None:
    rows, loss = make_rows(), PatchinessLoss(cells=6)
    assert float(loss(1000 * rows)) == pytest.approx(float(loss(rows)))
    padded = torch.cat([rows, torch.full((10, 3), 9.0)])[None]
    mask = torch.arange(100)[None] < 90
    assert float(loss(padded, mask)) == pytest.approx(float(loss(rows)))
    few = rows[:6].clone().requires_grad_()
    loss(few).backward()
    assert float(loss(few.detach())) == 0
    assert few.grad is not None
    assert not few.grad.any()
    with pytest.raises(InputError, match="at least 2 cells"):
        PatchinessLoss(cells=1)
