"""Defaults that Yan et al. 2022 print, against the library's own."""

from __future__ import annotations

from isotrope.finetuning.settings import ALPHAS, Training
from isotrope.nn.regularizers import ExpDecay


def test_training_begins_as_appendix_b_says() -> None:
    assert ALPHAS == (-0.2, -0.5, -0.8)
    assert (Training.softdecay_learning_rate, Training.learning_rate) == (2e-3, 2e-5)


def test_expdecay_has_the_constants_of_appendix_d() -> None:
    defaults = ExpDecay()
    assert (defaults.c1, defaults.c2, defaults.gamma, defaults.weight) == (1.0, 1.0, 2.0, 1e-4)
