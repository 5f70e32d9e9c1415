"""Regularisers: against numpy on the same rows, their gradients, what they do to a space, and in the Trainer."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import DataCollatorWithPadding, Trainer, TrainingArguments

import isotrope
from isotrope import Moments, nn
from isotrope.errors import InputError
from isotrope.statistics import prepare_rows
from testkit.networks import batch, network
from testkit.rte import rte

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(40, 6)) / np.arange(1, 7) + 0.5
EARLIER = np.cov(RNG.normal(size=(30, 6)), rowvar=False)


def exp_decay(x: np.ndarray, c1: float = 1.0, c2: float = 1.0, gamma: float = 2.0) -> float:
    values = np.linalg.svd(x, compute_uv=False)
    k = np.arange(1, len(values) + 1)
    return float(((values - c1 * np.exp(-c2 * k**gamma)) ** 2).sum())


def iso_score(covariance: np.ndarray) -> float:
    values = np.linalg.eigvalsh(covariance)
    return float((values.sum() ** 2 / (values**2).sum() - 1) / (len(values) - 1))


def mean_cosine(x: np.ndarray) -> float:
    return float(np.mean([a @ b / np.linalg.norm(a) / np.linalg.norm(b) for a, b in combinations(x, 2)]))


#: Each with what numpy makes of rows.
LOSSES: list[tuple[Any, Any]] = [
    (nn.ExpDecay(0.3), lambda x: 0.3 * exp_decay(x)),
    (nn.ExpDecay(1.0, 2.0, 0.5, 1.0), lambda x: exp_decay(x, 2.0, 0.5, 1.0)),
    (nn.IsoScoreStar(0.7), lambda x: 0.7 * (1 - iso_score(np.cov(x, rowvar=False)))),
    (nn.IsoScoreStar(-2.0), lambda x: -2.0 * (1 - iso_score(np.cov(x, rowvar=False)))),
    (
        nn.IsoScoreStar(1.0, EARLIER, 0.4),
        lambda x: 1 - iso_score(0.6 * np.cov(x, rowvar=False) + 0.4 * EARLIER),
    ),
    (nn.MeanCosineLoss(0.5), lambda x: 0.5 * mean_cosine(x)),
    (nn.WhiteningLoss(2.0), lambda x: 2.0 * ((np.corrcoef(x, rowvar=False) - np.eye(6)) ** 2).sum() / 36),
]


@pytest.mark.parametrize(("loss", "expected"), LOSSES, ids=lambda value: type(value).__name__)
def test_values_are_those_of_the_definition(loss: Any, expected: Any) -> None:
    assert_allclose(float(loss(torch.tensor(ROWS))), expected(ROWS), rtol=1e-10)
    narrow = loss(torch.tensor(ROWS, dtype=torch.float32))
    assert narrow.dtype == torch.float32
    assert_allclose(float(narrow), expected(ROWS), rtol=1e-5)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert float(loss(torch.tensor(ROWS, dtype=torch.float32))) == float(narrow)


@pytest.mark.parametrize(("loss", "expected"), LOSSES, ids=lambda value: type(value).__name__)
def test_gradients(loss: Any, expected: Any) -> None:
    assert torch.autograd.gradcheck(loss, torch.tensor(ROWS[:9]).requires_grad_())
    assert torch.autograd.gradcheck(loss, torch.tensor(ROWS[:4]).requires_grad_())  # fewer rows than dimensions


@pytest.mark.parametrize(("loss", "expected"), LOSSES, ids=lambda value: type(value).__name__)
def test_padding_takes_no_part(loss: Any, expected: Any) -> None:
    """Whatever it holds. Rows of all sequences go together; only a decaying spectrum is each sequence's own."""
    hidden = torch.tensor(ROWS.reshape(4, 10, 6))
    mask = torch.arange(10) < torch.tensor([10, 3, 7, 0])[:, None]
    hidden[~mask] = float("nan")
    hidden.requires_grad_()
    value = loss(hidden, mask)
    value.backward()
    value = value.detach()
    rows = [x[m].numpy() for x, m in zip(hidden.detach(), mask, strict=True)]
    if isinstance(loss, nn.ExpDecay):
        assert_allclose(float(value), np.mean([expected(x) for x in rows if len(x)]), rtol=1e-10)
    else:
        assert_allclose(float(value), expected(np.concatenate(rows)), rtol=1e-10)
    assert torch.isfinite(hidden.grad).all()  # type: ignore[arg-type]
    assert (hidden.grad[~mask] == 0).all()  # type: ignore[index]


