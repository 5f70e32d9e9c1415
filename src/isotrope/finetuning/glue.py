"""Evaluation on GLUE: whether SoftDecay, or another method of training, gives a better fine-tuned model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.finetuning.leaderboard import name_prediction_file, write_predictions
from isotrope.finetuning.result import TABLES, GlueEvaluation
from isotrope.finetuning.runs import GlueRun, check_settings, prepare_folder, read_runs, write_run
from isotrope.finetuning.settings import ALPHAS, Method, Training, parse_methods
from isotrope.finetuning.tasks import TaskData, TaskRows, find_glue_folder, read_task, read_tasks, read_test_rows
from isotrope.pipeline import Progress
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.environment import check_packages
from isotrope.sources.models.load import Loaded, load
from isotrope.sources.models.onnx import check_has_weights
from isotrope.storage.files import write_frame, write_text
from isotrope.storage.locks import hold_lock
from isotrope.storage.provenance import describe_provenance, record_start

#: Tasks of natural-language inference for the pretraining of S-BERT; the first one that is there is used.
_PAIR_TASKS = ("mnli", "rte")


def evaluate_glue(
    *,
    model: str | Path | Loaded | None = None,
    data: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] = ("softdecay",),
    alphas: Sequence[float] = ALPHAS,
    softdecay_block: int = -1,
    softdecay_form: str = Training.softdecay_form,
    seeds: int = 5,
    seed: int = 0,
    epochs: int = Training.epochs,
    batch_size: int = Training.batch_size,
    learning_rate: float = Training.learning_rate,
    softdecay_learning_rate: float = Training.softdecay_learning_rate,
    max_length: int = Training.max_length,
    patience: int = Training.patience,
    train_rows: int | None = None,
    recipe: str = Training.recipe,
    pretraining_text: str | None = None,
    pretraining_epochs: int = Training.pretraining_epochs,
    predictions: str | Path | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    revision: str | None = None,
    trust_remote_code: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
) -> GlueEvaluation:
    """Fine-tune a model on tasks of GLUE, plainly and by other methods, and score it over seeds.

    Args:
        model: as for a scan, or a model that is loaded already; the name of a changed model should say how.
        data: a folder, see `isotrope.finetuning.tasks`; None for the folder ISOTROPE_DATA, or else the hub.
        tasks: names of tasks, by default all that are there.
        methods: besides "base" any of "softdecay", "expdecay", "sbert", "bert-ct", "simcse" and "simcse+softdecay".
        alphas: initial values of SoftDecay's α.
        softdecay_block: the block that SoftDecay is attached to, −1 for the last.
        seeds: number of seeds.
        seed: the first seed.
        epochs, batch_size, learning_rate, softdecay_learning_rate, max_length, patience, train_rows, recipe,
            softdecay_form, pretraining_text, pretraining_epochs: hyperparameters, see
            `isotrope.finetuning.settings.Training`.
        predictions: a folder for predictions of each model for the test rows of the tasks, in the format of the
            leaderboard of GLUE; None for none.
        output: a folder; each finished run is written to it at once.
        resume: continue the runs of the folder.
        revision, trust_remote_code, device: as for `isotrope.scan`.
        progress: called with a stage, what is done and the total.

    Returns:
        Scores in per cent with their spread over seeds, and differences to "base" with p-values.

    References:
        Yan et al. 2022, Tables 2, 3, 5 and 6
    """
    started, report = record_start(), progress or (lambda *_: None)
    training = Training(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        softdecay_learning_rate=softdecay_learning_rate,
        max_length=max_length,
        patience=patience,
        train_rows=train_rows,
        recipe=recipe,
        softdecay_form=softdecay_form,
        pretraining_text=pretraining_text,
        pretraining_epochs=pretraining_epochs,
    )
    if seeds < 1 or not 0 <= seed < 2**31 - seeds:
        raise InputError(f"got {seeds} seeds from {seed} on, expected at least one, and numbers below {2**31 - 1:,}.")
    parsed = parse_methods(methods, alphas, softdecay_block)
    report("reading the tasks", 0, None)
    found = read_tasks(tasks, data)
    pairs = _find_pairs(found, data) if any(method.first == "sbert" for method in parsed) else None
    tests = {} if predictions is None else {task.task.name: read_test_rows(task.task, data) for task in found}
    target = None if predictions is None else Path(predictions)
    sentences = _read_sentences(training.pretraining_text)
    plan = _TrainingPlan(found, parsed, range(seed, seed + seeds), training, pairs, sentences, tests, target)
    folder = None if output is None else Path(output)
    with nullcontext() if folder is None else hold_lock(folder):
        earlier = [] if folder is None else prepare_folder(folder, resume=resume)
        report("loading the model", 0, None)
        options = {"revision": revision, "device": device, "trust_remote_code": trust_remote_code}
        loaded = model if isinstance(model, Loaded) else load_pretrained(model, **options)
        settings = {task.task.name: plan.describe_settings(loaded, task) for task in found}
        check_settings(earlier, settings)
        runs = {run.key: run for run in earlier}
        for run in _train_missing(plan, loaded, runs.keys(), report):
            runs[run.key] = replace(run, settings=settings[run.task] | run.settings)
            if folder is not None:
                write_run(folder, runs[run.key])
        what = {
            "model": loaded.name,
            "revision": loaded.revision,
            "seed": seed,
            "seeds": seeds,
            "data": str(data or ""),
        }
        facts = describe_provenance(started, what | training.settings(), 0)
        if folder is not None:
            _write_tables(folder, GlueEvaluation.of(read_runs(folder), facts))
        names, labels = {task.task.name for task in found}, {method.name for method in parsed}
        return GlueEvaluation.of((r for r in runs.values() if r.task in names and r.method in labels), facts)


@dataclass(frozen=True)
class _TrainingPlan:
    """What is trained: every task by every method with every seed.

    pairs: rows for the pretraining of S-BERT. sentences: those for BERT-CT and SimCSE, None for the task's own. tests:
    the test rows that are predicted, by task and split. predictions: the folder of these predictions.
    """

    tasks: Sequence[TaskData]
    methods: Sequence[Method]
    seeds: Sequence[int]
    training: Training
    pairs: TaskData | None
    sentences: TaskRows | None
    tests: Mapping[str, Mapping[str, TaskRows]]
    predictions: Path | None

    def describe_settings(self, loaded: Loaded, data: TaskData) -> dict[str, Any]:
        """What must be the same for all runs of a task to be comparable."""
        parts = [data.train, *data.validation.values()]
        block = self.methods[0].block
        return {
            "model": loaded.name,
            "revision": loaded.revision,
            "weights": loaded.files,
            "data": "-".join(part.checksum for part in parts),
            **self.training.settings(),
            **({} if block == -1 else {"softdecay_block": block}),
        }

    def select_first_rows(self, data: TaskData, method: Method) -> TaskRows | None:
        """The rows for the pretraining as a sentence encoder; None for those of the task itself."""
        if method.first == "sbert":
            assert self.pairs is not None
            return None if self.pairs.task == data.task else self.pairs.train
        return self.sentences

    def list_predictions(self, task: str, method: str, seed: int) -> dict[str, Path]:
        """The files of the predictions of a model, by split."""
        if self.predictions is None:
            return {}
        named = partial(name_prediction_file, self.predictions, task)
        return {split: named(split, method, seed) for split in self.tests[task]}


def _train_missing(
    plan: _TrainingPlan, loaded: Loaded, finished: Collection[tuple[str, str, int]], progress: Progress
) -> Iterator[GlueRun]:
    """Train what is not finished yet, or has no predictions though they are wanted.

    finished: task, method and seed of runs.
    """
    from isotrope.finetuning.loop import predict
    from isotrope.finetuning.task_training import compute_pretrained_spectrum, train

    pretrained: dict[str, Any] = {}
    for seed, data, method in product(plan.seeds, plan.tasks, plan.methods):
        task = data.task.name
        files = plan.list_predictions(task, method.name, seed)
        if (task, method.name, seed) in finished and all(path.exists() for path in files.values()):
            continue
        if task not in pretrained:
            pretrained[task] = compute_pretrained_spectrum(loaded, data, plan.training)
        stages = _name_stages(progress, f"{task}, {method.name}, seed {seed}")
        done = train(loaded, data, method, seed, plan.training, plan.select_first_rows(data, method), stages)
        for split, path in files.items():
            rows = done.encode(plan.tests[task][split].texts)
            write_predictions(path, data.task, predict(done.model, rows, plan.training.batch_size))
        first = {"pairs": plan.pairs.task.name} if plan.pairs is not None and method.first == "sbert" else {}
        yield replace(done.run, spectra={"pretrained": pretrained[task]} | done.run.spectra, settings=first)


def _name_stages(progress: Progress, run: str) -> Callable[[str], Callable[[int, int], None]]:
    """Report the progress of each stage of a run under the name of the run."""
    return lambda stage: lambda done, total: progress(f"{run}: {stage}", done, total)


def _write_tables(folder: Path, result: GlueEvaluation) -> None:
    """Write glue.json and all tables of a folder of runs."""
    for name in TABLES:
        write_frame(folder / f"{name}.csv", result.to_frame(name))
    write_text(folder / "glue.json", result.to_json())


def _find_pairs(found: Sequence[TaskData], data: str | Path | None) -> TaskData:
    """Find the task with labelled pairs for the pretraining of S-BERT."""
    folder = find_glue_folder(data)
    for name in _PAIR_TASKS:
        here = next((task for task in found if task.task.name == name), None)
        if here is not None:
            return here
        if folder is None or (folder / name).is_dir():
            return read_task(name, folder)
    raise InputError(f"S-BERT learns from the pairs of {' or '.join(_PAIR_TASKS)}, and {str(folder)!r} holds neither.")


def _read_sentences(text: str | None) -> TaskRows | None:
    """Read a text for the pretraining, each of its texts as a sentence; None for none."""
    return None if text is None else TaskRows.of_sentences(each.text for each in open_corpus(text))


def load_pretrained(model: str | Path | None, **options: Any) -> Loaded:
    """Load a model; a pooler that its weights lack is the same random one each time."""
    check_has_weights(model, "fine-tuning")
    check_packages("models", "fine-tuning", "torch", "transformers")
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return load(model, **options)
