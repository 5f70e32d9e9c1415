"""Eigenvectors of many matrices: against numpy, whatever the threads, and in a copy of the process."""

from __future__ import annotations

import multiprocessing

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

from isotrope.softdecay.spectral import eigh


def grams() -> torch.Tensor:
    x = torch.tensor(np.random.default_rng(0).normal(size=(5, 6, 9)))
    return x @ x.mT


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_values_are_those_of_numpy_whatever_the_threads(threads: int) -> None:
    gram, before = grams(), torch.get_num_threads()
    try:
        torch.set_num_threads(threads)
        values, vectors = eigh(gram)
        assert torch.get_num_threads() == threads
    finally:
        torch.set_num_threads(before)
    assert_allclose(values, np.linalg.eigvalsh(gram.numpy()), rtol=1e-12)
    assert_allclose(vectors @ torch.diag_embed(values) @ vectors.mT, gram, rtol=0, atol=1e-12)
    assert_allclose(vectors.mT @ vectors, torch.eye(6).expand(5, 6, 6), rtol=0, atol=1e-12)


def test_rows_that_take_no_part_are_zeros_in_every_vector() -> None:
    mask = torch.arange(6) < torch.tensor([6, 3, 1, 0, 5])[:, None]
    gram = grams() * (mask[:, :, None] & mask[:, None, :])
    values, vectors = eigh(gram, mask)
    assert_allclose(vectors @ torch.diag_embed(values) @ vectors.mT, gram, rtol=0, atol=1e-12)
    assert (vectors[~mask] == 0).all()
    assert_allclose(values, np.linalg.eigvalsh(gram.numpy()), rtol=0, atol=1e-12)


def _trace() -> float:
    return float(eigh(grams())[0].sum())


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork.")
def test_a_copy_of_the_process_does_not_wait_for_threads_that_it_has_not() -> None:
    expected = _trace()  # the pool has its threads now
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply_async(_trace).get(timeout=60) == pytest.approx(expected, rel=1e-12)
