"""Rows to look at: zero and non-finite ones, those far from the median length, and those that decide a verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.measures import get
from isotrope.statistics import Duplicates, KeptRows, Moments, Sample, Summary, prepare_rows
from isotrope.verdict.thresholds import FEWEST_ROWS, HANDFUL, HANDFUL_SHARE, QUANTITIES, name_space
from isotrope.verdict.thresholds import get as threshold

#: Rows of one kind that findings name, in all layers.
MOST_NAMED = 100

#: Rounding, relative to what is left, up to which rows can be taken out of sums of squares.
_ROUNDING = 1e-3

#: The text of token types, None where rows have none.
TokenNames = Callable[[NDArray[np.int64]], list[str] | None]


@dataclass
class UnusualRows:
    """Rows to look at in all layers of a run.

    rows: by kind (zero, nonfinite, extreme, duplicates) as plain data, those of the last layer first; of duplicates,
    the rows of the largest group of equal rows come first. counts: how many rows are zero, not finite, far shorter and
    far longer than the median, and how many repeat a row that comes before.
    """

    names: TokenNames
    rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=lambda: Counter(zero_rows=0, nonfinite_rows=0))

    def add(self, layer: Layer, summary: Summary, nulls: Mapping[str, float]) -> None:
        """Add the next layer, with all of its rows; nulls: null values of measures, where they are known."""
        self.counts.update(zero_rows=summary.moments.zero, nonfinite_rows=summary.moments.nonfinite)
        self._add_duplicates(layer, summary)
        lengths = summary.lengths
        if lengths is None:
            return
        for kind in ("zero", "nonfinite"):
            self._put(kind, _describe(getattr(lengths, kind), layer, self.names))
        median = lengths.median
        if math.isnan(median):
            return
        least, most = (threshold(word).value * median for word in ("far shorter", "far longer"))
        deciding, word_without = find_deciding_rows(summary, nulls)
        long = _describe(lengths.above(most), layer, self.names, median)
        for row in long[:deciding]:
            row["without"] = word_without
        self._put("extreme", long + _describe(lengths.below(least), layer, self.names, median))
        for kind, count in (("short_rows", lengths.count_below(least)), ("long_rows", lengths.count_above(most))):
            if count:
                self.counts[kind] += count

    def _add_duplicates(self, layer: Layer, summary: Summary) -> None:
        if summary.duplicates is None:
            return
        self.counts["duplicate_rows"] += summary.duplicates.repeated
        if summary.duplicates.level:
            self.counts["duplicate_rows_error"] += round(summary.duplicates.error)
        self._put("duplicates", _describe_duplicates(summary.duplicates, layer))

    def _put(self, kind: str, rows: list[dict[str, Any]]) -> None:
        if rows:
            self.rows[kind] = [*rows, *self.rows.get(kind, [])][:MOST_NAMED]


def _describe_duplicates(duplicates: Duplicates, layer: Layer) -> list[dict[str, Any]]:
    """The rows of groups of equal rows."""
    return [
        {"id": row, "layer": layer, "group": number, "size": group.size, "equal": True}
        for number, group in enumerate(duplicates.groups(MOST_NAMED))
        for row in group.ids
    ][:MOST_NAMED]


def find_deciding_rows(summary: Summary, nulls: Mapping[str, float]) -> tuple[int, str]:
    """How many of the longest rows decide the word for a space, and the word without them; 0 where none do."""
    moments, lengths = summary.moments, summary.lengths
    if lengths is None or moments.n < FEWEST_ROWS:
        return 0, ""
    few = max(1, min(HANDFUL, int(HANDFUL_SHARE * moments.n)))
    rows = lengths.above(threshold("far longer").value * lengths.median).take(slice(few))
    word = _word(moments, nulls)
    if not rows.n or _word_without(summary, rows, nulls) in (word, None):
        return 0, ""
    for count in range(1, rows.n + 1):
        without = _word_without(summary, rows.take(slice(count)), nulls)
        if without is not None and without != word:
            return count, without
    return 0, ""


def _word(moments: Moments, nulls: Mapping[str, float]) -> str:
    """The word of the table for rows, by what their moments tell."""
    values = {}
    for name, quantity in QUANTITIES.items():
        m, null = get(quantity.measure), nulls.get(quantity.measure, math.nan)
        if m.needs == "moments" and quantity.is_known(moments.n, moments.d, null):
            values[name] = quantity.scale(m(moments), null)
    return name_space(values)


def _word_without(summary: Summary, rows: KeptRows, nulls: Mapping[str, float]) -> str | None:
    """The word for all rows but these, None where it cannot be told."""
    moments, lengths = summary.moments, summary.lengths
    assert lengths is not None
    part = Moments.of(rows.to_usable_rows())
    left = (moments.n - part.n) * lengths.median**2
    if moments.resolution * part.energy <= _ROUNDING * left:
        return _word(moments.without(part), nulls)
    # The sums have lost the other rows in rounding; the sample still holds some of them one by one.
    others = None if summary.sample is None else _rows_without(summary.sample, rows)
    return None if others is None else _word(others, nulls)


def _rows_without(sample: Sample, rows: KeptRows) -> Moments | None:
    """The moments of the sampled rows that are not among some; None where too few are left."""
    known = sample.rows
    among = np.isin(known.sequence, rows.sequence)
    if known.position is not None:
        left_out = set(zip(rows.sequence.tolist(), rows.position.tolist(), strict=True))
        at = np.flatnonzero(among)
        pairs = zip(known.sequence[at].tolist(), known.position[at].tolist(), strict=True)
        among[at] = [pair in left_out for pair in pairs]
    if int((~among).sum()) < FEWEST_ROWS:
        return None
    return Moments.of(prepare_rows(np.asarray(sample.values[~among], np.float64), known.take(~among)))


def _describe(rows: KeptRows, layer: Layer, names: TokenNames, median: float | None = None) -> list[dict[str, Any]]:
    """Rows as plain data: id, layer, and where they are known position, token and length."""
    tokens = names(rows.token) if rows.n and (rows.token >= 0).all() else None
    found = []
    for i in range(rows.n):
        row: dict[str, Any] = {"id": int(rows.sequence[i]), "layer": layer}
        if rows.position[i] >= 0:
            row["position"] = int(rows.position[i])
        if tokens is not None:
            row["token"] = tokens[i]
        if median is not None:
            row |= {"length": float(rows.length[i]), "times_median": float(rows.length[i] / median)}
        found.append(row)
    return found
