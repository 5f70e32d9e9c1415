"""How a study fine-tunes on GLUE: on which tasks, with which settings, and how long that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from isotrope.finetuning.glue import evaluate_glue
from isotrope.finetuning.result import GlueEvaluation
from isotrope.finetuning.settings import Training
from isotrope.finetuning.tasks import TaskData, find_glue_folder, read_tasks
from isotrope.readings.cost import format_duration
from isotrope.sources.models.load import Loaded
from isotrope.studies.options import StudyOptions, to_file_name

#: How a quick study fine-tunes: on the task with the shortest texts, on few of its rows, once.
_QUICK_TASKS, _QUICK_ROWS, _QUICK_EPOCHS = ("cola",), 300, 1


@dataclass(frozen=True)
class FineTuning:
    """The options of a study, the rows of its tasks (none where there are no tasks), and how models are trained."""

    options: StudyOptions
    data: Sequence[TaskData]
    training: Training

    @classmethod
    def plan(cls, options: StudyOptions, training: Training) -> FineTuning:
        """Plan the fine-tuning of a study; without named tasks on all that the data holds, a quick study on one."""
        if options.quick:
            rows, epochs = training.train_rows or _QUICK_ROWS, min(training.epochs, _QUICK_EPOCHS)
            training = replace(training, train_rows=rows, epochs=epochs)
        tasks, root = options.tasks, options.data_root
        if tasks is not None:
            return cls(options, read_tasks(tasks, root) if tasks else [], training)
        there = root is not None and find_glue_folder(root) != Path(root)
        return cls(options, read_tasks(_QUICK_TASKS if options.quick else None, root) if there else [], training)

    @property
    def names(self) -> list[str]:
        return [data.task.name for data in self.data]

    def settings(self) -> dict[str, Any]:
        """The settings that must not change when a study is resumed."""
        return {"tasks": self.names, "training": self.training.settings()}

    def announce(self, load: Callable[[str], Loaded], times: Mapping[str, float]) -> None:
        """Estimate how long fine-tuning takes, and say so; `times` is how often each model is trained on all tasks."""
        say = self.options.say
        if say is None or self.options.resume or not self.data:
            return
        from isotrope.finetuning.task_training import estimate_seconds

        seconds = sum(n * estimate_seconds(load(m), self.data, self.training) for m, n in times.items())
        say(f"fine-tuning on {', '.join(self.names)} will take about {format_duration(seconds)} besides")

    def evaluate(self, name: str, model: str | Loaded | None, **more: Any) -> GlueEvaluation:
        """Fine-tune a model, or read the runs that are finished.

        Args:
            name: of the folder of the runs.
            model: as for `evaluate_glue`.
            more: arguments of `evaluate_glue` in place of those of the study.
        """
        given = asdict(self.training) | {"tasks": self.names, "seed": self.options.seed} | more
        folder = self.options.folder / "glue" / to_file_name(name)
        return evaluate_glue(
            model=model,
            data=self.options.data_root,
            output=folder,
            resume=True,
            device=self.options.device,
            progress=self.options.progress,
            **given,
        )
