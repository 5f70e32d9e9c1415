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
from isotrope.finetuning.encoder_pretraining import _make_batches, _make_tension_batches, pretrain_encoder
from isotrope.finetuning.loop import EncodedRows, Optimizer, draw_batches, fine_tune, predict
from isotrope.finetuning.settings import Training
from isotrope.finetuning.task_training import add_head, split_rows
from isotrope.finetuning.tasks import TASKS, TaskRows
from isotrope.finetuning.token_spectra import _compute_reach_interval, compute_spectra
from isotrope.sources.batch import Rows
from isotrope.sources.models.load import Loaded, load
from isotrope.statistics import SequenceSpectra
from testkit.models import save_model


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
    found = split_rows(100, Training(train_rows=50), np.random.default_rng(1))
    assert (len(found.train), len(found.held_out)) == (45, 5)
    assert len({*found.train, *found.held_out}) == 50
    assert found == split_rows(100, Training(train_rows=50), np.random.default_rng(1))
    assert found != split_rows(100, Training(train_rows=50), np.random.default_rng(2))
    assert len(split_rows(200_000, Training(), np.random.default_rng(0)).held_out) == 1000


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
    rows = TaskRows.of_sentences(sentences)

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
        pretrain_encoder("simcse", network, encode, rows, training, rng, lambda *_: None)
    assert apart(network) > before + 0.05


def test_supervised_simcse_draws_a_premise_to_what_follows_from_it(loaded: Loaded) -> None:
    """Each triplet is in one batch, and afterwards a premise is nearer to its entailment than to its contradiction."""
    pytest.importorskip("sentence_transformers")
    triplets = [(f"the {a}", f"a {a}", f"near {a}") for a in ("cat", "mat", "dogs", "hills", "water")]
    rows = TaskRows(triplets, [math.nan] * len(triplets))

    def encode(texts: Any) -> EncodedRows:
        found = loaded.tokenizer([text for (text,) in texts])
        return EncodedRows([{"input_ids": i, "attention_mask": [1] * len(i)} for i in found["input_ids"]], 0, "cpu")

    sides = [encode([(triplet[side],) for triplet in triplets]) for side in range(3)]
    seen = []
    for features, labels in _make_batches("simcse-nli", sides, rows.labels, 2, np.random.default_rng(0)):
        assert (len(features), labels) == (3, None)
        seen += [
            tuple(tuple(side["input_ids"][i].tolist()) for side in features)
            for i in range(len(features[0]["input_ids"]))
        ]
    expected = [tuple(tuple(side.features[i]["input_ids"]) for side in sides) for i in range(5)]
    assert sorted(seen) == sorted(expected)

    def apart(network: Any) -> float:
        network.eval()
        with torch.no_grad():
            means = [network(**side.batch(range(5))).last_hidden_state.mean(1) for side in sides]
        near, far = (torch.nn.functional.cosine_similarity(means[0], other).mean() for other in means[1:])
        return float(near - far)

    torch.manual_seed(0)
    network = add_head(loaded, TASKS["cola"]).base_model
    before = apart(network)
    training = Training(batch_size=5, learning_rate=3e-3, pretraining_epochs=40)
    pretrain_encoder("simcse-nli", network, encode, rows, training, np.random.default_rng(0), lambda *_: None)
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


@pytest.mark.parametrize("family", ["bert", "albert", "distilbert"])
def test_spectra_of_all_layers_are_those_of_numpy(tmp_path: Path, family: str) -> None:
    """Curves and ΔL of each hidden state before and after a SoftDecay layer, each sequence decomposed by itself."""
    loaded = load(save_model(tmp_path / family, family), device="cpu")
    torch.manual_seed(0)
    model = add_head(loaded, TASKS["rte"])
    rows = encoded([6, 9, 4, 12])
    for layer in (None, nn.attach(model, -0.7)):
        found = compute_spectra(model.base_model, rows, 3, layer)["last"]
        assert len(found["layers"]) == 4  # embeddings and three blocks
        curves: list[list[Any]] = [[] for _ in found["layers"]]
        model.eval()
        for one in rows.features:
            with torch.inference_mode():
                states = model.base_model(**EncodedRows([one], 0, "cpu").batch([0]), output_hidden_states=True)
            for curve, state in zip(curves, states.hidden_states, strict=True):
                values = np.linalg.svd(state[0].double().numpy(), compute_uv=False)
                curve.append(values / values[0])
        for described, spectra in zip(found["layers"], curves, strict=True):
            fine = np.linspace(0, 1, 1001)
            share = np.mean([(values[:, None] <= fine + 1e-6).mean(0) for values in spectra], axis=0)
            np.testing.assert_allclose(described["cdf"], share[::20], atol=1e-5)
            assert described["reach"] == pytest.approx(fine[np.argmax(share >= 0.8)], abs=2e-3)
            assert described["reach_low"] <= described["reach"] <= described["reach_high"]
        assert found["reach"] == pytest.approx(found["layers"][-1]["reach"], abs=1e-6)


def test_the_interval_of_the_reach_is_over_sequences() -> None:
    """The widths of intervals shrink with the root of the number of sequences, and few have none."""

    def spectra(count: int) -> SequenceSpectra:
        rng = np.random.default_rng(0)
        values = rng.standard_normal((count * 8, 8)) * np.repeat(rng.uniform(0.2, 5, (count, 8)), 8, axis=0)
        return SequenceSpectra.of_rows(values, Rows(np.repeat(np.arange(count, dtype=np.uint64), 8)))

    low, high = _compute_reach_interval(spectra(25))
    narrow_low, narrow_high = _compute_reach_interval(spectra(400))
    assert (narrow_high - narrow_low) == pytest.approx((high - low) / 4, rel=0.5)
    assert _compute_reach_interval(spectra(1)) == (None, None)
