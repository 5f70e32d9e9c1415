"""What a repair does to every measure, before it is applied."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, Undefined
from isotrope.formats.json import to_plain
from isotrope.measures import Measure, get, select
from isotrope.readings.intervals import JackknifeGroups
from isotrope.readings.layer_readings import find_statistic
from isotrope.repairs import Affine, Repair
from isotrope.repairs.fit_data import check_one_layer
from isotrope.sources.source import Source
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Image, Moments, MomentsAndSample, Sample, Summary, Wanted
from isotrope.statistics.cutoff_transfer import CUTOFFS, Cutoff, translate

if TYPE_CHECKING:
    import pandas as pd

#: Rows that are repaired for what cannot be had from moments.
SAMPLE = 5_000

_NEEDS_ROWS = "needs each row's new length: give rows to try it on"


@dataclass(frozen=True, slots=True)
class MeasureChange:
    """One measure before and after a repair.

    by: "moments" where both are exact, by the mean and covariance of all n rows and the map; "sample" where n
    sampled rows were repaired. better: which way is healthier, None where neither is. reason: why a value is NaN.
    """

    measure: str
    before: float
    after: float
    by: Literal["moments", "sample"]
    n: int
    variant: str = "definition"
    better: str | None = None
    reason: str | None = None


@dataclass(frozen=True)
class BeforeAfter:
    """What a repair does: each measure before and after, and what old cosine cut-offs become.

    rows: whose moments were taken. sampled: repaired row by row. seed: of the sample and of the pairs.
    """

    changes: list[MeasureChange]
    cutoffs: list[Cutoff]
    rows: int
    sampled: int
    seed: int

    def get(self, measure: str, variant: str = "definition") -> MeasureChange:
        """One line of the table."""
        for change in self.changes:
            if (change.measure, change.variant) == (measure, variant):
                return change
        raise InputError(f"there is no line of {measure!r} ({variant}) in this table.")

    def to_frame(self) -> pd.DataFrame:
        """The table: measure, before, after, by, n, variant, better, reason."""
        import pandas as pd

        frame: pd.DataFrame = pd.DataFrame([asdict(change) for change in self.changes])
        return frame

    def to_dict(self) -> dict[str, Any]:
        """Plain data without NaN."""
        return {
            "rows": self.rows,
            "sampled": self.sampled,
            "seed": self.seed,
            "measures": to_plain(self.changes),
            "cutoffs": to_plain(self.cutoffs),
        }


def before_after(
    repair: Repair,
    X: Any = None,
    measures: str | list[str] | None = None,
    *,
    sample: int = SAMPLE,
    seed: int = 0,
    cutoffs: Sequence[float] = CUTOFFS,
    progress: Callable[[str, float, float | None], None] = lambda what, done, total: None,
) -> BeforeAfter:
    """Every measure before and after a fitted repair, and what old cosine cut-offs become.

    What follows from mean and covariance goes through the map exactly, whatever the number of rows; what needs each
    row's new length is taken on sampled rows and their images.

    Args:
        repair: a fitted repair.
        X: rows (n, d), files, or a source of one layer, read once; or the summary that a scan has left of one. Without,
            the rows that a linear repair was fitted on, of which only the moments are known.
        measures: groups or names; by default all that such rows have, and `lsds`.
        cutoffs: cosines whose counterparts after the repair are wanted.
        sample: rows that are sampled.
        seed: of the sample and of the pairs.
        progress: called with how many measures are done.

    Examples:
        >>> from isotrope import Centering
        >>> rows = np.random.default_rng(0).normal(size=(500, 4)) + 1.0
        >>> table = before_after(Centering().fit(rows), rows, "drift_share,mean_cosine")
        >>> [(c.measure, round(c.before, 2), abs(round(c.after, 2)), c.by) for c in table.changes]
        [('drift_share', 0.49, 0.0, 'moments'), ('mean_cosine', 0.49, 0.0, 'sample')]
    """
    affine = repair.map_ if isinstance(repair.map_, Affine) else None
    if X is None:
        return _compare_without_rows(repair, affine, measures, seed)
    moments, taken = _read(X, repair, sample, seed)
    rows = taken.to_usable_rows()
    with np.errstate(over="ignore", invalid="ignore"):  # rows that become too large are left out
        image = repair.map_(rows.values.astype(np.float64, copy=False))
    spaces = [_MeasuredRows.of(values, taken, seed) for values in (rows.values, image)]
    pair = Image.of(rows.values, image)
    exact = None if affine is None else (moments, _WithoutLengths(**vars(affine.push(moments))))
    changes, chosen = [], _select_measures(measures, spaces[0])
    for done, m in enumerate(chosen):
        progress("measuring before and after", done, len(chosen))
        if m.needs == "image":
            changes += _compare_images(m, Image(pair.rows, pair.rows), pair)
        else:
            found = _compare_moments(m, *exact) if exact is not None and m.needs == "moments" else None
            changes.append(found or _compare_samples(m, *spaces))
    return BeforeAfter(changes, translate(pair, cutoffs, seed=seed), moments.n, taken.n, seed)


def _compare_without_rows(repair: Repair, affine: Affine | None, measures: Any, seed: int) -> BeforeAfter:
    """What the moments alone tell, of a repair that goes by them."""
    moments: Moments | None = getattr(repair, "moments_", None)
    if affine is None or moments is None:
        raise InputError(
            f"what {repair.name} does is not one affine map here, so that moments do not tell it; "
            "give rows to try it on."
        )
    pushed = _WithoutLengths(**vars(affine.push(moments)))
    changes = []
    for m in select("moments" if measures is None else measures):
        if m.needs == "moments":
            found = _compare_moments(m, moments, pushed)
            before = _compute_value(m, moments)[0]
            changes.append(found or _compare(m, (before, None), (math.nan, _NEEDS_ROWS), "moments", moments.n))
        elif measures is not None:
            raise InputError(f"{m.name} cannot be taken from moments; give rows to try the repair on.")
    return BeforeAfter(changes, [], moments.n, 0, seed)


class _NeedsLengths(Exception):
    """A measure asks for what moments through a map do not have."""


class _WithoutLengths(Moments):
    """Moments through a map: asked for those of unit rows or of lengths, which are NaN, they refuse."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("unit_mean", "unit_scatter", "norms"):
            raise _NeedsLengths
        return super().__getattribute__(name)


