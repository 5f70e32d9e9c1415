"""Whether the shape of a space foretells GLUE: the protocol of Marbut, Chandler and Wheeler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from isotrope.errors import InputError
from isotrope.finetuning.glue import evaluate_glue, pretrained
from isotrope.finetuning.settings import Training
from isotrope.sources import EMBEDDED
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.models.load import Loaded
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.latent_geometry.changed_models import CHECKPOINT, FOREIGN, OTHERS, ROWS, WEIGHTS, Case, cases
from isotrope.studies.latent_geometry.figures import sample_picture
from isotrope.studies.latent_geometry.measures import space_measures
from isotrope.studies.latent_geometry.noise_results import of_all_models, of_one_model
from isotrope.studies.latent_geometry.prediction import CORPUS, last_layer
from isotrope.studies.latent_geometry.prediction import ROWS as MOST_ROWS
from isotrope.studies.latent_geometry.published import TABLE_2
from isotrope.studies.latent_geometry.published_models import correlations, published_regressions, read_models, table_2
from isotrope.studies.latent_geometry.weight_noise import noisy_rows, refuse_width
from isotrope.studies.options import Options
from isotrope.studies.representative_sample import SEQUENCES, Representative, representative, sequences
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Made, Task, carry_out, finished, slug
from isotrope.studies.transformer_block import number_of_blocks

if TYPE_CHECKING:
    import pandas as pd

PAPER = "Marbut, Chandler and Wheeler, Exploring the Latent Geometry of Transformer Models (GLUE from geometry)"

#: Shares of noise of the study, and of a quick one.
LEVELS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0)
_QUICK_LEVELS = (0.0, 0.05, 0.2, 1.0)

#: Sequences and rows of a quick study.
_QUICK_SEQUENCES, _QUICK_ROWS = 300, 3_000

#: Gives samples of the text, drawn once.
Draw: TypeAlias = Callable[[], list[Representative]]


@dataclass(frozen=True)
class _Noise:
    """What the parts of one study share: its options, its sample, its models and how they are fine-tuned."""

    options: Options
    drawn: Draw
    load: Callable[[str], Loaded]
    foreign: str | None
    plan: FineTuning

    def scores(self, case: Case) -> bool:
        """Whether a changed model is fine-tuned: in a quick study only those that correlations and guesses are over."""
        return bool(self.plan.names) and case.scored and (not self.options.quick or case.kind in (WEIGHTS, *OTHERS))


def latent_geometry(
    *,
    output: str | Path,
    models: Sequence[str | Path] = (),
    text: str | Path | Sequence[str] | None = None,
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
    quick: bool = False,
    seed: int = 0,
    batch_size: int | None = None,
    device: str = "auto",
    resume: bool = False,
    progress: Any = None,
    say: Any = None,
) -> Study:
    """Table 2 from the authors' files, and the models with more and more noise: measured, fine-tuned and correlated.

    data: a folder with `latent_geometry/` and, for scores, `glue/`. text: of the sequences. tasks: of GLUE, by default
    all that are there; none of them where the list is empty. levels: shares of noise; seeds: so many from `seed` on, of
    noise and of training. foreign: a model of the same width whose input embeddings the models get once. others:
    checkpoints of the models' kinds and widths, taken as they are. train_rows, epochs, learning_rate, max_length: of
    fine-tuning.
    """
    chosen = _shares(levels if levels is not None else _QUICK_LEVELS if quick else LEVELS)
    if seeds < 1 or not chosen:
        raise InputError(f"got {seeds} seeds and {len(chosen)} levels, expected at least one of each.")
    options = Options.among(locals())
    folder = options.data_folder("latent_geometry")
    plan = FineTuning.planned(options, tasks, train_rows, epochs, learning_rate, max_length)
    noise = _Noise(
        options,
        cache(partial(_drawn, options)),
        lru_cache(maxsize=2)(lambda name: pretrained(None if name == EMBEDDED else name, device=options.device)),
        None if foreign is None else str(foreign),
        plan,
    )
    todo = [
        Task("published table 2", lambda: table_2(read_models(folder))),
        Task("published regressions", lambda: published_regressions(read_models(folder))),
        Task("published correlations", lambda: correlations(read_models(folder))),
        Task("sample", partial(_sample, noise.drawn)),
    ]
    numbers = range(seed, seed + (1 if quick else seeds))
    changed = {
        model: cases(chosen, numbers, number_of_blocks(noise.load(model)), foreign=foreign is not None)
        for model in options.names
    }
    if noise.foreign is not None:
        for model in options.names:
            refuse_width(noise.load(model), noise.load(noise.foreign))
    kinds = {model: model for model in options.names} | _kinds(noise, [str(other).rstrip("/") for other in others])
    changed |= {other: [Case(CHECKPOINT, math.nan, seed)] for other in kinds if other not in changed}
    for model, some in changed.items():
        for case in some:
            todo.append(Task(f"{model} {case.name}", partial(_measured, noise, model, case)))
            if noise.scores(case):
                todo.append(Task(f"{model} {case.name} glue", partial(_fine_tuned, noise, model, case)))
        if model in options.names:
            todo.append(Task(f"{model} noise", partial(_noisy, noise, model, some)))
    if noise.plan.names:
        todo.append(Task("own models", partial(_own, noise, changed, kinds)))
    else:
        told = "no model was fine-tuned: there is no glue folder in the data, or no task was asked for."
        todo.append(Task("without scores", lambda: Made((), [Claim("note", told, "Table 2")])))
    more = {"others": sorted(changed.keys() - set(options.names))} if others else {}
    settings = options.settings(levels=chosen, seeds=len(numbers), foreign=noise.foreign) | more | plan.settings()
    first = partial(_announce, noise, changed)
    return carry_out(
        "latent-geometry", PAPER, todo, settings, options.folder, resume=resume, progress=options.progress, first=first
    )


def _shares(levels: Sequence[float]) -> list[float]:
    """Shares of noise in order, each once."""
    for level in levels:
        if not 0.0 <= level <= 1.0:
            raise InputError(f"the share of noise is {level:g}, expected 0 to 1.")
    return sorted(set(levels))


def _announce(noise: _Noise, changed: dict[str, list[Case]]) -> None:
    """Say how long measuring and fine-tuning will take."""
    options = noise.options
    most, rows = sum(map(len, changed.values())) / len(changed), _QUICK_ROWS if options.quick else MOST_ROWS
    options.announce(",".join(TABLE_2), most, sample=rows, layers="-1", text=noise.drawn()[0].texts)
    times = {model: sum(map(noise.scores, some)) for model, some in changed.items()}
    noise.plan.announce(options, noise.load, times)


def _drawn(options: Options) -> list[Representative]:
    """Ten samples of the text's sequences; without a text that of WikiText-2, where the data has it."""
    root, text = options.data_root, options.text
    if text is None and root is not None and (Path(root) / CORPUS).is_file():
        text = Path(root) / CORPUS
    every = sequences(one.text for one in open_corpus(text))
    count = min(_QUICK_SEQUENCES if options.quick else SEQUENCES, len(every))
    return representative(every, count, seed=options.seed)


