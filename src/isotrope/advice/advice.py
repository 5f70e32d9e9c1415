"""Advice on a space: which layers, which token weights, which repair and how strongly, or none; and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isotrope.advice.geometry import Geometry
from isotrope.advice.trial import Trial
from isotrope.evaluation.significance import Comparison
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.input import Input
from isotrope.sources.text.token_weights import TokenWeights


@dataclass(frozen=True)
class Advice:
    """What to do with a space, and why.

    reading: what rows are to be read, with the layers, pooling and token weights that are advised. repair: fitted on
    such rows, or None. evidence: "yardstick" for a model and its text, "geometry" for vectors alone, which is weaker.
    reasons: sentences. geometry: of the rows as they are. rows: how many, or texts, it comes from. trials: all spaces
    that were tried.
    """

    reading: Input
    repair: LinearRepair | None
    evidence: str
    reasons: list[str]
    geometry: Geometry
    rows: int
    seed: int
    trials: list[Trial] = field(default_factory=list)

    @property
    def layers(self) -> str | None:
        """The layers whose average is advised, such as "1+30"; None for vectors."""
        return None if self.reading.vectors is not None else str(self.reading.layers)

    @property
    def pooling(self) -> str | None:
        """How tokens become a row; None for vectors."""
        return self.reading.pooling

    @property
    def token_weights(self) -> TokenWeights | None:
        """The weights that the pooling `mean` is to count tokens by, or None where all count alike."""
        weights = self.reading.token_weights
        return weights if isinstance(weights, TokenWeights) else None

    @property
    def words(self) -> str:
        """The advice in a few words."""
        what = "leave it alone" if self.repair is None else f"repair it by {_called(self.repair)}"
        if self.layers is None:
            return what
        where = f"the average of layers {self.layers}" if "+" in self.layers else f"layer {self.layers}"
        tokens = " with rare tokens counting more" if self.token_weights is not None else ""
        return f"{where}{tokens}: {what}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "advice": "none" if self.repair is None else self.repair.name,
            "words": self.words,
            "parameters": None if self.repair is None else self.repair.get_params(),
            "layers": self.layers,
            "pooling": self.pooling,
            "token_weights": None if self.token_weights is None else self.token_weights.describe(),
            "evidence": self.evidence,
            "reasons": self.reasons,
            "rows": self.rows,
            "seed": self.seed,
            "geometry": vars(self.geometry),
            "tried": [_trial(trial) for trial in self.trials],
        }


def _called(repair: LinearRepair) -> str:
    alpha = repair.get_params().get("alpha")
    return type(repair).__name__ if alpha is None else f"{type(repair).__name__} with alpha {alpha:.3f}"


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "layers": trial.layers,
        "tokens": "weighted" if trial.weighted else "alike",
        "helps": trial.helps,
        "least_gain": trial.least,
        "yardstick": _compared(trial.likeness),
        "halves": None if trial.finding is None else _compared(trial.finding),
        "geometry": vars(trial.geometry),
        "neighbours_kept": trial.kept,
    }


def _compared(found: Comparison) -> dict[str, Any]:
    scores = {name: {"value": s.value, "low": s.low, "high": s.high} for name, s in found.scores.items()}
    gain = found.differences["bent"]
    return {"scores": scores, "gain": {"value": gain.value, "low": gain.low, "high": gain.high, "p": gain.p}}