@pytest.mark.parametrize("loss", [loss for loss, _ in LOSSES], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "rows",
    [np.zeros((0, 6)), np.zeros((1, 6)), np.ones((1, 6)), np.zeros((5, 6)), np.ones((5, 6)), 1e-30 * ROWS],
    ids=["none", "one zero", "one", "zeros", "all the same", "tiny"],
)
def test_degenerate_rows_give_finite_losses_and_gradients(loss: Any, rows: np.ndarray) -> None:
    for dtype in (torch.float32, torch.float64):
        x = torch.tensor(rows, dtype=dtype, requires_grad=True)
        value = loss(x)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(x.grad).all()  # type: ignore[arg-type]


def test_moments_of_an_earlier_pass_serve_as_covariance() -> None:
    earlier = RNG.normal(size=(50, 6)) + 3.0
    by_moments = nn.IsoScoreStar(covariance=Moments.of(prepare_rows(earlier)))(torch.tensor(ROWS))
    by_array = nn.IsoScoreStar(covariance=np.cov(earlier, rowvar=False))(torch.tensor(ROWS))
    assert_allclose(float(by_moments), float(by_array), rtol=1e-12)
    with pytest.raises(InputError, match=r"the covariance has shape \(3, 3\), expected \(6, 6\)"):
        nn.IsoScoreStar(covariance=np.eye(3))(torch.tensor(ROWS))
    with pytest.raises(InputError, match=r"zeta is 1.5, expected a share"):
        nn.IsoScoreStar(zeta=1.5)


@pytest.mark.parametrize(
    ("loss", "measure", "rises"),
    [
        (nn.IsoScoreStar(1.0), "isoscore", True),
        (nn.IsoScoreStar(-1.0), "isoscore", False),
        (nn.MeanCosineLoss(), "mean_cosine", False),
        (nn.ExpDecay(1.0), "mean_squared_norm", False),
    ],
)
def test_going_down_moves_its_measure(loss: Any, measure: str, rises: bool) -> None:
    x = torch.tensor(ROWS).requires_grad_()
    before = isotrope.measure(ROWS, measure)[measure]
    optimizer = torch.optim.Adam([x], lr=0.02)
    for _ in range(30):
        optimizer.zero_grad()
        loss(x).backward()
        optimizer.step()
    after = isotrope.measure(x.detach().numpy(), measure)[measure]
    assert (after > before + 0.05) == rises
    assert abs(after - before) > 0.05


def test_without_the_square_the_least_loss_would_be_collapse() -> None:
    """As printed the decaying spectrum is the nuclear norm less a constant: nothing is lower than all zeros."""
    zeros, target = np.zeros((6, 6)), np.diag(np.exp(-(np.arange(1, 7) ** 2.0)))
    assert exp_decay(target) == pytest.approx(0, abs=1e-20)
    assert float(nn.ExpDecay(1.0)(torch.tensor(target))) < 1e-12 < float(nn.ExpDecay(1.0)(torch.tensor(zeros)))
    assert np.linalg.svd(zeros, compute_uv=False).sum() < np.linalg.svd(target, compute_uv=False).sum()


def still(family: str) -> Any:
    """A classifier in training mode that draws no random numbers."""
    model = network(family, "AutoModelForSequenceClassification", num_labels=2).train()
    for dropout in (m for m in model.modules() if isinstance(m, torch.nn.Dropout)):
        dropout.p = 0.0
    return model