def _sample(drawn: Draw) -> Made:
    """Fig. 2: how near ten samples are to the corpus."""
    import pandas as pd

    samples = drawn()
    count = len(samples[0].texts)
    rows = [{"words": s.words, "pairs": s.pairs, "lengths": s.lengths, "all": s.distance} for s in samples]
    title = f"Total variation distance of ten samples of {count:,} sequences to all of the text (Fig. 2)"
    text = f"the samples are of {count:,} sequences; the paper draws {SEQUENCES:,}."
    claims = [Claim("note", text, "Section 3.2")] if count != SEQUENCES else []
    frame = pd.DataFrame(rows)
    return Made([Table("sample", title, frame)], claims, [sample_picture(frame)])


def _changed(noise: _Noise, model: str, case: Case) -> Loaded:
    other = noise.load(noise.foreign) if case.kind == FOREIGN and noise.foreign is not None else None
    return case.of(noise.load(model), other)


def _measured(noise: _Noise, model: str, case: Case) -> Made:
    """One changed model: all measures of its last layer."""
    import pandas as pd

    options, title = noise.options, "One changed model: its measures"
    row: dict[str, Any] = {"model": model} | asdict(case)
    twin = replace(case, seed=options.seed)
    if case.level == 0 and case != twin:  # without noise all seeds have one space
        frame = finished(options.folder, f"{model} {twin.name}").tables[0].frame
        return Made([Table("measured", title, frame.assign(seed=case.seed))])
    reading = options.input(model, layers="-1")
    told, most = options.progress or (lambda *_: None), _QUICK_ROWS if options.quick else MOST_ROWS
    rows = last_layer(reading, _changed(noise, model, case), noise.drawn()[0].texts, most, told)
    if case.kind == ROWS:
        rows = noisy_rows(rows, case.level, case.seed)
    row |= {"n": len(rows)} | space_measures(rows, seed=options.seed)
    return Made([Table("measured", title, pd.DataFrame([row]))])


