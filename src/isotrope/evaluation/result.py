"""Results of evaluations as plain data: scores, differences, JSON documents and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar

from isotrope.evaluation.significance import PairedComparison, correct_p_values
from isotrope.formats.json import format_json, to_plain

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

#: Marks a field that is not part of the JSON document.
NOT_IN_JSON = {"json": False}


@dataclass(frozen=True)
class Evaluation:
    """Base of the results of all evaluations: their fields as JSON, their scores and differences as tables."""

    #: The type of the rows of each table, by the name of the field that holds them.
    row_types: ClassVar[Mapping[str, type]] = {}

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """Table of the "scores" or of the "differences"."""
        import pandas as pd

        names = [f.name for f in fields(self.row_types[what])]
        frame: pd.DataFrame = pd.DataFrame([asdict(row) for row in getattr(self, what)], columns=names)
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain data; undefined values are None."""
        shown = [f.name for f in fields(self) if f.metadata.get("json", True)]
        return {name: to_plain(getattr(self, name)) for name in shown}

    def to_json(self) -> str:
        """The plain data as one JSON document."""
        return format_json(self.to_dict())


@dataclass(frozen=True, slots=True)
class PointDifference:
    """Score of a repair minus the score of another, in points (per cent), with its 95 % interval and p-values.

    against: the other repair, "none" for no repair. p_corrected: Holm's correction for all differences of the
    evaluation. significant: whether p_corrected is below 0.05.
    """

    set: str
    metric: str
    repair: str
    against: str
    difference: float
    low: float
    high: float
    p: float
    p_corrected: float
    significant: bool
    n: int
    reason: str | None = None


def list_differences(found: Mapping[str, Mapping[str, Mapping[str, PairedComparison]]]) -> list[PointDifference]:
    """List all differences of an evaluation in points, with p-values corrected for their number.

    Args:
        found: comparisons by baseline, by set and by metric.
    """
    labels, values = [], []
    for against, by_set in found.items():
        for name, by_metric in by_set.items():
            for metric, comparison in by_metric.items():
                for repair, difference in comparison.differences.items():
                    labels.append((name, metric, repair, against))
                    values.append(difference)
    return [
        PointDifference(
            *label, 100 * d.value, 100 * d.low, 100 * d.high, d.p, d.corrected, d.significant, d.n, d.reason
        )
        for label, d in zip(labels, correct_p_values(values), strict=True)
    ]


@dataclass(frozen=True, slots=True)
class SystemScore:
    """The system that a score is of.

    model: the model, or the file of the documents' vectors. layers, pooling: None for vectors. fitted_on: the name of
    the text that the repair was fitted on, None for none.
    """

    set: str
    model: str
    repair: str
    layers: str | None
    pooling: str | None
    fitted_on: str | None


@dataclass(frozen=True, slots=True)
class StsScore(SystemScore):
    """Scores of one system on one set of sentence pairs, in per cent; NaN with a reason where undefined.

    low, high: ends of the 95 % interval of `spearman`. n: number of pairs.
    """

    spearman: float
    low: float
    high: float
    pearson: float
    pearson_low: float
    pearson_high: float
    n: int
    reason: str | None = None


@dataclass(frozen=True)
class StsEvaluation(Evaluation):
    """Scores and differences on sets of sentence pairs. left_out: number of pairs left out, by set and by reason."""

    row_types: ClassVar[Mapping[str, type]] = {"scores": StsScore, "differences": PointDifference}

    protocol: str
    scores: list[StsScore]
    differences: list[PointDifference]
    left_out: dict[str, dict[str, int]] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """Table of the "scores" or of the "differences", with a column for the protocol."""
        frame = Evaluation.to_frame(self, what)
        frame.insert(0, "protocol", self.protocol)
        return frame


@dataclass(frozen=True, slots=True)
class RetrievalScore(SystemScore):
    """Scores of one system on one retrieval set, in per cent.

    low, high: ends of the 95 % interval of `ndcg_at_10`. n: number of queries.
    """

    ndcg_at_10: float
    low: float
    high: float
    recall_at_10: float
    recall_at_100: float
    mrr_at_10: float
    n: int


@dataclass(frozen=True)
class RetrievalEvaluation(Evaluation):
    """Scores and differences on a retrieval set.

    documents: how many were searched. notes: what to know about the set. queries: ids. by_query: by repair and metric
    the scores of each query between 0 and 1.
    """

    row_types: ClassVar[Mapping[str, type]] = {"scores": RetrievalScore, "differences": PointDifference}

    scores: list[RetrievalScore]
    differences: list[PointDifference]
    documents: int
    notes: Sequence[str] = ()
    queries: Sequence[str] = field(default=(), metadata=NOT_IN_JSON)
    by_query: Mapping[str, Mapping[str, NDArray[np.float64]]] = field(
        default_factory=dict, repr=False, metadata=NOT_IN_JSON
    )
    provenance: dict[str, Any] = field(default_factory=dict)

    def to_frame(self, what: str = "scores") -> pd.DataFrame:
        """Table of the "scores", of the "differences", or of the scores of the "queries" between 0 and 1."""
        if what != "queries":
            return Evaluation.to_frame(self, what)
        import pandas as pd

        parts = [
            pd.DataFrame({"query": list(self.queries), "repair": name, **scores})
            for name, scores in self.by_query.items()
        ]
        frame: pd.DataFrame = pd.concat(parts, ignore_index=True)
        return frame
