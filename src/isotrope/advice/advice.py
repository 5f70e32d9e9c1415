"""Advice on a space as plain data: layers, token weights and repair, and the reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from isotrope.advice.candidate import REPAIRED, Candidate
from isotrope.advice.geometry import Geometry
from isotrope.evaluation.significance import PairedComparison
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.input import Input
from isotrope.sources.text.token_weights import TokenWeights


@dataclass(frozen=True)
class Advice:
    """What to do with a space, and why.

    Attributes:
        reading: What to read, with the advised layers, pooling and token weights.
        repair: The advised repair, fitted on these rows, or None.
        evidence: "yardstick" for a model and its text; "geometry" for vectors alone, which is weaker evidence.
        reasons: Sentences that explain the advice.
        geometry: Geometry of the rows before a repair.
        rows: Number of rows or texts that the advice is based on.
        seed: Seed of the trials.
        trials: All candidate spaces.
    """

    reading: Input
    repair: LinearRepair | None
    evidence: str
    reasons: list[str]
    geometry: Geometry
    rows: int
    seed: int
    trials: list[Candidate] = field(default_factory=list)

    @property
    def layers(self) -> str | None:
        """The advised layers, which are averaged, such as "1+30"; None for vectors."""
        return None if self.reading.vectors is not None else str(self.reading.layers)

    @property
    def pooling(self) -> str | None:
        """How tokens become a row; None for vectors."""
        return self.reading.pooling

    @property
    def token_weights(self) -> TokenWeights | None:
        """The advised weights of tokens for the pooling `mean`; None for equal weights."""
        weights = self.reading.token_weights
        return weights if isinstance(weights, TokenWeights) else None

    @property
    def words(self) -> str:
        """The advice in a few words."""
        what = "leave it alone" if self.repair is None else f"repair it by {_format_repair(self.repair)}"
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
            "tried": [_describe_candidate(candidate) for candidate in self.trials],
        }


def _format_repair(repair: LinearRepair) -> str:
    alpha = repair.get_params().get("alpha")
    return type(repair).__name__ if alpha is None else f"{type(repair).__name__} with alpha {alpha:.3f}"


def _describe_candidate(candidate: Candidate) -> dict[str, Any]:
    return {
        "layers": candidate.layers,
        "tokens": "weighted" if candidate.weighted else "alike",
        "helps": candidate.helps,
        "least_gain": candidate.required_gain,
        "yardstick": _describe_comparison(candidate.similarity),
        "halves": None if candidate.halves is None else _describe_comparison(candidate.halves),
        "geometry": vars(candidate.geometry),
        "neighbours_kept": candidate.neighbours_kept,
    }


def _describe_comparison(found: PairedComparison) -> dict[str, Any]:
    scores = {name: {"value": s.value, "low": s.low, "high": s.high} for name, s in found.scores.items()}
    gain = found.differences[REPAIRED]
    return {"scores": scores, "gain": {"value": gain.value, "low": gain.low, "high": gain.high, "p": gain.p}}
