"""The monitor: its numbers against a scan, its three roles, and that it stops a fine-tune made to collapse."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoTokenizer, DataCollatorWithPadding, Trainer, TrainerCallback, TrainingArguments

import isotrope
from isotrope import nn
from isotrope.errors import InputError
from isotrope.measures import MEASURES
from testkit.models import save_model, texts
from testkit.networks import network
from testkit.rte import rte

TEXTS = texts(30)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("model"), "roberta")


@pytest.fixture
def model(folder: Path) -> Any:
    return AutoModel.from_pretrained(folder)


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Any:
    return AutoTokenizer.from_pretrained(folder)


def test_numbers_are_those_of_a_scan(folder: Path, model: Any, tokenizer: Any) -> None:
    monitor = nn.GeometryMonitor(TEXTS, layers="all", tokenizer=tokenizer)
    found = monitor(model.double().train())  # in float64, because the two make batches of other shapes
    assert model.training
    scan = isotrope.scan(model=folder, text=TEXTS, measures="moments", sample=0, precision="exact")
    expected = {
        f"geometry/{r.layer}/{r.measure}": r.value
        for r in scan.readings
        if r.layer is not None and math.isfinite(r.value)
    }
    assert found.keys() == expected.keys()
    assert {name.rpartition("/")[2] for name in found} <= {m.name for m in MEASURES if m.needs == "moments"}
    assert len(found) >= 4 * 15
    np.testing.assert_allclose([found[k] for k in expected], list(expected.values()), rtol=1e-9, atol=1e-12)
    assert monitor.history == [{"step": -1, **found}]
    assert monitor.read(model).get("mean_cosine", 2).n == scan.get("mean_cosine", 2).n


def test_pooling_and_measures_by_name(model: Any, tokenizer: Any) -> None:
    monitor = nn.GeometryMonitor(
        TEXTS, layers=[1, -1], measures=["isoscore"], pooling="mean", tokenizer=tokenizer, alarm="mean_cosine > 2"
    )
    assert list(monitor(model)) == [f"geometry/{layer}/{m}" for layer in (1, 3) for m in ("isoscore", "mean_cosine")]
    assert monitor.read(model).get("isoscore").n == len(TEXTS)


def trainer(model: Any, data: Any, tokenizer: Any, folder: Path, steps: int, callbacks: list[Any]) -> Trainer:
    arguments = TrainingArguments(
        str(folder),
        max_steps=steps,
        per_device_train_batch_size=8,
        learning_rate=3e-3,
        logging_steps=2,
        report_to=[],
        save_strategy="no",
        use_cpu=True,
        disable_tqdm=True,
    )
    return Trainer(
        model,
        arguments,
        train_dataset=data,
        processing_class=tokenizer,
        data_collator=DataCollatorWithPadding(tokenizer),
        callbacks=callbacks,
    )


def classifier(tokenizer: Any) -> Any:
    return network("bert", "AutoModelForSequenceClassification", vocab_size=len(tokenizer))


def test_a_fine_tune_made_to_collapse_is_stopped(tmp_path: Path) -> None:
    data, tokenizer = rte(32)
    model = classifier(tokenizer)
    nn.attach(model)
    nn.regularize(model, nn.MeanCosineLoss(-50.0))  # all rows the same way
    monitor = nn.GeometryMonitor(TEXTS, every=2, alarm="layer[-1].mean_cosine > 0.9", on_alarm="stop")
    train = trainer(model, data, tokenizer, tmp_path, 100, [monitor])
    with pytest.warns(UserWarning, match=r"alarm at step \d+: gate tripped: layer\[3\].mean_cosine is"):
        train.train()
    assert 2 <= train.state.global_step < 100
    assert train.state.global_step % 2 == 0
    assert monitor.alarmed is not None
    first, *_, last = (entry["geometry/3/mean_cosine"] for entry in monitor.history)
    assert first < 0.9 < last
    kept = [entry for entry in train.state.log_history if "geometry/3/mean_cosine" in entry]
    assert [entry["step"] for entry in kept] == list(range(0, train.state.global_step + 1, 2))


class Listener(TrainerCallback):  # type: ignore[misc]
    """What any reporter of the Trainer gets to see."""

    def __init__(self) -> None:
        self.seen: list[dict[str, float]] = []

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
        self.seen.append(dict(logs))


def test_it_logs_to_whatever_the_trainer_logs_to_and_changes_nothing_else(tmp_path: Path) -> None:
    data, tokenizer = rte(32)
    losses = []
    for watched in (False, True):
        listener = Listener()
        model = classifier(tokenizer)
        train = trainer(model, data, tokenizer, tmp_path, 8, [listener])
        if watched:
            monitor = nn.GeometryMonitor(TEXTS, every=4, alarm="mean_cosine > 0.999999", log=train.log)
            train.add_callback(monitor)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            train.train()
        losses.append([logs["loss"] for logs in listener.seen if "loss" in logs])
        numbers = [logs for logs in listener.seen if "geometry/3/isoscore" in logs]
        assert len(numbers) == (3 if watched else 0)  # before the first step, after 4, after 8
        assert all("epoch" in logs for logs in numbers)
    assert losses[0] == losses[1]
    assert len(losses[0]) == 4  # also at the steps at which both are due


def test_an_alarm_may_only_warn(model: Any, tokenizer: Any) -> None:
    monitor = nn.GeometryMonitor(TEXTS, tokenizer=tokenizer, alarm="any.mean_cosine > -1")
    with pytest.warns(UserWarning, match=r"^alarm: gate tripped: .*mean_cosine is .*, above -1\."):
        monitor(model)
    silent = nn.GeometryMonitor(TEXTS, tokenizer=tokenizer, alarm="mean_cosine > 1")
    silent(model)
    assert silent.alarmed is None


def test_hidden_states_that_are_not_finite_ring_the_alarm(model: Any, tokenizer: Any) -> None:
    monitor = nn.GeometryMonitor(TEXTS, tokenizer=tokenizer, alarm="mean_cosine > 0.9")
    with torch.no_grad():
        model.encoder.layer[-1].output.LayerNorm.bias.fill_(float("nan"))
    with pytest.warns(UserWarning, match=r"alarm: the gate 'mean_cosine > 0.9' cannot be decided"):
        assert monitor(model) == {} or "geometry/3/mean_cosine" not in monitor.history[-1]


def test_modules_that_were_not_training_stay_so(model: Any, tokenizer: Any) -> None:
    model.train()
    model.embeddings.eval()
    nn.GeometryMonitor(TEXTS, tokenizer=tokenizer)(model)
    assert model.training
    assert model.encoder.layer[0].training
    assert not model.embeddings.training


def test_an_evaluator_of_sentence_transformers(tmp_path: Path) -> None:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer
    from sentence_transformers import SentenceTransformerTrainingArguments as Arguments
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    from isotrope.sources.models.location import find_embedded_folder

    model = SentenceTransformer(find_embedded_folder(), device="cpu")
    monitor = nn.GeometryMonitor(TEXTS, layers="3,6", measures="mean_cosine,isoscore", every=2, alarm="isoscore > 2")
    plain = monitor(model)
    assert list(plain) == [f"geometry/{layer}/{m}" for layer in (3, 6) for m in ("mean_cosine", "isoscore")]
    arguments = Arguments(
        str(tmp_path), max_steps=2, per_device_train_batch_size=4, report_to=[], save_strategy="no", use_cpu=True,
        disable_tqdm=True,
    )  # fmt: skip
    pairs = Dataset.from_dict({"anchor": TEXTS[:8], "positive": TEXTS[8:16]})
    train = SentenceTransformerTrainer(
        model=model,
        args=arguments,
        train_dataset=pairs,
        loss=MultipleNegativesRankingLoss(model),
        evaluator=monitor,
        callbacks=[monitor],
    )
    train.train()
    assert [entry["step"] for entry in monitor.history] == [-1, 0, 2]
    assert monitor.history[1]["geometry/6/mean_cosine"] == plain["geometry/6/mean_cosine"]
    metrics = train.evaluate()
    assert metrics["eval_geometry/6/mean_cosine"] == pytest.approx(monitor.history[2]["geometry/6/mean_cosine"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"every": 0}, r"a reading every 0 steps is not possible; give at least 1"),
        ({"on_alarm": "shout"}, r"an alarm cannot 'shout'; say warn or stop"),
        ({"alarm": "mean_cosine above 1"}, r"the gate 'mean_cosine above 1' cannot be read"),
        ({"alarm": "mean_cosin > 1"}, r"there is no measure 'mean_cosin'; did you mean 'mean_cosine'"),
        ({"measures": "hubness"}, r"a monitor reads measures of moments, and hubness needs sample"),
    ],
)
def test_what_it_refuses_at_once(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        nn.GeometryMonitor(TEXTS, **options)


def test_what_it_refuses_at_the_first_reading(model: Any, tokenizer: Any) -> None:
    with pytest.raises(InputError, match=r"the probe needs a tokenizer; give it as tokenizer=..., or to the Trainer"):
        nn.GeometryMonitor(TEXTS)(model)
    with pytest.raises(InputError, match=r"the gate names layer 1, but the run has layers 3"):
        nn.GeometryMonitor(TEXTS, tokenizer=tokenizer, alarm="layer[1].isoscore < 0")(model)
