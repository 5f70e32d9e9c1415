"""Whether cosine, inner product and Euclidean distance find the same rows."""

from __future__ import annotations

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.measures.search_neighbours import DISTINCT, SHARED, describe_directions
from isotrope.statistics import Points
from isotrope.statistics.metric_overlaps import ASKING, PAIRS
from isotrope.statistics.neighbourhoods import K

_METRICS = {"cosine": "cosine", "inner": "inner product", "euclidean": "Euclidean distance"}


def _note(p: Points) -> str:
    asking = len(p.metric_overlaps)
    some = f"; {asking:,} rows ask" if asking < p.unit.distinct.n else ""
    return f"{describe_directions(p)}{some}"


def _compute_agreement(p: Points, pair: int) -> float:
    """Mean share of the k nearest that two metrics have in common."""
    if p.unit.distinct.n <= K + 1:
        raise Undefined(f"needs more than {K + 1} rows that point in different directions, found {p.unit.distinct.n}")
    return float(p.metric_overlaps[:, pair].mean())


def _add_measure(number: int, pair: str) -> None:
    """Register the agreement of one pair of metrics."""
    one, other = (_METRICS[name] for name in pair.split("_"))

    def compute(p: Points) -> float:
        """Mean share of the nearest rows that two metrics have in common."""
        return _compute_agreement(p, number)

    measure(
        "sample",
        name=f"metric_agreement_{pair}",
        title=f"Metric agreement, {one} and {other}",
        says=f"Share of the ten nearest rows that {one} and {other} have in common: 1 the metric does not matter.",
        better="higher",
        formula=(
            f"mean over rows of |A ∩ B|/k, A and B the k = 10 nearest by {one} and by {other}; rows with different "
            f"directions; at most {ASKING:,} rows ask, all answer"
        ),
        paper="top-k overlap, as metric_mismatch of vecscope 0.2",
        blind=f"Which metric the model was trained for. Its interval is about the value at this n. {DISTINCT}",
        **SHARED | {"note": _note},
    )(compute)


for _number, _pair in enumerate(PAIRS):
    _add_measure(_number, _pair)
