"""Whether the geometry of a space predicts GLUE scores: the protocol of Marbut, Chandler and Wheeler."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any

import pandas as pd

from isotrope.errors import InputError
from isotrope.finetuning.glue import load_pretrained
from isotrope.finetuning.settings import Training
from isotrope.quantization.faiss_reference import choose_engine
from isotrope.studies.finetuning_plan import FineTuning
from isotrope.studies.latent_geometry.changed_models import (
    CHECKPOINT,
    Case,
    check_widths,
    list_cases,
    match_checkpoints,
    sort_levels,
)
from isotrope.studies.latent_geometry.corpus import SampledText, sample_text
from isotrope.studies.latent_geometry.figures import make_sample_figure
from isotrope.studies.latent_geometry.own_models import list_experiments
from isotrope.studies.latent_geometry.protocol import Protocol
from isotrope.studies.latent_geometry.published import TABLE_2, read_models, repeat_table_2
from isotrope.studies.latent_geometry.published_results import repeat_correlations, repeat_noise, repeat_regressions
from isotrope.studies.latent_geometry.sweep import parse_settings
from isotrope.studies.options import StudyOptions, Tokens, Unit, name_model
from isotrope.studies.representative_sample import SEQUENCES, split_tokens
from isotrope.studies.result import Claim, Study, Table
from isotrope.studies.runner import Results, run_study
from isotrope.studies.transformer_block import count_blocks

PAPER = (
    "Marbut, Chandler and Wheeler, Exploring the Impact of a Transformer's Latent Space Geometry on Downstream Task "
    "Performance"
)

#: Shares of noise of the study, and of a quick one.
LEVELS = (0.0, 0.01, 0.02, 0.03, 0.05, 0.1, 0.2, 0.35, 0.5, 1.0)
_QUICK_LEVELS = (0.0, 0.05, 0.2, 1.0)

#: Sequences of a quick study.
_QUICK_SEQUENCES = 300


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
    sequences: Unit | None = None,
    tokens: Tokens = "scikit-learn",
    sweep: Sequence[str] | None = None,
    initialisation: bool = False,
    **common: Any,
) -> Study:
    """Table 2 from the authors' files, and models with increasing noise: measured, fine-tuned and correlated.

    Args:
        output: the folder for tables, figures and runs.
        data: a folder with `latent_geometry/`, for the sample `ptb/` and `wikitext-2/`, and for scores `glue/`.
        tasks: tasks of GLUE; None for all that the data holds, an empty list for none.
        levels: shares of noise.
        seeds: the number of seeds of noise and of training, from `seed` on.
        foreign: a model of the same width whose input embeddings each model gets once.
        others: checkpoints of the models' types and widths, used unchanged.
        train_rows: the most training rows of a task.
        epochs: the most epochs of fine-tuning.
        learning_rate: of fine-tuning.
        max_length: the most tokens of a text in fine-tuning.
        sequences: what a sequence of the sample is, "lines" or "sentences"; None for lines where all splits of Penn
            Treebank and WikiText-2 are read, as in the paper, else for sentences.
        tokens: what 3 to 50 are counted of: those of "scikit-learn", as in the paper, or "words" between spaces.
        sweep: numbers of codebooks and cells, such as "2x64", to measure noisy models by besides; None for none.
        initialisation: whether to fine-tune fresh weights whose scale is chosen by the geometry of the trained model.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`.

    References:
        Marbut, Chandler and Wheeler, Exploring the Impact of a Transformer's Latent Space Geometry on Downstream Task
        Performance
    """
    options = StudyOptions(output=output, data=data, tasks=tasks, **common)
    shares = sort_levels(levels if levels is not None else _QUICK_LEVELS if options.quick else LEVELS)
    if seeds < 1 or not shares:
        raise InputError(f"got {seeds} seeds and {len(shares)} levels, expected at least one of each.")
    training = Training(
        train_rows=train_rows,
        epochs=epochs,
        learning_rate=learning_rate,
        max_length=max_length,
        recipe="run-glue",  # the paper's: all rows, and the last epoch
    )
    checkpoints = {name_model(str(other)): str(other).rstrip("/") for other in others}
    embeddings = {} if foreign is None else {name_model(str(foreign)): str(foreign).rstrip("/")}
    protocol = _make_protocol(options, checkpoints, embeddings, training, partial(_draw, options, sequences, tokens))
    numbers = range(options.seed, options.seed + (1 if options.quick else seeds))
    cases = _list_all_cases(protocol, shares, numbers)
    kinds = {model: model for model in options.names}
    kinds |= match_checkpoints(options.names, [name_model(str(other)) for other in others], protocol.load)
    cases |= {checkpoint: [Case(CHECKPOINT, math.nan, options.seed)] for checkpoint in checkpoints}
    read = partial(read_models, options.data_folder("latent_geometry"))
    experiments: dict[str, Callable[[], Results]] = {
        "published table 2": lambda: repeat_table_2(read()),
        "published noise": lambda: repeat_noise(read()),
        "published regressions": lambda: repeat_regressions(read()),
        "published correlations": lambda: repeat_correlations(read()),
        "sample": partial(_describe_samples, protocol),
        **list_experiments(protocol, cases, kinds, parse_settings(sweep or ()), initialisation=initialisation),
    }
    settings = {"levels": shares, "seeds": len(numbers), "foreign": next(iter(embeddings.values()), None)}
    settings |= {"quantizer": choose_engine()[1], "sequences": sequences, "tokens": tokens, "sweep": list(sweep or ())}
    settings |= {"initialisation": initialisation} | protocol.plan.settings()
    settings |= {"others": sorted(checkpoints.values())} if others else {}
    return run_study("latent-geometry", PAPER, experiments, options, settings, partial(_announce, protocol, cases))


def _make_protocol(
    options: StudyOptions,
    checkpoints: dict[str, str],
    embeddings: dict[str, str],
    training: Training,
    draw: Callable[[], SampledText],
) -> Protocol:
    """What the experiments share; models are loaded by their short names, and the last two are kept."""
    references = checkpoints | embeddings

    def load(name: str) -> Any:
        return load_pretrained(options.path(references.get(name, name)), device=options.device)

    plan = FineTuning.plan(options, training)
    return Protocol(options, cache(draw), lru_cache(maxsize=2)(load), references, next(iter(embeddings), None), plan)


def _list_all_cases(protocol: Protocol, levels: Sequence[float], seeds: Sequence[int]) -> dict[str, list[Case]]:
    """The cases of each model; raises an error where the foreign embeddings do not fit."""
    foreign, cases = protocol.foreign, {}
    for model in protocol.options.names:
        cases[model] = list_cases(levels, seeds, count_blocks(protocol.load(model)), foreign=foreign is not None)
    if foreign is not None:
        for model in protocol.options.names:
            check_widths(protocol.load(model), protocol.load(foreign))
    return cases


def _announce(protocol: Protocol, cases: dict[str, list[Case]]) -> None:
    """Say how long measuring and fine-tuning will take."""
    options, most = protocol.options, sum(map(len, cases.values())) / len(cases)
    options.announce(",".join(TABLE_2), most, sample=protocol.most_rows, layers="-1", text=protocol.sample().texts)
    times = {model: sum(map(protocol.scores, own)) for model, own in cases.items()}
    protocol.plan.announce(protocol.load, times)


def _draw(options: StudyOptions, unit: Unit | None, tokens: Tokens) -> SampledText:
    count = _QUICK_SEQUENCES if options.quick else SEQUENCES
    return sample_text(options.text, options.data_root, count=count, unit=unit, tokens=tokens, seed=options.seed)


def _describe_samples(protocol: Protocol) -> Results:
    """Fig. 2: how near ten samples are to the corpus."""
    sampled = protocol.sample()
    count = len(sampled.texts)
    rows = [{"words": s.words, "pairs": s.pairs, "lengths": s.lengths, "all": s.distance} for s in sampled.samples]
    title = f"Total variation distance of ten samples of {count:,} sequences to all of the text (Fig. 2)"
    curves = pd.DataFrame(sampled.curves)
    tables = [
        Table("sources", "The text of the sample, and its sequences of 3 to 50 tokens", pd.DataFrame(sampled.sources)),
        Table("sample", title, pd.DataFrame(rows)),
        Table(
            "curves", "Shares of words and pairs by rank, and of lengths; sample 0 is all of the text", curves, False
        ),
    ]
    words = sum(len(split_tokens(text, sampled.tokens)) for text in sampled.texts)
    text = (
        f"the sample has {count:,} {sampled.unit} with {words:,} tokens between their ends ({sampled.tokens}); the "
        f"paper has {SEQUENCES:,} lines of all splits of Penn Treebank and WikiText-2, of roughly 250,000 tokens, "
        "where 5,000 of at most 50 have at most 250,000; the authors' files are of 116,667."
    )
    return Results(tables, [Claim("note", text, "Section 3.2", float(words), 250_000.0)], [make_sample_figure(curves)])
