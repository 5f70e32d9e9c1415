"""GLUE: whether SoftDecay, or another way of training, makes a better fine-tuned model, over several seeds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.finetuning.methods import ALPHAS, Method
from isotrope.finetuning.methods import methods as parse_methods
from isotrope.finetuning.result import GlueEvaluation
from isotrope.finetuning.runs import RUNS, prepare, read_runs, refuse_other, write_run
from isotrope.finetuning.settings import Training
from isotrope.finetuning.tasks import TaskData, glue_folder, read_task, read_tasks
from isotrope.pipeline import Progress
from isotrope.sources.models.load import Loaded, load
from isotrope.sources.models.onnx_layers import refuse_graph
from isotrope.storage.files import remove_leftovers, write_frame, write_text
from isotrope.storage.locks import hold_lock
from isotrope.storage.provenance import describe_provenance, record_start

#: What S-BERT learns from: natural-language inference, the first of these that is there.
_PAIRS = ("mnli", "rte")

#: The tables that a folder holds beside its runs.
_TABLES = ("scores", "differences", "runs", "alphas", "spectra")


def evaluate_glue(
    *,
    model: str | Path | Loaded | None = None,
    data: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    methods: Sequence[str] = ("softdecay",),
    alphas: Sequence[float] = ALPHAS,
    softdecay_block: int = -1,
    seeds: int = 5,
    seed: int = 0,
    epochs: int = Training.epochs,
    batch_size: int = Training.batch_size,
    learning_rate: float = Training.learning_rate,
    softdecay_learning_rate: float = Training.softdecay_learning_rate,
    max_length: int = Training.max_length,
    patience: int = Training.patience,
    train_rows: int | None = None,
    output: str | Path | None = None,
    resume: bool = False,
    revision: str | None = None,
    trust_remote_code: bool = False,
    device: str = "auto",
    progress: Progress | None = None,
) -> GlueEvaluation:
    """Scores of a model fine-tuned on tasks of GLUE, plainly and by other methods, over seeds.

    model: as for a scan, or one that is loaded already and perhaps changed; its name then says how. data: a folder, see
    `isotrope.finetuning.tasks`; None for ISOTROPE_DATA or the hub. methods: beside "base" any of "softdecay",
    "expdecay", "sbert", "bert-ct", "simcse" and "simcse+softdecay". alphas: that SoftDecay begins with;
    softdecay_block: the block that it is in. seeds: how many, from `seed` on. The other numbers are of training, see
    `isotrope.finetuning.settings.Training`. output: a folder in which each finished run becomes a file at once;
    `resume` goes on with it. Paper: Yan et al. 2022, Tables 2, 3, 5 and 6.
    """
    started, told = record_start(), progress or (lambda *_: None)
    training = Training(
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        softdecay_learning_rate=softdecay_learning_rate,
        max_length=max_length,
        patience=patience,
        train_rows=train_rows,
    )
    if seeds < 1 or not 0 <= seed < 2**31 - seeds:
        raise InputError(f"got {seeds} seeds from {seed} on, expected at least one, and numbers below {2**31 - 1:,}.")
    tried = [replace(method, block=softdecay_block) for method in parse_methods(methods, alphas)]
    told("reading the tasks", 0, None)
    found = read_tasks(tasks, data)
    pairs = _pairs(found, data) if any(method.first == "sbert" for method in tried) else None
    folder = None if output is None else Path(output)
    with nullcontext() if folder is None else hold_lock(folder):
        earlier = [] if folder is None else prepare(folder, resume=resume)
        if folder is not None:
            remove_leftovers(folder / RUNS, "*.json")
        told("loading the model", 0, None)
        options = {"revision": revision, "device": device, "trust_remote_code": trust_remote_code}
        loaded = model if isinstance(model, Loaded) else pretrained(model, **options)
        elsewhere = {} if softdecay_block == -1 else {"softdecay_block": softdecay_block}
        settings = {task.task.name: _settings(loaded, task, training) | elsewhere for task in found}
        for name, same in settings.items():
            refuse_other(earlier, name, same)
        runs = {run.key: run for run in earlier}
        from isotrope.finetuning.task_training import pretrained_spectra, train

        before = {}
        for number in range(seed, seed + seeds):
            for task in found:
                for method in tried:
                    name = task.task.name
                    if (name, method.name, number) in runs:
                        continue
                    if name not in before:
                        before[name] = pretrained_spectra(loaded, task, training)
                    made = train(loaded, task, method, number, training, pairs, _stages(told, name, method, number))
                    first = {"pairs": pairs.task.name} if pairs is not None and method.first == "sbert" else {}
                    run = replace(
                        made, spectra={"pretrained": before[name]} | made.spectra, settings=settings[name] | first
                    )
                    runs[run.key] = run
                    if folder is not None:
                        write_run(folder, run)
        names, labels = {task.task.name for task in found}, {method.name for method in tried}
        asked = [run for run in runs.values() if run.task in names and run.method in labels]
        what = {
            "model": loaded.name,
            "revision": loaded.revision,
            "seed": seed,
            "seeds": seeds,
            "data": str(data or ""),
        }
        facts = describe_provenance(started, what | asdict(training), 0)
        if folder is not None:
            _write_tables(folder, GlueEvaluation.of(read_runs(folder), facts))
        return GlueEvaluation.of(asked, facts)


def _write_tables(folder: Path, result: GlueEvaluation) -> None:
    """Write glue.json and a table of each kind beside the runs of a folder, of all that it holds."""
    for name in _TABLES:
        write_frame(folder / f"{name}.csv", result.to_frame(name))
    write_text(folder / "glue.json", result.to_json())


def _pairs(found: Sequence[TaskData], data: str | Path | None) -> TaskData:
    """The task whose pairs S-BERT learns from."""
    folder = glue_folder(data)
    for name in _PAIRS:
        here = next((task for task in found if task.task.name == name), None)
        if here is not None:
            return here
        if folder is None or (folder / name).is_dir():
            return read_task(name, folder)
    raise InputError(f"S-BERT learns from the pairs of {' or '.join(_PAIRS)}, and {str(folder)!r} holds neither.")


def pretrained(model: str | Path | None, **options: Any) -> Loaded:
    """The model, whose missing pooler, where it is missing, is the same random one each time."""
    from importlib.util import find_spec

    refuse_graph(model, "fine-tuning")
    if find_spec("torch") is None:
        return load(model, **options)  # which says what to install
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(0)
        return load(model, **options)


def _settings(loaded: Loaded, data: TaskData, training: Training) -> dict[str, Any]:
    """All that runs of one task must have in common to be compared."""
    parts = [data.train, *data.validation.values()]
    return {
        "model": loaded.name,
        "revision": loaded.revision,
        "weights": loaded.files,
        "data": "-".join(part.checksum for part in parts),
        **asdict(training),
    }


def _stages(told: Progress, task: str, method: Method, seed: int) -> Callable[[str], Callable[[int, int], None]]:
    def stage(name: str) -> Callable[[int, int], None]:
        return lambda done, total: told(f"{task}, {method.name}, seed {seed}: {name}", done, total)

    return stage
