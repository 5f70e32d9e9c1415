"""Noise on weights is the formula's, on the weights that it names and on no others."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from isotrope.errors import InputError
from isotrope.sources.models.load import Loaded, load
from isotrope.studies.latent_geometry.changed_models import (
    add_row_noise,
    add_weight_noise,
    replace_embeddings,
    reset_weights,
    shuffle_embeddings,
)
from testkit.models import save_model


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    return load(save_model(tmp_path_factory.mktemp("bert"), "bert"), device="cpu")


def weights(model: Loaded) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in model.model.named_parameters()}


def test_the_formula_on_weights_of_blocks_alone(loaded: Loaded) -> None:
    before, after = weights(loaded), weights(add_weight_noise(loaded, 0.25, 7))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert changed == {name for name in before if name.startswith("encoder.") and name.endswith("weight")}
    noise = torch.cat([((after[n] - 0.75 * before[n]) / 0.25).flatten() for n in changed])
    assert noise.mean().abs() < 0.05
    assert noise.std() == pytest.approx(1, abs=0.05)


def test_one_seed_is_one_noise_for_every_share(loaded: Loaded) -> None:
    name = "encoder.layer.1.output.dense.weight"
    before = weights(loaded)[name]
    drawn = [(weights(add_weight_noise(loaded, a, 3))[name] - (1 - a) * before) / a for a in (0.1, 1.0)]
    assert torch.allclose(drawn[0], drawn[1], atol=1e-5)
    assert not torch.allclose(weights(add_weight_noise(loaded, 1.0, 4))[name], drawn[1])
    alone = weights(add_weight_noise(loaded, 1.0, 3, block=1))
    assert torch.equal(alone[name], drawn[1])
    assert torch.equal(
        alone["encoder.layer.0.output.dense.weight"], weights(loaded)["encoder.layer.0.output.dense.weight"]
    )
    small = weights(add_weight_noise(loaded, 1.0, 3, deviation=0.02))[name]
    assert torch.allclose(small, 0.02 * drawn[1], atol=1e-6)


def test_no_noise_is_the_model_itself(loaded: Loaded) -> None:
    assert all(
        torch.equal(a, b)
        for a, b in zip(weights(loaded).values(), weights(add_weight_noise(loaded, 0.0, 1)).values(), strict=True)
    )


def test_other_models_that_are_less(loaded: Loaded, tmp_path: Path) -> None:
    table = "embeddings.word_embeddings.weight"
    before, mixed = weights(loaded), weights(shuffle_embeddings(loaded, 0))
    assert not torch.equal(before[table], mixed[table])
    assert torch.equal(before[table].sort(0).values, mixed[table].sort(0).values)
    fresh = weights(reset_weights(loaded, 0))
    assert torch.equal(before[table], fresh[table])
    assert fresh["encoder.layer.0.output.dense.weight"].std() == pytest.approx(0.02, abs=0.005)
    other = load(save_model(tmp_path / "other", "bert", seed=5), device="cpu")
    assert torch.equal(weights(replace_embeddings(loaded, other))[table], weights(other)[table])


def test_noise_on_rows() -> None:
    rows = np.random.default_rng(0).normal(scale=3, size=(5_000, 4)) + 10
    noise = (add_row_noise(rows, 0.5, 1) - 0.5 * rows) / 0.5
    assert noise.std() == pytest.approx(rows.std(), rel=0.05)
    assert np.array_equal(add_row_noise(rows, 0.0, 1), rows)


def test_impossible_noise_is_refused(loaded: Loaded) -> None:
    with pytest.raises(InputError, match="expected 0 to 1"):
        add_weight_noise(loaded, 1.5, 0)
    with pytest.raises(InputError, match="blocks 0 to 2"):
        add_weight_noise(loaded, 0.5, 0, block=3)
