"""The result of a study, as plain data: tables, figures, and claims that compare them with a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from scipy import stats

from isotrope.formats.json import format_json, to_plain
from isotrope.studies.verdict import OUTCOMES, Outcome

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Claim:
    """A sentence that compares what a paper says with what a study found.

    Args:
        outcome: whether the result agrees with the paper.
        text: the sentence.
        where: the figure, table or section of the paper.
        ours: the number that was found, NaN where there is none.
        published: the number of the paper, NaN where there is none.
        evidence: the interval or p-value that decides, in words; empty where none is needed.
        model: the name of the model, empty for a claim about several or none.
        model_class: its class, see `isotrope.studies.model_class`.
    """

    outcome: Outcome
    text: str
    where: str = ""
    ours: float = math.nan
    published: float = math.nan
    evidence: str = ""
    model: str = ""
    model_class: str = ""


def rank_correlation(x: Sequence[Any] | pd.Series[Any], y: Sequence[Any] | pd.Series[Any]) -> float:
    """Spearman's correlation over the pairs without NaN; NaN for fewer than three pairs, or without variation.

    >>> round(rank_correlation([1, 2, 3], [2.0, 5.0, 9.0]), 9)
    1.0
    """
    import pandas as pd

    pairs = pd.DataFrame({"x": list(x), "y": list(y)}).dropna()
    if len(pairs) < 3 or pairs["x"].nunique() < 2 or pairs["y"].nunique() < 2:
        return math.nan
    return float(stats.spearmanr(pairs["x"], pairs["y"]).statistic)


def depth_correlation(values: pd.Series[Any]) -> float:
    """Rank correlation of the values of all layers with depth; NaN where a layer has none."""
    return math.nan if values.isna().any() else rank_correlation(range(len(values)), values)


@dataclass(frozen=True)
class Table:
    """One table of a study.

    Args:
        name: the name of its files.
        title: what it shows, in one sentence.
        frame: the rows.
        shown: whether the page of the study shows it; long lists of coordinates are in the files alone.
    """

    name: str
    title: str
    frame: pd.DataFrame = field(repr=False)
    shown: bool = True

    def records(self) -> list[dict[str, Any]]:
        """The rows as plain data, None where a number is undefined."""
        return [{str(k): to_plain(v) for k, v in row.items()} for row in self.frame.to_dict("records")]


@dataclass(frozen=True)
class FigureEntry:
    """A figure of a study.

    Args:
        name: the name of its files.
        title: what it shows.
        reason: why it could not be drawn, None where it was.
    """

    name: str
    title: str
    reason: str | None = None


@dataclass(frozen=True)
class Part:
    """The saved results of one experiment of a study; `folder` is relative to that of the study."""

    name: str
    folder: str = ""
    tables: Sequence[Table] = ()
    claims: Sequence[Claim] = ()
    figures: Sequence[FigureEntry] = ()


@dataclass(frozen=True)
class Study:
    """The results of all experiments of a study of one paper.

    Attributes:
        name: Name of the study.
        paper: Title and authors of the paper.
        parts: Results of each experiment.
        settings: Options of the study.
        provenance: Versions, models and data.
    """

    name: str
    paper: str
    parts: list[Part]
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def claims(self) -> list[Claim]:
        return [claim for part in self.parts for claim in part.claims]

    @property
    def ranked_claims(self) -> list[tuple[str, Claim]]:
        """All claims with the names of their parts, contradictions first."""
        claims = [(part.name, claim) for part in self.parts for claim in part.claims]
        return sorted(claims, key=lambda item: OUTCOMES.index(item[1].outcome))

    def table(self, part: str, name: str) -> pd.DataFrame:
        """The table of this name in a part."""
        (found,) = (t.frame for p in self.parts if p.name == part for t in p.tables if t.name == name)
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain data; tables by part and name."""
        return {
            "study": self.name,
            "paper": self.paper,
            "settings": self.settings,
            "provenance": self.provenance,
            "claims": [{"part": part.name} | to_plain(asdict(claim)) for part in self.parts for claim in part.claims],
            "tables": {part.name: {t.name: t.records() for t in part.tables} for part in self.parts},
            "figures": {part.name: [asdict(figure) for figure in part.figures] for part in self.parts if part.figures},
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())
