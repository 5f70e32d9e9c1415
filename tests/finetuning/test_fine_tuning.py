"""The training loop: batches, rates, early stop, first stages and spectra."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from isotrope import nn
from isotrope.errors import InputError
from isotrope.finetuning.encoder_pretraining import _make_tension_batches, pretrain_encoder
from isotrope.finetuning.loop import EncodedRows, Optimizer, draw_batches, fine_tune, predict
from isotrope.finetuning.settings import Training
from isotrope.finetuning.task_training import add_head, split_rows
from isotrope.finetuning.tasks import TASKS, TaskRows
from isotrope.finetuning.token_spectra import compute_spectra
from isotrope.sources.models.load import Loaded, load


@pytest.fixture(scope="module")
def loaded(bert: Path) -> Loaded:
    return load(bert, device="cpu")


def encoded(lengths: list[int], seed: int = 0) -> EncodedRows:
    """Random ids of these lengths."""
    rng = np.random.default_rng(seed)
    rows = [{"input_ids": rng.integers(4, 18, n).tolist(), "attention_mask": [1] * n} for n in lengths]
    return EncodedRows(rows, 0, "cpu")


def test_batches_hold_every_row_once_with_little_padding() -> None:
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 100, 1003)
    found = list(draw_batches(lengths, 32, rng))
    assert sorted(np.concatenate(found).tolist()) == list(range(1003))
    assert len(found) == math.ceil(1003 / 32)
    padded = sum(len(which) * lengths[which].max() for which in found)
    assert padded < 1.1 * lengths.sum()
    again = list(draw_batches(lengths, 32, rng))
    assert [len(which) for which in again] != [len(which) for which in found] or not all(
        np.array_equal(a, b) for a, b in zip(again, found, strict=True)
    )


def test_padding_changes_nothing_that_is_said(loaded: Loaded) -> None:
    torch.manual_seed(0)
    model = add_head(loaded, TASKS["stsb"])
    nn.attach(model)
    rows = encoded([3, 12, 7, 1, 20])
    together = predict(model, rows, 8)
    alone = [predict(model, EncodedRows([found], 0, "cpu"), 8)[0] for found in rows.features]
    np.testing.assert_allclose(together, alone, atol=1e-5)


def test_rates_go_down_in_a_line_each_from_its_own() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), nn.SoftDecay())
    step = Optimizer(model, Training(learning_rate=1e-4, softdecay_learning_rate=1e-2), total=4)
    seen = []
    for _ in range(4):
        seen.append([group["lr"] for group in step.adamw.param_groups])
        step(model(torch.randn(1, 5, 3)).square().sum())
    np.testing.assert_allclose(seen, [[r * (1 - i / 4) for r in (1e-4, 1e-4, 1e-2)] for i in range(4)], rtol=1e-6)
    assert [group["lr"] for group in step.adamw.param_groups] == [0.0] * 3


def test_a_loss_that_is_no_number_stops_with_a_sentence() -> None:
    model = torch.nn.Linear(2, 2)
    with pytest.raises(InputError, match="the loss is nan at step 1; try a lower learning rate"):
        Optimizer(model, Training(), 3)(model(torch.full((1, 2), math.nan)).sum())


@pytest.mark.parametrize(
    ("scores", "patience", "epochs", "kept"),
    [
        ([0.5, 0.7, 0.6, 0.6, 0.9], 2, 4, 2),  # stopped after two without a gain
        ([0.5, 0.7, 0.6, 0.7, 0.2], 2, 5, 4),  # of equals the later
        ([0.1, 0.2, 0.3, 0.4, 0.5], 1, 5, 5),
        ([-math.inf, -math.inf, 0.1, 0.0, 0.0], 3, 5, 3),  # undefined ones are never better
    ],
)
def test_early_stop_keeps_the_best_epoch(
    loaded: Loaded, scores: list[float], patience: int, epochs: int, kept: int
) -> None:
    torch.manual_seed(0)
    model = add_head(loaded, TASKS["rte"])
    rows, labels = encoded([5, 6, 7, 8]), torch.tensor([0, 1, 0, 1])
    weights: list[Any] = []

    def scored() -> float:
        weights.append({name: value.clone() for name, value in model.state_dict().items()})
        return scores[len(weights) - 1]

    steps: list[int] = []
    training = Training(epochs=5, batch_size=2, learning_rate=1e-3, patience=patience)
    found = fine_tune(model, rows, labels, training, scored, np.random.default_rng(0), lambda *_: None, steps.append)
    assert (len(found.held_out), found.epoch, found.steps) == (epochs, kept, 2 * epochs)
    assert steps == list(range(1, 2 * epochs + 1))
    for name, value in model.state_dict().items():
        assert torch.equal(value, weights[kept - 1][name])
    assert not torch.equal(weights[0]["classifier.weight"], weights[1]["classifier.weight"])


def test_a_head_keeps_the_weights_below(loaded: Loaded) -> None:
    torch.manual_seed(0)
    model = add_head(loaded, TASKS["mnli"])
    assert model.classifier.out_features == 3
    for name, value in loaded.model.state_dict().items():
        assert torch.equal(model.base_model.state_dict()[name], value)


def test_rows_are_split_once_for_a_seed() -> None:
    found = split_rows(100, 50, np.random.default_rng(1))
    assert (len(found.train), len(found.held_out)) == (45, 5)
    assert len({*found.train, *found.held_out}) == 50
    assert found == split_rows(100, 50, np.random.default_rng(1))
    assert found != split_rows(100, 50, np.random.default_rng(2))
    assert len(split_rows(200_000, None, np.random.default_rng(0)).held_out) == 1000


def test_pairs_of_contrastive_tension_batches() -> None:
    """One in eight is a sentence with itself, and no other pair is."""
    rows = encoded([4] * 40)
    for (first, second), labels in _make_tension_batches(rows, 16, np.random.default_rng(0)):
        assert labels is not None
        same = (first["input_ids"] == second["input_ids"]).all(1)
        assert same.tolist() == labels.bool().tolist()
        assert labels.tolist()[:9] == [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0][: len(labels)]


def test_simcse_draws_a_sentence_to_itself_and_from_others(loaded: Loaded) -> None:
    """Afterwards cosines of a text with itself under other dropout stand farther above those to others."""
    pytest.importorskip("sentence_transformers")
    from testkit.models import texts

    sentences = list(dict.fromkeys(texts(60, longest=8)))

    def encode(rows: Any) -> EncodedRows:
        found = loaded.tokenizer([text for (text,) in rows])
        return EncodedRows([{"input_ids": i, "attention_mask": [1] * len(i)} for i in found["input_ids"]], 0, "cpu")

    def apart(network: Any) -> float:
        torch.manual_seed(5)
        batch = encode([(text,) for text in sentences]).batch(range(len(sentences)))
        network.train()
        with torch.no_grad():
            mask = batch["attention_mask"][..., None]
            rows = [(network(**batch).last_hidden_state * mask).sum(1) / mask.sum(1) for _ in range(2)]
        cosines = torch.nn.functional.normalize(rows[0]) @ torch.nn.functional.normalize(rows[1]).T
        return float(cosines.diagonal().mean() - cosines[~torch.eye(len(cosines), dtype=torch.bool)].mean())

    torch.manual_seed(0)
    network = add_head(loaded, TASKS["cola"]).base_model
    before = apart(network)
    training = Training(batch_size=16, learning_rate=3e-3)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        pretrain_encoder("simcse", network, encode, sentences, None, training, rng, lambda *_: None)
    assert apart(network) > before + 0.05


def test_s_bert_learns_from_labelled_pairs(loaded: Loaded) -> None:
    pytest.importorskip("sentence_transformers")
    torch.manual_seed(0)
    network = add_head(loaded, TASKS["rte"]).base_model
    before = {name: value.clone() for name, value in network.state_dict().items()}
    pairs = TaskRows([("the cat", "a mat"), ("old dogs", "green hills"), ("deep water", "deep water")], [0.0, 2.0, 1.0])

    def encode(rows: Any) -> EncodedRows:
        return encoded([3] * len(rows))

    told: list[tuple[int, int]] = []
    pretrain_encoder(
        "sbert",
        network,
        encode,
        [],
        pairs,
        Training(batch_size=2),
        np.random.default_rng(0),
        lambda *step: told.append(step),
    )
    assert told == [(1, 2), (2, 2)]
    assert any(not torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_spectra_are_those_of_numpy(loaded: Loaded) -> None:
    torch.manual_seed(0)
    model = add_head(loaded, TASKS["rte"])
    layer = nn.attach(model, -0.7)
    rows = encoded([6, 9, 4])
    found = compute_spectra(model.base_model, rows, 2, layer)
    assert set(found) == {"last", "into softdecay", "out of softdecay"}
    medians = []
    model.eval()
    for one in rows.features:
        with torch.inference_mode():
            states = model.base_model(**EncodedRows([one], 0, "cpu").batch([0])).last_hidden_state[0]
        values = np.linalg.svd(states.double().numpy(), compute_uv=False)
        medians.append(np.median(values / values[0]))
    assert found["last"]["median"] == pytest.approx(np.mean(medians), abs=1e-5)
    assert found["last"]["sequences"] == 3
    assert found["out of softdecay"]["median"] > found["into softdecay"]["median"]
    assert len(found["last"]["cdf"]) == 51
    assert not layer._forward_hooks
