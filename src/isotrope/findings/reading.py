"""The plain values that findings are made of: readings, and the statements of a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a measure on the rows of one layer, with its interval and its null value.

    Args:
        layer: The layer, None for a reading across layers.
        measure: The name of the measure.
        value: NaN where it is undefined; `reason` then says why.
        low: The lower end of the 95 % interval, NaN where there is none.
        high: The upper end.
        n: How many rows it is computed from.
        null: What isotropic Gaussian rows of the same number and width would give, NaN where unknown.
        variant: Which definition of the measure.
        seed: Of the sample.
        reason: Why there is no value.
        note: What to know about the value, such as a bias.
        group: The group of rows, None for all rows.
    """

    layer: int | str | None
    measure: str
    value: float
    low: float = math.nan
    high: float = math.nan
    n: int = 0
    null: float = math.nan
    variant: str = "definition"
    seed: int = 0
    reason: str | None = None
    note: str | None = None
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Statement:
    """One sentence of the verdict: how bad (0 good, 1 mild, 2 bad, 3 very bad), what, in which layers, how sure."""

    level: int
    text: str
    layers: tuple[int | str, ...] = ()
    sure: bool = True


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is wrong with the space, in words: the last layer first, then the others, then single rows.

    `word` is that of the last layer, one of the words of the table of thresholds.
    """

    word: str
    statements: tuple[Statement, ...] = ()

    def __str__(self) -> str:
        return "\n".join(s.text for s in self.statements)


def name_reading(measure: str, variant: str) -> str:
    """The name of a measure, with the variant where it is not the usual definition.

    >>> name_reading("mean_cosine", "definition"), name_reading("mean_cosine", "published")
    ('mean_cosine', 'mean_cosine (published)')
    """
    return measure if variant == "definition" else f"{measure} ({variant})"


def in_layer_order(layers: Iterable[int | str], order: list[int | str]) -> list[int | str]:
    """Layers sorted as a run lists them."""
    return sorted(set(layers), key=order.index)
