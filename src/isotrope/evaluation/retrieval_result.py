"""What an evaluation on a retrieval set found, as plain data: scores, differences, JSON and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from isotrope.evaluation.differences import PointDifference
from isotrope.formats.json import format_json, to_plain

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class RetrievalScore:
    """What one system scores on one set, in per cent.

    low, high: ends of the 95 % interval of `ndcg_at_10`. n: queries. fitted_on: the text of the repair, None for none.
    """

    set: str
    model: str
    repair: str
    layers: str
    pooling: str
    fitted_on: str | None
    ndcg_at_10: float
    low: float
    high: float
    recall_at_10: float
    recall_at_100: float
    mrr_at_10: float
    n: int


@dataclass(frozen=True)
class RetrievalEvaluation:
    """All scores and differences of one evaluation, and by repair and score those of each query, in the set's order.

    documents: how many were searched. notes: what to know of the set.
    """

    scores: list[RetrievalScore]
    differences: list[PointDifference]
    documents: int
    notes: Sequence[str] = ()
    queries: Sequence[str] = ()
    by_query: Mapping[str, Mapping[str, NDArray[np.float64]]] = field(default_factory=dict, repr=False)
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """A tidy table of the "scores", the "differences", or the scores of "queries" between 0 and 1."""
        import pandas as pd

        if what == "queries":
            parts = [
                pd.DataFrame({"query": list(self.queries), "repair": name, **scores})
                for name, scores in self.by_query.items()
            ]
            joined: pd.DataFrame = pd.concat(parts, ignore_index=True)
            return joined
        kinds: dict[str, Any] = {"scores": RetrievalScore, "differences": PointDifference}
        names = [f.name for f in fields(kinds[what])]
        frame: pd.DataFrame = pd.DataFrame([asdict(row) for row in getattr(self, what)], columns=names)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain data; what is undefined is None."""
        return {
            "scores": [to_plain(asdict(score)) for score in self.scores],
            "differences": [to_plain(asdict(difference)) for difference in self.differences],
            "documents": self.documents,
            "notes": list(self.notes),
            "provenance": self.provenance,
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())
