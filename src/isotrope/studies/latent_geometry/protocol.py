"""What the experiments with changed models share: options, samples of the text, models and fine-tuning."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.models.load import Loaded
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.latent_geometry.changed_models import FOREIGN, OTHERS, ROWS, WEIGHTS, Case, add_row_noise
from isotrope.studies.latent_geometry.corpus import SampledText
from isotrope.studies.latent_geometry.measures import MOST_ROWS, read_last_layer
from isotrope.studies.latent_geometry.published import TABLE_2
from isotrope.studies.options import StudyOptions
from isotrope.studies.runner import load_part

#: Rows of a quick study.
QUICK_ROWS = 3_000


@dataclass(frozen=True)
class Protocol:
    """What the experiments of one study share.

    Args:
        options: the options of the study.
        sample: draws samples of the text once, and returns them.
        load: loads a model by its short name.
        references: hub ids, folders or files of models that are no models of the study, by their short names.
        foreign: the model whose embeddings others get, by its short name.
        plan: how models are fine-tuned.
    """

    options: StudyOptions
    sample: Callable[[], SampledText]
    load: Callable[[str], Loaded]
    references: Mapping[str, str]
    foreign: str | None
    plan: FineTuning

    @property
    def most_rows(self) -> int:
        return QUICK_ROWS if self.options.quick else MOST_ROWS

    def scores(self, case: Case) -> bool:
        """Whether a changed model is fine-tuned; a quick study leaves out those that no correlation needs."""
        needed = not self.options.quick or case.kind in (WEIGHTS, *OTHERS)
        return bool(self.plan.names) and case.can_score and needed

    def change(self, model: str, case: Case) -> Loaded:
        """Make a changed model."""
        other = self.load(self.foreign) if case.kind == FOREIGN and self.foreign is not None else None
        return case.apply(self.load(model), other)

    def read_rows(self, model: str, loaded: Loaded) -> NDArray[np.floating[Any]]:
        """The rows of the last layer of a model, or of a changed one, over the sampled text."""
        reading = self.options.input(self.references.get(model, model), layers="-1")
        progress = self.options.progress or (lambda *_: None)
        return read_last_layer(reading, loaded, self.sample().texts, self.most_rows, progress)

    def read_case(self, model: str, case: Case) -> NDArray[np.floating[Any]]:
        """The rows of the last layer of a changed model."""
        rows = self.read_rows(model, self.change(model, case))
        return add_row_noise(rows, case.level, case.seed) if case.kind == ROWS else rows

    def score(self, name: str, loaded: Loaded, seed: int) -> tuple[dict[str, float], list[str]]:
        """Fine-tune a model on each task with one seed; finished tasks are kept, so that a stopped one goes on.

        Returns:
            The score on each task, NaN where the model could not be trained, and the reasons.
        """
        scores, reasons = dict[str, float](), []
        how: dict[str, Any] = {"seeds": 1, "seed": seed, "methods": ()}
        for task in self.plan.names:
            try:
                found = self.plan.evaluate(name, loaded, tasks=[task], **how)
                values = found.runs[0].scores.values()  # several of one task are averaged first
                scores[task] = sum(math.nan if value is None else value for value in values) / len(values)
            except InputError as error:  # so much noise that there is nothing to learn from
                scores[task] = math.nan
                reasons.append(f"{name} could not be fine-tuned on {task}: {error}")
        return scores, reasons

    def join_cases(self, model: str, cases: Sequence[Case]) -> pd.DataFrame:
        """A row for each changed model of one: model, kind, level, seed, block, n, measures, scores and their mean."""
        parts = []
        for case in cases:
            frame = load_part(self.options.folder, f"{model} {case.name}").tables[0].frame
            if self.scores(case):
                scores = load_part(self.options.folder, f"{model} {case.name} glue").tables[0].frame
                frame = pd.concat([frame, scores], axis=1)
            parts.append(frame)
        frame = pd.concat(parts, ignore_index=True)
        numbers = [name for name in frame if name in TABLE_2 or name == "glue" or str(name).startswith("score_")]
        joined: pd.DataFrame = frame.astype(dict.fromkeys(["level", *numbers], float))
        return joined
