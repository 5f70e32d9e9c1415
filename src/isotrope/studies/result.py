"""What a study found, as plain data: tables, and what they say about the claims of a paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from isotrope.formats.json import format_json, to_plain

if TYPE_CHECKING:
    import pandas as pd

#: What becomes of a claim: it holds here, it does not, its print is wrong, or there is only something to know.
Outcome: TypeAlias = Literal["agrees", "contradicts", "misprint", "note"]

#: The same in the order in which they are told.
OUTCOMES: tuple[Outcome, ...] = ("contradicts", "misprint", "agrees", "note")


@dataclass(frozen=True)
class Claim:
    """A sentence about what a paper says and what was found. where: its figure or table.

    ours, published: the numbers behind it, NaN where there is none.
    """

    outcome: Outcome
    text: str
    where: str = ""
    ours: float = math.nan
    published: float = math.nan


@dataclass(frozen=True)
class Table:
    """One table of a study. title: what it shows, in one sentence."""

    name: str
    title: str
    frame: pd.DataFrame = field(repr=False)

    def records(self) -> list[dict[str, Any]]:
        """Its rows as plain data, None where a number is undefined."""
        return [{str(k): to_plain(v) for k, v in row.items()} for row in self.frame.to_dict("records")]


@dataclass(frozen=True)
class Drawn:
    """A figure of a part. title: what it shows. reason: why it could not be drawn, None where it was."""

    name: str
    title: str
    reason: str | None = None


@dataclass(frozen=True)
class Part:
    """One finished part of a study. folder: where its files are, below the study's."""

    name: str
    folder: str = ""
    tables: Sequence[Table] = ()
    claims: Sequence[Claim] = ()
    figures: Sequence[Drawn] = ()


@dataclass(frozen=True)
class Study:
    """All parts of a study of one paper."""

    name: str
    paper: str
    parts: list[Part]
    settings: dict[str, Any] = field(default_factory=dict)
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def claims(self) -> list[Claim]:
        return [claim for part in self.parts for claim in part.claims]

    @property
    def told(self) -> list[tuple[str, Claim]]:
        """Every claim with the name of its part, contradictions first."""
        every = [(part.name, claim) for part in self.parts for claim in part.claims]
        return sorted(every, key=lambda item: OUTCOMES.index(item[1].outcome))

    def table(self, part: str, name: str) -> pd.DataFrame:
        """A table by the names of its part and its own."""
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
            "figures": {part.name: [asdict(drawn) for drawn in part.figures] for part in self.parts if part.figures},
        }

    def to_json(self) -> str:
        """The same as one JSON document."""
        return format_json(self.to_dict())
