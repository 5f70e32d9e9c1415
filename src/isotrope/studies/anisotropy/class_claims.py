"""What Godey et al. 2023 say about the mean cosine in each class of models, Figures 1 to 4.

Each claim is about all trained models of its class in the study, and there is none for a class without a model. It is
decided by the 95 % intervals of the mean cosine, widened for the number of layers (Bonferroni), so that the highest
and the lowest layer of a model may be chosen after the fact.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from isotrope.studies.model_class import ModelClass, is_character_alone
from isotrope.studies.result import Claim
from isotrope.studies.verdict import (
    Outcome,
    depth_interval,
    judge_all,
    judge_interval,
    judge_most,
    widen_factor,
)

if TYPE_CHECKING:
    import pandas as pd

#: The mean cosine from which rows are called anisotropic: that of every layer of speech (Fig. 3).
ALIKE = 0.2


@dataclass(frozen=True)
class Extreme:
    """The highest or the lowest mean cosine over the layers of a model, with an interval for all layers together."""

    model: str
    layer: str
    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.model} {self.value:.3f} (layer {self.layer})"


def widen_intervals(frame: pd.DataFrame) -> pd.DataFrame:
    """Widen the intervals `low` to `high` of `mean_cosine` so that all rows hold at once (Bonferroni)."""
    factor = widen_factor(len(frame))
    value = frame["mean_cosine"]
    low, high = value - factor * (value - frame["low"]), value + factor * (frame["high"] - value)
    wide: pd.DataFrame = frame.assign(low=low, high=high)
    return wide


def find_extremes(frame: pd.DataFrame, end: Literal["highest", "lowest"]) -> list[Extreme]:
    """The highest or lowest layer of each model, with an interval of its value whichever layer it is.

    A layer without an interval may be higher or lower than all others: that end of the interval is then NaN.
    """
    wide, found = widen_intervals(frame), []
    for model, rows in wide.groupby("model", sort=False):
        value = rows["mean_cosine"].max() if end == "highest" else rows["mean_cosine"].min()
        layer = rows["layer"][rows["mean_cosine"] == value].iloc[0]
        if end == "highest":
            low, high = rows["low"].max(), rows["high"].max(skipna=False)
        else:
            low, high = rows["low"].min(skipna=False), rows["high"].min()
        found.append(Extreme(str(model), str(layer), float(value), float(low), float(high)))
    return found


def judge_classes(layers: pd.DataFrame) -> list[Claim]:
    """The claims of Figures 1 to 4 and Sections 3.1 and 3.2.

    Args:
        layers: a row for each layer of each model, with the columns model, class, family, trained, layer, mean_cosine,
            low and high.

    Returns:
        One claim for each statement about a class that the study has a trained model of, and a note on models that are
        not trained.
    """
    trained = layers[layers["trained"].astype(bool)]
    claims = [claim for judge in _CLAIMS for claim in judge(trained)]
    if fresh := list(dict.fromkeys(layers["model"][~layers["trained"].astype(bool)])):
        text = f"{', '.join(fresh)}: all norms have their initial weights, so that nothing was trained"
        claims.append(Claim("note", f"{text}; the paper's claims on layers are about trained models.", "Figs. 1 to 4"))
    return claims


def _select(layers: pd.DataFrame, model_class: ModelClass, families: Iterable[str] = ()) -> pd.DataFrame:
    """The layers of a class, or of some of its families."""
    rows: pd.DataFrame = layers[layers["class"] == model_class]
    if families:
        rows = rows[rows["family"].isin(list(families))]
    return rows


def _leave_out(layers: pd.DataFrame, families: Iterable[str]) -> pd.DataFrame:
    rest: pd.DataFrame = layers[~layers["family"].isin(list(families))]
    return rest


def _compare(
    rows: pd.DataFrame,
    end: Literal["highest", "lowest"],
    above: bool,
    combine: Callable[[Sequence[Outcome]], Outcome],
    what: str,
    where: str,
) -> list[Claim]:
    """Whether the extreme layers of models are above, or below, the border of anisotropy.

    Args:
        rows: the layers of the models.
        end: which layer of each model.
        above: whether it is to be above or below.
        combine: how the outcomes of models become one.
        what: what the paper says.
        where: in the paper.
    """
    if rows.empty:
        return []
    found = find_extremes(rows, end)
    outcomes = [
        judge_interval(one.low, one.high, border=ALIKE) if above else judge_interval(-one.high, -one.low, border=-ALIKE)
        for one in found
    ]
    count = f"{outcomes.count('agrees')} of {len(found)} models"
    names = "; ".join(map(str, found))
    side = "above" if above else "below"
    text = f"{rows['class'].iloc[0]}: the {end} mean cosine is {side} {ALIKE} in {count} ({names}); the paper: {what}."
    return [_make_claim(combine(outcomes), text, where, rows, found, len(rows), ALIKE)]


def _make_claim(
    outcome: Outcome,
    text: str,
    where: str,
    rows: pd.DataFrame,
    found: Sequence[Extreme],
    layers: int,
    published: float = math.nan,
) -> Claim:
    intervals = "; ".join(f"{one.model} {one.low:.3f} to {one.high:.3f}" for one in found)
    alone = found[0] if len(found) == 1 else None
    return Claim(
        outcome,
        text,
        where,
        alone.value if alone else math.nan,
        published,
        f"95 % intervals for {layers} layers together: {intervals}",
        alone.model if alone else "",
        str(rows["class"].iloc[0]),
    )


def _judge_subwords(layers: pd.DataFrame) -> list[Claim]:
    what = "token models are anisotropic in some layer"
    classes: tuple[ModelClass, ...] = ("subword", "encoder-decoder")
    return [
        claim
        for name in classes
        for claim in _compare(_select(layers, name), "highest", True, judge_most, what, "Fig. 1")
    ]


def _judge_characters(layers: pd.DataFrame) -> list[Claim]:
    """All are anisotropic in some layer; those of characters alone are more so."""
    rows = _select(layers, "character")
    claims = _compare(rows, "highest", True, judge_all, "all are anisotropic in at least one layer", "Fig. 2")
    alone = rows["model"].map(is_character_alone).astype(bool)
    if rows.empty or alone.all() or not alone.any():
        return claims
    found = find_extremes(rows, "highest")
    groups = [[one for one in found if is_character_alone(one.model) == kind] for kind in (True, False)]
    low, high = (_average_ends(groups, end) for end in ("low", "high"))
    means = [float(np.mean([one.value for one in group])) for group in groups]
    text = (
        f"character: the highest mean cosine is {means[0]:.3f} on average in models that read and predict characters "
        f"or bytes alone, and {means[1]:.3f} in the others; the paper: higher in those of characters alone."
    )
    claim = _make_claim(judge_interval(low, high), text, "Section 3.1", rows, found, len(rows))
    return [*claims, claim]


def _average_ends(groups: Sequence[Sequence[Extreme]], end: Literal["low", "high"]) -> float:
    """An end of the interval of the difference of two groups' means, from the intervals of all members."""
    other: Literal["low", "high"] = "high" if end == "low" else "low"
    first, second = ([getattr(one, e) for one in group] for group, e in zip(groups, (end, other), strict=True))
    return float(np.mean(first) - np.mean(second))


