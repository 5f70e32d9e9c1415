"""One space tried as it is and bent: the yardstick, the halves and the geometry, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from isotrope.advice.geometry import Geometry, geometry
from isotrope.advice.neighbours import kept
from isotrope.advice.passage_halves import cosines, found
from isotrope.advice.scale_free_softdecay import bend
from isotrope.advice.yardstick import Yardstick
from isotrope.evaluation.metrics import Correlation, Mean
from isotrope.evaluation.significance import Comparison, Difference, compare
from isotrope.repairs.fit_data import collect
from isotrope.sources.text.encoder import Rows

#: By how much the yardstick must gain, where the rows are collapsed or in few directions, and where they are neither.
#: Of the spaces that were tried (docs/validation.md), such ones gain 0.04 and more by a repair that helps; others gain
#: 0.046 and more by one that helps, and 0.04 at most by one that does not.
GAIN_OF_REPAIRABLE, GAIN = 0.015, 0.04

#: Share of everyday sentences among the rows that a repair is fitted on.
EVERYDAY = 0.4


@dataclass(frozen=True)
class Material:
    """Texts of a trial: to fit on, passages cut in two that are not among them, and the yardstick."""

    fitted: Sequence[str]
    halves: Sequence[tuple[str, str]]
    yardstick: Yardstick

    @property
    def texts(self) -> list[str]:
        """All of them, to be encoded."""
        pairs = [text for pair in self.yardstick.pairs for text in (pair.first, pair.second)]
        return [*self.fitted, *self.yardstick.sentences, *pairs, *(text for pair in self.halves for text in pair)]


@dataclass(frozen=True)
class Trial:
    """What was seen in one space, its rows as they are ("none") and bent ("bent").

    layers: the average of these. weighted: whether frequent tokens count less. likeness: agreement with that of the
    yardstick's pairs. finding: one over the rank of the other half. geometry: of the texts' rows as they are. kept:
    share of their nearest neighbours that the repair keeps.
    """

    layers: str
    weighted: bool
    likeness: Comparison
    finding: Comparison | None
    geometry: Geometry
    kept: float

    @property
    def gain(self) -> Difference:
        """What bending changes on the yardstick."""
        return self.likeness.differences["bent"]

    @property
    def least(self) -> float:
        """The gain that it takes."""
        return GAIN_OF_REPAIRABLE if self.geometry.repairable else GAIN

    @property
    def helps(self) -> bool:
        """Whether bending is a gain that is real, large enough to matter, and not of a healthy space."""
        return self.gain.value >= self.least and self.gain.low > 0 and not self.geometry.healthy

    @property
    def bent(self) -> float:
        """The yardstick's correlation after bending."""
        return self.likeness.scores["bent"].value


def try_space(
    layers: str, rows_of: Callable[[Sequence[str]], Rows], material: Material, *, weighted: bool = False, seed: int = 0
) -> Trial:
    """Try one space. rows_of: its rows for texts, (n, d)."""
    rows = rows_of(material.fitted)
    repair = bend(with_everyday(rows, rows_of(material.yardstick.sentences)))
    pairs = material.yardstick.pairs
    firsts, seconds = rows_of([pair.first for pair in pairs]), rows_of([pair.second for pair in pairs])
    gold = [pair.likeness for pair in pairs]
    done: dict[str, Callable[[Rows], Rows]] = {"none": np.asarray, "bent": repair.transform}
    likeness = {name: Correlation(cosines(do(firsts), do(seconds)), gold) for name, do in done.items()}
    finding = None
    if material.halves:
        lefts, rights = (rows_of([pair[side] for pair in material.halves]) for side in (0, 1))
        ranks = {name: Mean(found(do(lefts), do(rights))) for name, do in done.items()}
        finding = compare(ranks, seed=seed, items="halves", resamples=500, swaps=999)
    return Trial(
        layers,
        weighted,
        compare(likeness, seed=seed, items="yardstick", resamples=500, swaps=999),
        finding,
        geometry(collect(rows).moments),
        kept(rows, repair.transform(rows)),
    )


def with_everyday(rows: Rows, everyday: Rows) -> Rows:
    """Rows of a text and of everyday sentences, the fewer ones repeated to their share, (n, d) and (m, d) -> (k, d).

    A repair that knows only one kind of text magnifies what that text never does: fitted on an encyclopedia alone,
    MiniLM's third layer lost 9 points of STS; with everyday sentences it gained 5. And a text of fewer rows than
    dimensions says nothing about most directions, everyday sentences do.

    >>> with_everyday(np.zeros((1, 1)), np.ones((6, 1))).sum(), with_everyday(np.zeros((6, 1)), np.ones((1, 1))).sum()
    (np.float64(6.0), np.float64(4.0))
    """
    own, others = round(len(everyday) * (1 - EVERYDAY) / EVERYDAY), round(len(rows) * EVERYDAY / (1 - EVERYDAY))
    width = rows.shape[1:]
    if len(rows) < own:
        return np.concatenate([np.resize(rows, (own, *width)), everyday])
    return np.concatenate([rows, np.resize(everyday, (others, *width))])