def test_a_model_s_loss_grows_by_it_while_training_only() -> None:
    model, loss = still("roberta"), nn.MeanCosineLoss(10.0)
    inputs = {**batch((7, 4, 2)), "labels": torch.tensor([0, 1, 0])}
    with torch.no_grad():
        plain = model(**inputs, output_hidden_states=True)
    own = float(plain.loss)
    for layer in (-1, 0, 2):
        added = nn.regularize(model, loss, layer)
        expected = float(loss(plain.hidden_states[layer], inputs["attention_mask"]))
        found = model(**inputs).loss
        assert float(found.detach()) == pytest.approx(own + expected, rel=1e-6)
        assert float(added.last) == pytest.approx(expected)
        found.backward()
        for change in (model.eval, added.remove, model.train):
            change()
            with torch.no_grad():
                assert float(model(**inputs).loss) == pytest.approx(own, rel=1e-6)
    assert all(p.grad is not None for p in model.roberta.encoder.parameters())
    assert "forward" not in vars(model)


def test_of_several_batches_in_one_step_each_adds_its_share() -> None:
    """The Trainer says how many labels a step has; with all of its batches the regulariser then counts once."""
    model, inputs = still("roberta"), batch((7, 4, 2))
    added = nn.regularize(model, lambda hidden, mask: hidden.sum() * 0 + 7.0)
    labels = torch.tensor([0, -100, 1])
    for items, share in ((2, 1.0), (8, 0.25)):
        out = model(**inputs, labels=labels, num_items_in_batch=torch.tensor(items))
        own = torch.nn.functional.cross_entropy(out.logits, labels)
        assert float(out.loss.detach() - own.detach()) == pytest.approx(7.0 * share, rel=1e-5)
        assert float(added.last) == 7.0


@pytest.mark.parametrize("first_out", [0, 1, 2])
def test_what_is_put_in_one_after_the_other_comes_out_in_any_order(first_out: int) -> None:
    model, inputs = still("roberta"), batch((7, 4, 2))

    def loss() -> float:
        return float(model(**inputs, labels=torch.tensor([0, 1, 0])).loss.detach())

    plain = loss()
    one = nn.regularize(model, lambda hidden, mask: hidden.sum() * 0 + 10)
    two = nn.regularize(model, lambda hidden, mask: hidden.sum() * 0 + 100)
    assert loss() == pytest.approx(plain + 110, rel=1e-6)
    nn.attach(model)
    out = [one.remove, two.remove, lambda: nn.detach(model)]
    for remove in [out.pop(first_out), *out]:
        remove()
    assert loss() == pytest.approx(plain, rel=1e-6)


def test_what_a_model_must_give() -> None:
    model = network("bert", "AutoModelForSequenceClassification").train()
    nn.regularize(model, nn.MeanCosineLoss())
    with pytest.raises(InputError, match=r"BertForSequenceClassification gave no loss.* call it with labels"):
        model(**batch())
    other = network("bert", "AutoModelForSequenceClassification").train()
    nn.regularize(other, nn.MeanCosineLoss(), layer=7)
    with pytest.raises(InputError, match=r"there is no layer 7: the model has 4, 0 to 3"):
        other(**batch(), labels=torch.tensor([0, 1, 0]))


def test_in_the_trainer_it_bends_the_space(tmp_path: Path) -> None:
    """With a SoftDecay layer beside it, and whatever the number of batches that make a step."""
    data, tokenizer = rte(32)
    found = {}
    for weight, size, steps in ((0.0, 16, 1), (5.0, 16, 1), (5.0, 8, 2), (-5.0, 16, 1)):
        still = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
        model = network("bert", "AutoModelForSequenceClassification", vocab_size=len(tokenizer), **still)
        nn.attach(model)
        if weight:
            nn.regularize(model, nn.MeanCosineLoss(weight))
        arguments = TrainingArguments(
            str(tmp_path),
            max_steps=10,
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
            learning_rate=3e-3,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            disable_tqdm=True,
        )
        collate = DataCollatorWithPadding(tokenizer)
        Trainer(model, arguments, train_dataset=data, data_collator=collate).train()
        inputs = collate(data)
        with torch.no_grad():
            states = model.eval()(**inputs, output_hidden_states=True).hidden_states[-1]
        rows = states[inputs["attention_mask"].bool()].numpy()
        found[weight, size] = isotrope.measure(rows, "mean_cosine")["mean_cosine"]
    assert found[5.0, 16] < found[0.0, 16] - 0.05
    assert found[-5.0, 16] > found[0.0, 16] + 0.05
    assert found[5.0, 8] == pytest.approx(found[5.0, 16], abs=0.1)
