"""Recipes of training: the form of SoftDecay, the settings of run_glue, and what a first stage learns from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import isotrope
from isotrope import nn
from isotrope.errors import InputError
from isotrope.finetuning import task_training
from isotrope.finetuning.loop import EncodedRows, Optimizer, fine_tune
from isotrope.finetuning.result import GlueEvaluation
from isotrope.finetuning.settings import ALPHAS, Training
from isotrope.finetuning.task_training import add_head, split_rows
from isotrope.finetuning.tasks import TASKS
from isotrope.finetuning.triplets import make_triplets, read_triplets
from isotrope.sources.models.load import load
from testkit.small_glue import write_task

QUICK: dict[str, Any] = {"epochs": 2, "batch_size": 8, "max_length": 24, "learning_rate": 1e-3, "device": "cpu"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_task(tmp_path_factory.mktemp("data"), "cola")


def ask(bert: Path, data: Path, **more: Any) -> GlueEvaluation:
    given: dict[str, Any] = {"model": bert, "data": data, "alphas": [-0.5], "seeds": 1, **QUICK}
    return isotrope.evaluate_glue(**given | more)


def test_the_rates_and_alphas_of_the_paper_are_the_defaults() -> None:
    """Appendix B: α from −0.2, −0.5 or −0.8, 2e-3 for it and 2e-5 for the model."""
    assert ALPHAS == (-0.2, -0.5, -0.8)
    assert (Training().learning_rate, Training().softdecay_learning_rate) == (2e-5, 2e-3)


def test_the_constants_of_expdecay_are_those_of_the_paper() -> None:
    """Appendix D.1: c1 = c2 = 1, γ = 2, weight 1e-4."""
    found = nn.ExpDecay()
    assert (found.c1, found.c2, found.gamma, found.weight) == (1.0, 1.0, 2.0, 1e-4)


@pytest.mark.parametrize("form", ["shifted", "paper", "clipped"])
def test_a_layer_of_any_form_is_what_its_formula_says(bert: Path, form: str) -> None:
    """The first forward pass against numpy: Eq. 2 for "paper", with the largest singular value put back."""
    model = add_head(load(bert, device="cpu"), TASKS["cola"])
    seen: dict[str, Any] = {}
    layer = nn.attach(model, -0.5, form)
    layer.register_forward_hook(lambda _, args, out: seen.update(x=args[0], y=out))
    ids = torch.tensor([[2, 5, 6, 7, 9, 3]])
    with torch.inference_mode():
        model.eval()(input_ids=ids, attention_mask=torch.ones_like(ids))
    x, y = (seen[key][0].double().numpy() for key in ("x", "y"))
    u, s, vt = np.linalg.svd(x, full_matrices=False)
    formulas = {
        "paper": -np.log(1 + 0.5 * (s - 0.5)) / -0.5,  # −ln(1 − α(λ + α))/α with α = −0.5
        "clipped": np.log(1 + 0.5 * (np.maximum(s, 0.5) - 0.5)) / 0.5,
        "shifted": np.log(1 + 0.5 * s / 0.75) / 0.5,
    }
    f = formulas[form]
    np.testing.assert_allclose(y, u @ np.diag(f * s[0] / f[0]) @ vt, atol=1e-5)


def test_forms_are_trained_and_recorded(bert: Path, data: Path, tmp_path: Path) -> None:
    shifted = ask(bert, data).runs
    paper = ask(bert, data, softdecay_form="paper", output=tmp_path / "run").runs
    assert paper[0].losses == shifted[0].losses  # the base has no layer
    assert paper[1].losses != shifted[1].losses
    assert "softdecay_form" not in shifted[1].settings  # as in runs of version 0.1
    assert paper[1].settings["softdecay_form"] == "paper"
    with pytest.raises(isotrope.errors.StoreError, match="softdecay form"):
        ask(bert, data, softdecay_form="clipped", output=tmp_path / "run", resume=True)


def test_outside_of_the_domain_of_eq_2_training_says_so(bert: Path, data: Path) -> None:
    """For α = −0.99 the largest singular value has to be at least a(2 − a²)/(1 − a²) = 50.7."""
    with pytest.raises(InputError, match=r"expected at least a\(2 − a²\)/\(1 − a²\) = 50\.7"):
        ask(bert, data, softdecay_form="paper", alphas=[-0.99])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"softdecay_form": "papr"}, "no form 'papr'"),
        ({"recipe": "glue"}, "no recipe 'glue'; there are held-out and run-glue"),
        ({"pretraining_epochs": 0}, "pretraining epochs is 0"),
    ],
)
def test_other_settings_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        Training(**changes)


def test_runs_of_version_0_1_have_the_settings_of_today() -> None:
    """They name no recipe, form or first stage, and can be resumed with the defaults of these."""
    earlier = "epochs batch_size learning_rate softdecay_learning_rate max_length patience train_rows"
    assert list(Training().settings()) == earlier.split()
    changed = Training(recipe="run-glue", pretraining_epochs=2).settings()
    assert list(changed) == [*earlier.split(), "recipe", "pretraining_epochs"]


class TestRunGlue:
    """The script run_glue of transformers: all rows, the last epoch, AdamW without weight decay, linear decay to 0."""

    def test_no_row_is_held_out(self) -> None:
        found = split_rows(50, Training(recipe="run-glue"), np.random.default_rng(0))
        assert sorted(found.train) == list(range(50))
        assert found.held_out == []

    def test_the_last_epoch_is_kept_and_each_row_seen_once_in_each(self, bert: Path) -> None:
        torch.manual_seed(0)
        model = add_head(load(bert, device="cpu"), TASKS["rte"])
        rows = EncodedRows(
            [{"input_ids": [4 + i] * (3 + i), "attention_mask": [1] * (3 + i)} for i in range(7)], 0, "cpu"
        )
        seen: list[int] = []
        model.register_forward_pre_hook(
            lambda _, __, given: seen.extend(given["input_ids"][:, 0].tolist()), with_kwargs=True
        )
        weights: list[Any] = []
        training = Training(epochs=3, batch_size=3, learning_rate=1e-3, recipe="run-glue")
        labels, rng = torch.tensor([0, 1, 0, 1, 0, 1, 0]), np.random.default_rng(0)

        def keep(step: int) -> None:
            weights.append(model.classifier.weight.detach().clone())

        found = fine_tune(model, rows, labels, training, None, rng, lambda *_: None, keep)
        assert (found.epoch, found.held_out, len(found.losses), found.steps) == (3, [], 3, 9)
        assert torch.equal(model.classifier.weight, weights[-1])
        for epoch in range(3):
            assert sorted(seen[7 * epoch : 7 * epoch + 7]) == list(range(4, 11))
        assert seen[:7] != seen[7:14]

    def test_the_optimizer_is_that_of_the_trainer(self) -> None:
        """Its defaults: AdamW, betas 0.9 and 0.999, epsilon 1e-8, no weight decay, gradients clipped at 1."""
        transformers = pytest.importorskip("transformers")
        defaults = {field.name: field.default for field in transformers.TrainingArguments.__dataclass_fields__.values()}
        step = Optimizer(torch.nn.Linear(2, 2), Training(recipe="run-glue"), 4)
        for group in step.adamw.param_groups:
            assert group["betas"] == (defaults["adam_beta1"], defaults["adam_beta2"])
            assert (group["eps"], group["weight_decay"]) == (defaults["adam_epsilon"], defaults["weight_decay"])
        assert (defaults["learning_rate"], defaults["per_device_train_batch_size"]) == (5e-5, 8)
        assert defaults["num_train_epochs"] == Training().epochs
        assert defaults["max_grad_norm"] == 1.0

    def test_it_is_recorded_and_no_alpha_is_chosen(self, bert: Path, data: Path) -> None:
        found = ask(bert, data, recipe="run-glue", alphas=[-0.2, -0.5], batch_size=8, learning_rate=5e-5)
        assert [score.method for score in found.scores] == ["base", "softdecay:alpha=-0.2", "softdecay:alpha=-0.5"]
        for run in found.runs:
            assert run.rows == {"train": 40, "held_out": 0, "validation": 24}
            assert (run.epoch, run.held_out, run.steps) == (2, [], 10)
            assert (run.settings["recipe"], run.settings["learning_rate"]) == ("run-glue", 5e-5)
        assert found.to_frame("runs")["held_out"].isna().all()


class TestFirstStage:
    @pytest.mark.parametrize("method", ["bert-ct", "simcse"])
    def test_sentences_come_from_the_text(
        self, bert: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
    ) -> None:
        pytest.importorskip("sentence_transformers")
        text = tmp_path / "sentences.txt"
        sentences = ["the cat sat", "old dogs ran", "green hills and water"]
        text.write_text("\n".join(sentences) + "\n")
        seen: list[Any] = []
        original = task_training.pretrain_encoder

        def watch(*args: Any) -> None:
            steps: list[tuple[int, int]] = []
            seen.append((args[3].texts, steps))
            original(*args[:-1], lambda *step: steps.append(step))

        monkeypatch.setattr(task_training, "pretrain_encoder", watch)
        found = ask(bert, data, methods=[method], pretraining_text=str(text), pretraining_epochs=3, epochs=1)
        ((texts, steps),) = seen
        assert sorted(texts) == sorted((sentence,) for sentence in sentences)
        assert steps == [(1, 3), (2, 3), (3, 3)]
        assert found.runs[1].settings["pretraining_text"] == str(text)
        assert found.runs[1].settings["pretraining_epochs"] == 3

    def test_triplets_of_a_file(self, tmp_path: Path) -> None:
        file = tmp_path / "nli_for_simcse.csv"
        file.write_text('sent0,sent1,hard_neg\n"a, b",c,d\ne,f,g\n')
        assert read_triplets(file).texts == [("a, b", "c", "d"), ("e", "f", "g")]
        other = tmp_path / "triplets.tsv"
        other.write_text("premise\tentailment\tcontradiction\na\tb\tc\n")
        assert read_triplets(other).texts == [("a", "b", "c")]
        file.write_text("one,two\na,b\n")
        with pytest.raises(InputError, match="has the columns one, two, expected sent0, sent1, hard_neg"):
            read_triplets(file)
        file.write_text("sent0,sent1,hard_neg\na,,c\n")
        with pytest.raises(InputError, match="1 triplets with an empty text"):
            read_triplets(file)
        with pytest.raises(InputError, match="no file"):
            read_triplets(tmp_path / "nosuch.csv")

    def test_triplets_of_labelled_pairs(self) -> None:
        from isotrope.finetuning.tasks import TaskRows

        texts = [("p", "yes"), ("p", "maybe"), ("p", "no"), ("q", "yes"), ("r", "no"), ("p", "also"), ("p", "never")]
        rows = TaskRows(texts, [0.0, 1.0, 2.0, 0.0, 2.0, 0.0, 2.0])
        assert make_triplets(rows).texts == [("p", "yes", "no"), ("p", "also", "never")]
