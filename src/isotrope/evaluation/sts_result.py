"""What an evaluation on sentence pairs found, as plain data: scores, differences, JSON and tables."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from isotrope.evaluation.differences import PointDifference
from isotrope.formats.json import format_json, to_plain

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class StsScore:
    """What one system scores on one set, in per cent; NaN with a reason where undefined.

    low, high: ends of the 95 % interval of `spearman`. n: pairs. fitted_on: the text of the repair, None for none.
    """

    set: str
    model: str
    repair: str
    layers: str
    pooling: str
    fitted_on: str | None
    spearman: float
    low: float
    high: float
    pearson: float
    pearson_low: float
    pearson_high: float
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class StsEvaluation:
    """All scores and differences of one evaluation, by one protocol. left_out: pairs by set and by reason."""

    protocol: str
    scores: list[StsScore]
    differences: list[PointDifference]
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """A tidy table of the "scores", or of the "differences"."""
        import pandas as pd

        kinds: dict[str, Any] = {"scores": StsScore, "differences": PointDifference}
        names = [f.name for f in fields(kinds[what])]
        frame: pd.DataFrame = pd.DataFrame([asdict(row) for row in getattr(self, what)], columns=names)
        frame.insert(0, "protocol", self.protocol)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is undefined is None, with its reason."""
        return {
            "protocol": self.protocol,
            "scores": [to_plain(asdict(score)) for score in self.scores],
            "differences": [to_plain(asdict(difference)) for difference in self.differences],
            "left_out": self.left_out,
            "provenance": self.provenance,
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())
