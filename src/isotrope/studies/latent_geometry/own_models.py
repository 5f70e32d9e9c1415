"""The experiments with changed models: each measured and scored, then compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import pandas as pd

from isotrope.studies.latent_geometry.cell_volumes import judge_volumes, summarize_volumes
from isotrope.studies.latent_geometry.changed_models import WEIGHTS, Case
from isotrope.studies.latent_geometry.initialisation import compare_initialisations
from isotrope.studies.latent_geometry.measures import KNOWN_SHIFT, QuantizedSpace, compute_measures, prepare_space
from isotrope.studies.latent_geometry.noise_results import compare_levels, compare_models
from isotrope.studies.latent_geometry.protocol import Protocol
from isotrope.studies.latent_geometry.sweep import compare_settings, measure_settings
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results, load_part

#: Numbers of codebooks and cells.
Settings = Sequence[tuple[int, int]]


def list_experiments(
    protocol: Protocol,
    cases: dict[str, list[Case]],
    kinds: dict[str, str],
    settings: Settings = (),
    *,
    initialisation: bool = False,
) -> dict[str, Callable[[], Results]]:
    """List the experiments with our own models.

    Args:
        protocol: what they share.
        cases: the changes of each model.
        kinds: the architecture of each model, in the regressions.
        settings: numbers of codebooks and cells to measure noisy models by besides.
        initialisation: whether to try initial weights that are chosen by geometry.
    """
    experiments: dict[str, Callable[[], Results]] = {}
    for model, own in cases.items():
        for case in own:
            experiments[f"{model} {case.name}"] = partial(_measure_case, protocol, model, case)
            if protocol.scores(case):
                experiments[f"{model} {case.name} glue"] = partial(_score_case, protocol, model, case)
        if model in protocol.options.names:
            experiments[f"{model} noise"] = partial(_compare_levels, protocol, model, own)
            noisy = [case for case in own if case.kind == WEIGHTS]
            if settings:
                experiments |= {
                    f"{model} {case.name} sweep": partial(_sweep_case, protocol, model, case, settings)
                    for case in noisy
                }
                experiments[f"{model} sweep"] = partial(_compare_settings, protocol, model, noisy)
            if initialisation:
                seeds = list(dict.fromkeys(case.seed for case in noisy))
                experiments[f"{model} initialisation"] = partial(compare_initialisations, protocol, model, seeds)
    if protocol.plan.names:
        experiments["own models"] = partial(_compare_models, protocol, cases, kinds)
    else:
        text = "no model was fine-tuned: there is no glue folder in the data, or no task was asked for."
        experiments["without scores"] = lambda: Results.note(text, "Table 2")
    return experiments


def _measure_case(protocol: Protocol, model: str, case: Case) -> Results:
    """One changed model: all measures of its last layer; of the unchanged model also the volumes of its cells."""
    options, title = protocol.options, "One changed model: its measures"
    row: dict[str, Any] = {"model": model} | asdict(case)
    twin = replace(case, seed=options.seed)
    if case.level == 0 and case != twin:  # without noise all seeds have one space
        frame = load_part(options.folder, f"{model} {twin.name}").tables[0].frame
        return Results([Table("measured", title, frame.assign(seed=case.seed))])
    rows = protocol.read_case(model, case)
    space = prepare_space(rows, seed=options.seed)
    row |= {"n": len(rows), "quantizer": space.quantizer} | compute_measures(space)
    results = Results([Table("measured", title, pd.DataFrame([row]))])
    return _add_volumes(results, model, space) if case.kind == WEIGHTS and case.level == 0 else results


def _add_volumes(results: Results, model: str, space: QuantizedSpace) -> Results:
    """Add the densities by volume of both quantizers, and what is known where the quantizer is not the paper's."""
    found = [summarize_volumes(space.statistics[kind]) for kind in ("additive", "product") if kind in space.statistics]
    claims = [judge_volumes(model, row) for row in found]
    if space.quantizer.startswith("isotrope"):
        claims.append(Claim("note", KNOWN_SHIFT, "Section 3.3.2", model=model))
    title = f"Densities of cells by their volumes, {model} without noise (Section 3.3.2)"
    return Results([*results.tables, Table("volumes", title, pd.DataFrame(found))], claims)


def _score_case(protocol: Protocol, model: str, case: Case) -> Results:
    """One changed model fine-tuned on each task."""
    name = f"{model} {case.name}"
    scores, reasons = protocol.score(name, protocol.change(model, case), case.seed)
    row: dict[str, Any] = {f"score_{task}": score for task, score in scores.items()}
    row["glue"] = sum(scores.values()) / len(scores)
    title = f"{name}: scores on GLUE tasks and their mean"
    return Results([Table("scores", title, pd.DataFrame([row]))], [Claim("note", why, "Fig. 1") for why in reasons])


def _sweep_case(protocol: Protocol, model: str, case: Case, settings: Settings) -> Results:
    rows = protocol.read_case(model, case)
    found = measure_settings(rows, settings, seed=protocol.options.seed)
    title = f"{model} {case.name}: quantized measures by codebooks and cells"
    return Results([Table("measured", title, pd.DataFrame(found))])


def _compare_settings(protocol: Protocol, model: str, cases: Sequence[Case]) -> Results:
    parts = []
    scored = protocol.join_cases(model, cases)
    for case, (_, row) in zip(cases, scored.iterrows(), strict=True):
        frame = load_part(protocol.options.folder, f"{model} {case.name} sweep").tables[0].frame
        frame = frame.assign(level=case.level, seed=case.seed)
        parts.append(frame.assign(glue=row.get("glue", math.nan)) if "glue" in scored else frame)
    return compare_settings(model, pd.concat(parts, ignore_index=True))


def _compare_levels(protocol: Protocol, model: str, cases: Sequence[Case]) -> Results:
    return compare_levels(model, protocol.join_cases(model, cases))


def _compare_models(protocol: Protocol, cases: dict[str, list[Case]], kinds: dict[str, str]) -> Results:
    models = [protocol.join_cases(m, own).assign(architecture=kinds[m]) for m, own in cases.items()]
    return compare_models(pd.concat(models, ignore_index=True))
