"""Results of an evaluation of an index: scores of settings, differences between repairs, and the recommendation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from isotrope.evaluation.result import Evaluation, PointDifference
from isotrope.evaluation.treatments import RAW
from isotrope.search.index_settings import EXACT


@dataclass(frozen=True, slots=True)
class IndexScore:
    """What one setting keeps of exact search, and what it costs; NaN with a reason where it cannot be built.

    Attributes:
        repair: What was done to vectors and queries first, "none" for nothing.
        family: Such as "int8" or "hnsw".
        setting: The setting in words.
        recall: Share of the k nearest rows of exact search, on the same vectors, that the index finds.
        low, high: Ends of its 95 % interval over queries.
        recall_of_raw: The same against exact search on the vectors as they are, before the repair.
        ndcg_at_10: In per cent, NaN without judgements.
        bytes: Bytes in memory for each vector.
        rescoring_bytes: Bytes for each vector that rescoring reads besides, which may be on disk.
        queries_per_second: On one thread, one query at a time.
        speed: The same as a ratio to exact search in the same run.
        n: How many queries.
        reason: Why there is no value.
    """

    repair: str
    family: str
    setting: str
    recall: float
    low: float
    high: float
    recall_of_raw: float
    ndcg_at_10: float
    bytes: float
    rescoring_bytes: float
    queries_per_second: float
    speed: float
    n: int
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The cheapest setting that keeps the wanted recall; the fields are those of `IndexScore`."""

    repair: str
    setting: str
    recall: float
    low: float
    recall_of_raw: float
    bytes: float
    rescoring_bytes: float
    speed: float

    @property
    def words(self) -> str:
        """The recommendation in words, without a full stop."""
        disk = f" in memory and {self.rescoring_bytes:,.0f} on disk" if self.rescoring_bytes else ""
        words = (
            f"{self.setting}: {self.bytes:,.0f} bytes per vector{disk}, recall {self.recall:.3f} "
            f"(at least {self.low:.3f}), {self.speed:.1f} times the speed of exact search"
        )
        if self.repair == RAW:
            return words
        return f"{words}; it finds {self.recall_of_raw:.3f} of the neighbours that the vectors have without the repair"


def recommend(scores: Iterable[IndexScore], wanted: float) -> Recommendation | None:
    """Recommend the setting with the fewest bytes whose recall is surely as high as wanted.

    Among settings with the same bytes, one without a repair comes first, then the fastest, and of those that are
    equally fast to a tenth of the speed of exact search the one with the highest recall.

    Args:
        scores: The settings. Exact search is no candidate: it is what they are measured by.
        wanted: The recall that the lower end of the interval must reach.

    Returns:
        The setting, None where none reaches the recall.
    """
    good = [score for score in scores if score.family != EXACT and score.low >= wanted]
    if not good:
        return None
    best = min(good, key=lambda score: (score.bytes, score.repair != RAW, -round(score.speed, 1), -score.recall))
    return Recommendation(**{f.name: getattr(best, f.name) for f in fields(Recommendation)})


@dataclass(frozen=True)
class IndexEvaluation(Evaluation):
    """Scores of all settings, without and with each repair.

    Attributes:
        wanted: The wanted recall.
        k: How many neighbours.
        documents: How many vectors are in the index.
        scores: A row for each repair and setting.
        differences: What each repair changes, in points of recall and of nDCG@10, against no repair.
        recommendation: The cheapest setting of all, None where none reaches the wanted recall.
        by_repair: The cheapest setting after each repair.
        notes: What to know about vectors and queries.
        provenance: What is needed to repeat the run.
    """

    row_types: ClassVar[Mapping[str, type]] = {"scores": IndexScore, "differences": PointDifference}

    wanted: float
    k: int
    documents: int
    scores: list[IndexScore]
    differences: list[PointDifference]
    recommendation: Recommendation | None
    by_repair: dict[str, Recommendation | None]
    notes: Sequence[str] = ()
    provenance: dict[str, Any] = field(default_factory=dict)
