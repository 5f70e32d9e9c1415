"""Whether the geometry of a space predicts GLUE scores: the protocol of Marbut, Chandler and Wheeler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import pandas as pd

from isotrope.errors import InputError
from isotrope.finetuning.glue import load_pretrained
from isotrope.finetuning.settings import Training
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.load import Loaded
from isotrope.studies.figures import make_figure
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.latent_geometry.changed_models import (
    CHECKPOINT,
    FOREIGN,
    OTHERS,
    ROWS,
    WEIGHTS,
    Case,
    add_row_noise,
    check_widths,
    list_cases,
    match_checkpoints,
    sort_levels,
)
from isotrope.studies.latent_geometry.figures import draw_sample
from isotrope.studies.latent_geometry.measures import CORPUS, MOST_ROWS, compute_measures, read_last_layer
from isotrope.studies.latent_geometry.noise_results import compare_levels, compare_models
from isotrope.studies.latent_geometry.published import (
    TABLE_2,
    read_models,
    repeat_correlations,
    repeat_regressions,
    repeat_table_2,
)
from isotrope.studies.options import StudyOptions, to_model
from isotrope.studies.representative_sample import SEQUENCES, TextSample, draw_samples, split_sequences
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Results, load_part, run_study
from isotrope.studies.transformer_block import count_blocks

PAPER = (
    "Marbut, Chandler and Wheeler, Exploring the Impact of a Transformer's Latent Space Geometry on Downstream Task "
    "Performance"
)

#: Shares of noise of the study, and of a quick one.
LEVELS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0)
_QUICK_LEVELS = (0.0, 0.05, 0.2, 1.0)

#: Sequences and rows of a quick study.
_QUICK_SEQUENCES, _QUICK_ROWS = 300, 3_000

#: Draws samples of the text once, and returns them.
DrawSamples: TypeAlias = Callable[[], list[TextSample]]


@dataclass(frozen=True)
class _Protocol:
    """What the experiments of one study share: options, samples of the text, models and fine-tuning."""

    options: StudyOptions
    samples: DrawSamples
    load: Callable[[str], Loaded]
    foreign: str | None
    plan: FineTuning

    def scores(self, case: Case) -> bool:
        """Whether a changed model is fine-tuned; a quick study leaves out those that no correlation needs."""
        needed = not self.options.quick or case.kind in (WEIGHTS, *OTHERS)
        return bool(self.plan.names) and case.can_score and needed

    def change(self, model: str, case: Case) -> Loaded:
        """Make a changed model."""
        other = self.load(self.foreign) if case.kind == FOREIGN and self.foreign is not None else None
        return case.apply(self.load(model), other)


def latent_geometry(
    *,
    output: str | Path,
    data: str | Path | None = None,
    tasks: Sequence[str] | None = None,
    levels: Sequence[float] | None = None,
    seeds: int = 3,
    foreign: str | Path | None = None,
    others: Sequence[str | Path] = (),
    train_rows: int | None = None,
    epochs: int = Training.epochs,
    learning_rate: float = Training.learning_rate,
    max_length: int = Training.max_length,
    **common: Any,
) -> Study:
    """Table 2 from the authors' files, and models with increasing noise: measured, fine-tuned and correlated.

    Args:
        output: the folder for tables, figures and runs.
        data: a folder with `latent_geometry/` and, for scores, `glue/`.
        tasks: tasks of GLUE; None for all that the data holds, an empty list for none.
        levels: shares of noise.
        seeds: the number of seeds of noise and of training, from `seed` on.
        foreign: a model of the same width whose input embeddings each model gets once.
        others: checkpoints of the models' types and widths, used unchanged.
        train_rows: the most training rows of a task.
        epochs: the most epochs of fine-tuning.
        learning_rate: of fine-tuning.
        max_length: the most tokens of a text in fine-tuning.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`.

    References:
        Marbut, Chandler and Wheeler, Exploring the Impact of a Transformer's Latent Space Geometry on Downstream Task
        Performance
    """
    options = StudyOptions(output=output, data=data, tasks=tasks, **common)
    shares = sort_levels(levels if levels is not None else _QUICK_LEVELS if options.quick else LEVELS)
    if seeds < 1 or not shares:
        raise InputError(f"got {seeds} seeds and {len(shares)} levels, expected at least one of each.")
    folder = options.data_folder("latent_geometry")
    training = Training(train_rows=train_rows, epochs=epochs, learning_rate=learning_rate, max_length=max_length)
    protocol = _Protocol(
        options,
        cache(partial(_draw_samples, options)),
        lru_cache(maxsize=2)(lambda name: load_pretrained(to_model(name), device=options.device)),
        None if foreign is None else str(foreign),
        FineTuning.plan(options, training),
    )
    numbers = range(options.seed, options.seed + (1 if options.quick else seeds))
    cases = _list_all_cases(protocol, shares, numbers)
    checkpoints = match_checkpoints(options.names, [str(other).rstrip("/") for other in others], protocol.load)
    cases |= {checkpoint: [Case(CHECKPOINT, math.nan, options.seed)] for checkpoint in checkpoints}
    kinds = {model: model for model in options.names} | checkpoints
    experiments: dict[str, Callable[[], Results]] = {
        "published table 2": lambda: repeat_table_2(read_models(folder)),
        "published regressions": lambda: repeat_regressions(read_models(folder)),
        "published correlations": lambda: repeat_correlations(read_models(folder)),
        "sample": partial(_describe_samples, protocol.samples),
        **_list_experiments(protocol, cases, kinds),
    }
    settings = {"levels": shares, "seeds": len(numbers), "foreign": protocol.foreign} | protocol.plan.settings()
    settings |= {"others": sorted(checkpoints)} if others else {}
    return run_study("latent-geometry", PAPER, experiments, options, settings, partial(_announce, protocol, cases))


def _list_all_cases(protocol: _Protocol, levels: Sequence[float], seeds: Sequence[int]) -> dict[str, list[Case]]:
    """The cases of each model; raises an error where the foreign embeddings do not fit."""
    foreign, cases = protocol.foreign, {}
    for model in protocol.options.names:
        cases[model] = list_cases(levels, seeds, count_blocks(protocol.load(model)), foreign=foreign is not None)
    if foreign is not None:
        for model in protocol.options.names:
            check_widths(protocol.load(model), protocol.load(foreign))
    return cases


def _list_experiments(
    protocol: _Protocol, cases: dict[str, list[Case]], kinds: dict[str, str]
) -> dict[str, Callable[[], Results]]:
    """The experiments with our own models: each case measured and scored, then compared."""
    experiments: dict[str, Callable[[], Results]] = {}
    for model, own in cases.items():
        for case in own:
            experiments[f"{model} {case.name}"] = partial(_measure_case, protocol, model, case)
            if protocol.scores(case):
                experiments[f"{model} {case.name} glue"] = partial(_score_case, protocol, model, case)
        if model in protocol.options.names:
            experiments[f"{model} noise"] = partial(_compare_levels, protocol, model, own)
    if protocol.plan.names:
        experiments["own models"] = partial(_compare_models, protocol, cases, kinds)
    else:
        text = "no model was fine-tuned: there is no glue folder in the data, or no task was asked for."
        experiments["without scores"] = lambda: Results.note(text, "Table 2")
    return experiments


def _announce(protocol: _Protocol, cases: dict[str, list[Case]]) -> None:
    """Say how long measuring and fine-tuning will take."""
    options = protocol.options
    most, rows = sum(map(len, cases.values())) / len(cases), _QUICK_ROWS if options.quick else MOST_ROWS
    options.announce(",".join(TABLE_2), most, sample=rows, layers="-1", text=protocol.samples()[0].texts)
    times = {model: sum(map(protocol.scores, own)) for model, own in cases.items()}
    protocol.plan.announce(protocol.load, times)


def _draw_samples(options: StudyOptions) -> list[TextSample]:
    """Draw ten samples of the sequences of the text; without a text, of WikiText-2 if the data has it."""
    root, text = options.data_root, options.text
    if text is None and root is not None and (Path(root) / CORPUS).is_file():
        text = Path(root) / CORPUS
    sequences = split_sequences(one.text for one in open_corpus(text))
    count = min(_QUICK_SEQUENCES if options.quick else SEQUENCES, len(sequences))
    return draw_samples(sequences, count, seed=options.seed)


def _describe_samples(draw: DrawSamples) -> Results:
    """Fig. 2: how near ten samples are to the corpus."""
    samples = draw()
    count = len(samples[0].texts)
    rows = [{"words": s.words, "pairs": s.pairs, "lengths": s.lengths, "all": s.distance} for s in samples]
    title = f"Total variation distance of ten samples of {count:,} sequences to all of the text (Fig. 2)"
    text = f"the samples are of {count:,} sequences; the paper draws {SEQUENCES:,}."
    claims = [Claim("note", text, "Section 3.2")] if count != SEQUENCES else []
    frame = pd.DataFrame(rows)
    caption = (
        "Distance of the frequencies of words, pairs of words and lengths in ten samples to those in all of the text."
    )
    figure = make_figure("sample", caption, partial(draw_sample, frame))
    return Results([Table("sample", title, frame)], claims, [figure])


def _measure_case(protocol: _Protocol, model: str, case: Case) -> Results:
    """One changed model: all measures of its last layer."""
    options, title = protocol.options, "One changed model: its measures"
    row: dict[str, Any] = {"model": model} | asdict(case)
    twin = replace(case, seed=options.seed)
    if case.level == 0 and case != twin:  # without noise all seeds have one space
        frame = load_part(options.folder, f"{model} {twin.name}").tables[0].frame
        return Results([Table("measured", title, frame.assign(seed=case.seed))])
    reading = options.input(model, layers="-1")
    progress, most = options.progress or (lambda *_: None), _QUICK_ROWS if options.quick else MOST_ROWS
    rows = read_last_layer(reading, protocol.change(model, case), protocol.samples()[0].texts, most, progress)
    if case.kind == ROWS:
        rows = add_row_noise(rows, case.level, case.seed)
    row |= {"n": len(rows)} | compute_measures(rows, seed=options.seed)
    return Results([Table("measured", title, pd.DataFrame([row]))])


def _score_case(protocol: _Protocol, model: str, case: Case) -> Results:
    """One changed model fine-tuned on each task; finished tasks are kept, so that a stopped one goes on."""
    name, scores, claims = f"{model} {case.name}", dict[str, float](), []
    how: dict[str, Any] = {"seeds": 1, "seed": case.seed, "methods": ()}
    for task in protocol.plan.names:
        try:
            found = protocol.plan.evaluate(name, protocol.change(model, case), tasks=[task], **how)
            values = found.runs[0].scores.values()  # several of one task are averaged first
            scores[task] = sum(math.nan if value is None else value for value in values) / len(values)
        except InputError as error:  # so much noise that there is nothing to learn from
            scores[task] = math.nan
            claims.append(Claim("note", f"{name} could not be fine-tuned on {task}: {error}", "Fig. 1"))
    row: dict[str, Any] = {f"score_{task}": score for task, score in scores.items()}
    row["glue"] = sum(scores.values()) / len(scores)
    return Results([Table("scores", f"{name}: scores on GLUE tasks and their mean", pd.DataFrame([row]))], claims)


def _join_cases(protocol: _Protocol, model: str, cases: Sequence[Case]) -> pd.DataFrame:
    """A row for each changed model of one: model, kind, level, seed, block, n, measures, scores and their mean."""
    parts = []
    for case in cases:
        frame = load_part(protocol.options.folder, f"{model} {case.name}").tables[0].frame
        if protocol.scores(case):
            scores = load_part(protocol.options.folder, f"{model} {case.name} glue").tables[0].frame
            frame = pd.concat([frame, scores], axis=1)
        parts.append(frame)
    frame = pd.concat(parts, ignore_index=True)
    numbers = [name for name in frame if name in TABLE_2 or name == "glue" or str(name).startswith("score_")]
    joined: pd.DataFrame = frame.astype(dict.fromkeys(["level", *numbers], float))
    return joined


def _compare_levels(protocol: _Protocol, model: str, cases: Sequence[Case]) -> Results:
    return compare_levels(model, _join_cases(protocol, model, cases))


def _compare_models(protocol: _Protocol, cases: dict[str, list[Case]], kinds: dict[str, str]) -> Results:
    models = [_join_cases(protocol, m, own).assign(architecture=kinds[m]) for m, own in cases.items()]
    return compare_models(pd.concat(models, ignore_index=True))