def _fine_tuned(noise: _Noise, model: str, case: Case) -> Made:
    """One changed model fine-tuned on each task; finished tasks are kept, so that a stopped one goes on."""
    import pandas as pd

    options, name = noise.options, f"{model} {case.name}"
    how = asdict(noise.plan.training) | {"seeds": 1, "seed": case.seed, "methods": ()}
    folder = options.folder / "glue" / slug(name)
    scores: dict[str, float] = {}
    claims = []
    for task in noise.plan.names:
        try:
            found = evaluate_glue(
                model=_changed(noise, model, case),
                data=options.data_root,
                tasks=[task],
                output=folder,
                resume=True,
                progress=options.progress,
                **how,
            )
            every = found.runs[0].scores.values()  # several of one task are averaged first
            scores[task] = sum(math.nan if value is None else value for value in every) / len(every)
        except InputError as error:  # so much noise that there is nothing to learn from
            scores[task] = math.nan
            claims.append(Claim("note", f"{name} could not be fine-tuned on {task}: {error}", "Fig. 1"))
    row: dict[str, Any] = {f"score_{task}": score for task, score in scores.items()}
    row["glue"] = sum(scores.values()) / len(scores)
    return Made([Table("scores", f"{name}: scores on GLUE tasks and their mean", pd.DataFrame([row]))], claims)


def _joined(noise: _Noise, model: str, some: Sequence[Case]) -> pd.DataFrame:
    """A row for each changed model of one: model, kind, level, seed, block, n, measures, scores and their mean."""
    import pandas as pd

    parts = []
    for case in some:
        frame = finished(noise.options.folder, f"{model} {case.name}").tables[0].frame
        if noise.scores(case):
            scores = finished(noise.options.folder, f"{model} {case.name} glue").tables[0].frame
            frame = pd.concat([frame, scores], axis=1)
        parts.append(frame)
    every = pd.concat(parts, ignore_index=True)
    numbers = [name for name in every if name in TABLE_2 or name == "glue" or str(name).startswith("score_")]
    joined: pd.DataFrame = every.astype(dict.fromkeys(["level", *numbers], float))
    return joined


def _noisy(noise: _Noise, model: str, some: Sequence[Case]) -> Made:
    return of_one_model(model, _joined(noise, model, some))


def _own(noise: _Noise, changed: dict[str, list[Case]], kinds: dict[str, str]) -> Made:
    import pandas as pd

    every = [_joined(noise, m, some).assign(architecture=kinds[m]) for m, some in changed.items()]
    return of_all_models(pd.concat(every, ignore_index=True))


def _kinds(noise: _Noise, others: Sequence[str]) -> dict[str, str]:
    """For each other checkpoint the model that it is of the kind and width of."""
    names = noise.options.names
    if len({slug(name) for name in (*names, *others)}) < len(names) + len(others):
        raise InputError(
            f"the checkpoints {', '.join(others)} do not all have names of their own; rename or drop some."
        )
    shapes = {_shape(noise.load(name)): name for name in reversed(names)}
    for other in others:
        if _shape(noise.load(other)) not in shapes:
            raise InputError(
                f"{other} is of another kind or width than {', '.join(names)}, so that no regression is for it; "
                "name a checkpoint like one of the models."
            )
    return {other: shapes[_shape(noise.load(other))] for other in others}


def _shape(loaded: Loaded) -> tuple[str, int]:
    return str(loaded.model.config.model_type), int(loaded.model.config.hidden_size)