@dataclass(frozen=True)
class _MeasuredRows:
    """The statistics of sampled rows."""

    summary: Summary
    groups: JackknifeGroups
    seed: int
    _found: dict[tuple[Any, ...], tuple[Any, str | None]] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: NDArray[Any], like: Sample, seed: int) -> _MeasuredRows:
        """Of rows (n, d) of which as much is known as of those of a sample."""
        wanted = Wanted(tokens=True, sequences=True, sample=max(like.size, len(rows)), seed=like.seed)
        summary = wanted.empty(rows.shape[1], like.rows)
        summary.update(rows, like.rows)
        assert summary.sample is not None
        return cls(summary, JackknifeGroups(summary.sample, ()), seed)

    def compute_value(self, m: Measure) -> tuple[float, str | None]:
        """The value of a measure, or NaN with the reason."""
        if m.statistic not in self._found:  # cells take long, and serve eight measures
            self._found[m.statistic] = find_statistic(m.statistic, self.summary, self.groups, self.seed)
        statistic, missing = self._found[m.statistic]
        return (math.nan, missing) if statistic is None else _compute_value(m, statistic)


def _read(X: Any, repair: Repair, size: int, seed: int) -> tuple[Moments, Sample]:
    """Moments of all rows and a sample of them, in one pass, or from what a scan has left."""
    width = repair.n_features_in_
    if isinstance(X, Summary):
        if X.sample is None:
            raise InputError("the scan kept no sample of its rows (--sample 0); give the rows.")
        repair.check_width(X.sample.d)
        sample = Sample.empty(width, size, seed)
        sample.add(X.sample.to_usable_rows())
        return X.moments, sample
    source: Source = X if isinstance(X, Source) else ArraySource(X, exact=True)
    check_one_layer(source)
    repair.check_width(source.width)
    found = source.reduce(MomentsAndSample.empty_for(width, size, seed))
    if (n := found.moments.n) < 2:
        raise InputError(f"{'one row' if n else 'no row'} has no geometry; give at least two to try it on.")
    return found.moments, found.sample


def _select_measures(measures: str | list[str] | None, space: _MeasuredRows) -> list[Measure]:
    """The measures named, or all that such rows have; those of several layers say nothing of one."""
    if measures is not None:
        return [m for m in select(measures) if m.needs != "layers"]
    there = {"moments", "sample", "cells", *space.summary.parts()} | ({"spectra"} if space.summary.sequences else set())
    return [m for m in [*select("all"), get("lsds")] if m.needs in there | {"image"}]


def _compare_moments(m: Measure, before: Moments, after: Moments) -> MeasureChange | None:
    """A measure of moments through the map; None where it needs each row's new length."""
    try:
        return _compare(m, _compute_value(m, before), _compute_value(m, after), "moments", before.n)
    except _NeedsLengths:
        return None


def _compare_samples(m: Measure, before: _MeasuredRows, after: _MeasuredRows) -> MeasureChange:
    return _compare(m, before.compute_value(m), after.compute_value(m), "sample", before.groups.sample.n)


def _compare_images(m: Measure, before: Image, after: Image) -> list[MeasureChange]:
    """A measure of rows and their image, in all of its variants; before: of rows that stay as they are."""
    return [
        _compare(m, _compute_value(m, before, v), _compute_value(m, after, v), "sample", after.rows.n, v)
        for v in ("definition", *m.variants)
    ]


def _compute_value(m: Measure, of: Any, variant: str = "definition") -> tuple[float, str | None]:
    """The value of a measure, or NaN with the reason."""
    try:
        return m.value(of, variant=variant), None
    except Undefined as error:
        return math.nan, str(error)


def _compare(
    m: Measure,
    before: tuple[float, str | None],
    after: tuple[float, str | None],
    by: Literal["moments", "sample"],
    n: int,
    variant: str = "definition",
) -> MeasureChange:
    """A line of the table, of two values with their reasons."""
    return MeasureChange(m.name, before[0], after[0], by, n, variant, m.better, before[1] or after[1])
