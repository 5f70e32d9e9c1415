"""A source and a run whose rows the tests know."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Source

#: Texts that would harm a picture that took them for anything but text.
HOSTILE = ("<script>alert(1)</script>", "$\\frac{1$", "a\x00b\u202ec", "&amp;]]>", "%s{x}", "x" * 10_000, "😀中文字")


@dataclass
class KnownSource(Source):
    """Rows of four layers, (n, d) each, of sequences of 5 to 14 tokens of 40 types."""

    rows: dict[int, NDArray[np.float64]]
    known: Rows
    names: list[str]
    batch_rows: int = 1000

    width, total, unit = 6, None, "rows"

    def __post_init__(self) -> None:
        self.layers = list(self.rows)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        yield from [Batch(self.rows, self.known, {"texts": len(self.known.starts())})][start:]

    def describe(self) -> dict[str, Any]:
        return {"kind": "known", "model": "known/<model>", "width": self.width, "corpus": {"name": "known & told"}}

    def token_names(self, tokens: NDArray[np.int64]) -> list[str]:
        return [self.names[t] for t in tokens]


@dataclass
class KnownRun:
    """A run folder and the source that it is of."""

    folder: Path
    source: KnownSource
