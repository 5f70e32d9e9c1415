"""The GLUE tasks and settings with which a study fine-tunes, and how long that takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from isotrope.finetuning.settings import Training
from isotrope.finetuning.tasks import TaskData, find_glue_folder, read_tasks
from isotrope.readings.cost import format_duration
from isotrope.sources.models.load import Loaded
from isotrope.studies.options import StudyOptions

#: How a quick study fine-tunes: on the task with the shortest texts, on few of its rows, once.
_QUICK_TASKS, _QUICK_ROWS, _QUICK_EPOCHS = ("cola",), 300, 1


@dataclass(frozen=True)
class FineTuning:
    """Tasks with their rows, none where there are none; and how models are trained."""

    data: Sequence[TaskData]
    training: Training

    @classmethod
    def from_options(
        cls,
        options: StudyOptions,
        train_rows: int | None,
        epochs: int = Training.epochs,
        learning_rate: float = Training.learning_rate,
        max_length: int = Training.max_length,
    ) -> FineTuning:
        """The plan of a study; without named tasks all that the data holds, of which a quick study takes one."""
        if options.quick:
            train_rows, epochs = train_rows or _QUICK_ROWS, min(epochs, _QUICK_EPOCHS)
        training = Training(train_rows=train_rows, epochs=epochs, learning_rate=learning_rate, max_length=max_length)
        tasks, root = options.tasks, options.data_root
        if tasks is not None:
            return cls(read_tasks(tasks, root) if tasks else [], training)
        there = root is not None and find_glue_folder(root) != Path(root)
        return cls(read_tasks(_QUICK_TASKS if options.quick else None, root) if there else [], training)

    @property
    def names(self) -> list[str]:
        return [data.task.name for data in self.data]

    def settings(self) -> dict[str, Any]:
        """The settings that must not change when a study is resumed."""
        return {"tasks": self.names, "training": asdict(self.training)}

    def announce(self, options: StudyOptions, load: Callable[[str], Loaded], times: Mapping[str, float]) -> None:
        """Estimate how long fine-tuning takes, and say so; `times` is how often each model is trained on all tasks."""
        if options.say is None or options.resume or not self.data:
            return
        from isotrope.finetuning.task_training import estimate_seconds

        seconds = sum(n * estimate_seconds(load(m), self.data, self.training) for m, n in times.items())
        options.say(f"fine-tuning on {', '.join(self.names)} will take about {format_duration(seconds)} besides")
