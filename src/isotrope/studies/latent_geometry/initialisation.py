"""Fresh weights whose scale gives the last layer the geometry of a trained model, as the conclusion suggests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrope.measures import get
from isotrope.sources.models.load import Loaded
from isotrope.studies.latent_geometry.changed_models import reset_weights
from isotrope.studies.latent_geometry.protocol import Protocol
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import find_blocks
from isotrope.studies.verdict import judge_interval, seeds_interval

#: The measures that are matched: both lie between 0 and 1, and neither needs a quantizer.
MATCHED = ("eee", "isoscore")

#: Factors of the initial weights that are tried.
SCALES = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)


def scale_weights(loaded: Loaded, scale: float) -> Loaded:
    """The model with the weight matrices of its blocks multiplied by a factor; norms and biases stay as they are."""
    import torch

    model = deepcopy(loaded.model)
    with torch.no_grad():
        for block in find_blocks(model)[1]:
            for weight in block.parameters():
                if weight.ndim > 1:
                    weight.mul_(scale)
    return replace(loaded, model=model, name=f"{loaded.name} times {scale:g}")


def measure_geometry(rows: NDArray[np.floating[Any]]) -> dict[str, float]:
    """The measures that are matched, of rows (n, d)."""
    return {name: get(name)(rows) for name in MATCHED}


def compute_distance(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """The mean absolute difference of the measures that are matched."""
    return float(np.mean([abs(one[name] - other[name]) for name in MATCHED]))


def search_scales(protocol: Protocol, model: str, seed: int) -> pd.DataFrame:
    """The geometry of the trained model and of fresh weights of each scale, with the distance to the trained one."""
    trained, fresh = protocol.load(model), reset_weights(protocol.load(model), seed)
    target = measure_geometry(protocol.read_rows(model, trained))
    rows: list[dict[str, Any]] = [{"weights": "trained", "scale": 1.0, "distance": 0.0} | target]
    for scale in SCALES:
        found = measure_geometry(protocol.read_rows(model, scale_weights(fresh, scale)))
        rows.append({"weights": "fresh", "scale": scale, "distance": compute_distance(found, target)} | found)
    frame: pd.DataFrame = pd.DataFrame(rows)
    return frame


def choose_scale(searched: pd.DataFrame) -> float:
    """The scale of fresh weights whose geometry is nearest to that of the trained model."""
    fresh = searched[searched["weights"] == "fresh"].dropna(subset=["distance"])
    return float(fresh.loc[fresh["distance"].idxmin(), "scale"])


def compare_initialisations(protocol: Protocol, model: str, seeds: Sequence[int]) -> Results:
    """Choose the scale by geometry, and fine-tune plain and scaled fresh weights over seeds.

    Args:
        protocol: what the experiments share.
        model: the short name of the model.
        seeds: of fresh weights and of training.
    """
    searched = search_scales(protocol, model, seeds[0])
    scale = choose_scale(searched)
    title = f"Geometry of the last layer of {model}, trained and with fresh weights of several scales"
    tables = [Table("scales", title, searched)]
    if not protocol.plan.names:
        text = f"the geometry of fresh weights of {model} is nearest to the trained one at scale {scale:g}; no score."
        return Results(tables, [Claim("note", text, "Conclusion", scale, model=model)])
    rows = []
    for seed in seeds:
        fresh = reset_weights(protocol.load(model), seed)
        for name, factor in (("plain", 1.0), ("by geometry", scale)):
            loaded = scale_weights(fresh, factor)
            scores, _ = protocol.score(f"{model} initialised {name} seed {seed}", loaded, seed)
            row: dict[str, Any] = {"initialisation": name, "scale": factor, "seed": seed} | scores
            rows.append(row | {"glue": sum(scores.values()) / len(scores)})
    scored = pd.DataFrame(rows)
    tables.append(Table("scores", f"Fine-tuning {model} from fresh weights, plain and chosen by geometry", scored))
    return Results(tables, [judge_initialisation(model, scored, scale)])


def judge_initialisation(model: str, scored: pd.DataFrame, scale: float) -> Claim:
    """Whether weights that are chosen by geometry learn better, over seeds; scored: a row for each run."""
    by = scored.pivot(index="seed", columns="initialisation", values="glue").astype(float)
    gains = (by["by geometry"] - by["plain"]).dropna()
    low, high = seeds_interval(gains)
    text = (
        f"fresh weights of {model} at scale {scale:g}, whose geometry is nearest to the trained model's, score "
        f"{100 * gains.mean():.1f} points more than plain ones after fine-tuning, over {len(gains)} seeds. The paper "
        "suggests that such weights may need less pre-training."
    )
    evidence = f"95 % interval {100 * low:.1f} to {100 * high:.1f} points" if len(gains) > 1 else "one seed"
    outcome = judge_interval(low, high)
    return Claim(outcome, text, "Conclusion", float(gains.mean()), evidence=evidence, model=model)