def _judge_decoders(layers: pd.DataFrame) -> list[Claim]:
    """Whether decoders of text are more anisotropic than their encoders."""
    rows = layers[layers["class"].isin(["encoder-decoder", "character"])]
    decodes = rows["layer"].astype(str).str.startswith("decoder")
    rows = rows[rows["model"].isin(set(rows["model"][decodes]))].assign(**{"class": "encoder-decoder"})
    if rows.empty:
        return []
    decoder, encoder = (
        find_extremes(rows[rows["layer"].astype(str).str.startswith(side)], "highest")
        for side in ("decoder", "encoder")
    )
    ends = [(d.low - e.high, d.high - e.low) for d, e in zip(decoder, encoder, strict=True)]
    pairs = "; ".join(f"{d}, {e.value:.3f} (layer {e.layer})" for d, e in zip(decoder, encoder, strict=True))
    text = (
        "encoder-decoder: the highest mean cosine of the decoder and of the encoder of the same model: "
        f"{pairs}; the paper: the decoders of T5 and ByT5 are extremely anisotropic (here: more than their encoders)."
    )
    outcome = judge_all([judge_interval(low, high) for low, high in ends])
    return [_make_claim(outcome, text, "Section 3.1", rows, [*decoder, *encoder], len(rows))]


def _judge_speech(layers: pd.DataFrame) -> list[Claim]:
    what = "at least 0.2 in every layer of every model"
    return _compare(_select(layers, "speech"), "lowest", True, judge_all, what, "Fig. 3")


def _judge_vision(layers: pd.DataFrame) -> list[Claim]:
    """MiT and ViT are isotropic, the other vision transformers anisotropic in some layer."""
    claims = []
    for family, name in (("segformer", "MiT uses isotropic representations only"), ("vit", "ViT is low in all layers")):
        rows = _select(layers, "vision transformer", [family])
        claims += _compare(rows, "highest", False, judge_all, name, "Fig. 3")
    rows = _leave_out(_select(layers, "vision transformer"), ["segformer", "vit"])
    what = "almost every model is anisotropic in some layer, but for MiT and ViT"
    return claims + _compare(rows, "highest", True, judge_most, what, "Fig. 3")


def _judge_convolutions(layers: pd.DataFrame) -> list[Claim]:
    """Convolutions are isotropic, but for ResNet, which becomes more isotropic with depth."""
    rows = _select(layers, "convolution")
    claims = _compare(
        _leave_out(rows, ["resnet"]), "highest", False, judge_most, "most convolutions are isotropic", "Fig. 4"
    )
    what = "ResNet is the exception, anisotropic in some layer"
    resnets = _select(rows, "convolution", ["resnet"])
    claims += _compare(resnets, "highest", True, judge_all, what, "Fig. 4")
    for model, of_model in resnets.groupby("model", sort=False):
        cosines = of_model["mean_cosine"].tolist()
        low, high = depth_interval(cosines, of_model["low"].tolist(), of_model["high"].tolist())
        text = (
            f"{model}: the mean cosine goes from {cosines[0]:.3f} in the first layer to {cosines[-1]:.3f} in the last; "
            "the paper: ResNet becomes more isotropic with depth."
        )
        evidence = f"95 % interval of the rank correlation with depth {low:.2f} to {high:.2f}"
        outcome = judge_interval(-high, -low)
        claims.append(Claim(outcome, text, "Fig. 4", evidence=evidence, model=str(model), model_class="convolution"))
    return claims


_CLAIMS = (_judge_subwords, _judge_characters, _judge_decoders, _judge_speech, _judge_vision, _judge_convolutions)
