"""One space tried as it is and bent: the yardstick, the halves and the geometry, and what they say together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from isotrope.evaluation.bending import FIRM, GENTLE, bend
from isotrope.evaluation.encoding import Rows
from isotrope.evaluation.everyday import Yardstick
from isotrope.evaluation.geometry import Geometry, geometry
from isotrope.evaluation.halves import cosines, found
from isotrope.evaluation.metrics import Correlation, Mean
from isotrope.evaluation.neighbourhoods import kept
from isotrope.evaluation.significance import Compared, compare
from isotrope.repairs.collecting import collect

#: By how much the yardstick must gain: spaces that gained 3 points or more of STS gained 0.034 or more here, spaces
#: that gained less than 1 gained 0.025 at most (docs/validation.md).
GAIN = 0.03

#: Share of everyday sentences among the rows that a repair is fitted on.
EVERYDAY = 0.3


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
    """What was seen in one space, as it is ("none") and bent gently and firmly.

    likeness: agreement with that of the yardstick's pairs. finding: one over the rank of the other half. geometry: of
    the texts' rows as they are. kept: share of their nearest neighbours that a firm repair keeps.
    """

    layers: str
    likeness: Compared
    finding: Compared | None
    geometry: Geometry
    kept: float

    @property
    def helps(self) -> bool:
        """Whether bending is a gain that is real, large enough to matter, and not of a healthy space."""
        best = max((self.likeness.differences[name] for name in ("gentle", "firm")), key=lambda d: d.value)
        return best.value >= GAIN and best.low > 0 and not self.geometry.healthy

    @property
    def score(self) -> float:
        """The yardstick's correlation after what would be done."""
        scores = self.likeness.scores
        return max(scores["gentle"].value, scores["firm"].value) if self.helps else scores["none"].value


def try_space(layers: str, rows_of: Callable[[Sequence[str]], Rows], material: Material, seed: int = 0) -> Trial:
    """Try one space. rows_of: its rows for texts, (n, d)."""
    rows = rows_of(material.fitted)
    everyday = with_everyday(rows, rows_of(material.yardstick.sentences))
    bent = {"gentle": bend(everyday, GENTLE), "firm": bend(everyday, FIRM)}
    done: dict[str, Callable[[Rows], Rows]] = {"none": np.asarray, **{name: r.transform for name, r in bent.items()}}
    pairs = material.yardstick.pairs
    firsts, seconds = rows_of([pair.first for pair in pairs]), rows_of([pair.second for pair in pairs])
    gold = [pair.likeness for pair in pairs]
    likeness = {name: Correlation(cosines(do(firsts), do(seconds)), gold) for name, do in done.items()}
    finding = None
    if material.halves:
        lefts, rights = (rows_of([pair[side] for pair in material.halves]) for side in (0, 1))
        ranks = {name: Mean(found(do(lefts), do(rights))) for name, do in done.items()}
        finding = compare(ranks, seed=seed, items="halves", resamples=500, swaps=999)
    return Trial(
        layers,
        compare(likeness, seed=seed, items="yardstick", resamples=500, swaps=999),
        finding,
        geometry(collect(rows)[0]),
        kept(rows, bent["firm"].transform(rows)),
    )


def with_everyday(rows: Rows, everyday: Rows) -> Rows:
    """Rows of a text, and everyday sentences as often as makes them three tenths of all, (n, d) and (m, d) -> (k, d).

    A repair that knows only one kind of text magnifies what that text never does: fitted on an encyclopedia alone,
    MiniLM's third layer lost 9 points of STS; with everyday sentences it gained 6.
    """
    wanted = round(EVERYDAY / (1 - EVERYDAY) * len(rows))
    times, more = divmod(wanted, len(everyday))
    return np.concatenate([rows, *[everyday] * times, everyday[:more]])
