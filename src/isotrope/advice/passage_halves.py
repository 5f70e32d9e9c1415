"""Passages cut in two: does each half find the other among all?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows

#: A passage needs this many words, so that its halves say something.
LEAST_WORDS = 6

#: Halves are no longer than this: near to the cut they have most to do with each other.
_MOST_WORDS = 45


def halves(text: str) -> tuple[str, str] | None:
    """A text cut at the end of a sentence near its middle, or in the middle; None where it is too short.

    >>> halves("The cat sat on the mat. It slept until the evening came.")
    ('The cat sat on the mat.', 'It slept until the evening came.')
    """
    words = text.split()
    if len(words) < LEAST_WORDS:
        return None
    ends = [i + 1 for i, word in enumerate(words[:-3]) if i >= 2 and re.search(r"[.!?]$", word)]
    cut = min(ends, key=lambda end: abs(end - len(words) / 2), default=(len(words) + 1) // 2)
    return " ".join(words[:cut][-_MOST_WORDS:]), " ".join(words[cut:][:_MOST_WORDS])


def found(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """For each half, one over the rank at which the other one comes among all by cosine, (n, d) twice -> (2n,).

    >>> found(np.eye(3), np.eye(3)).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    cosines = unit(first) @ unit(second).T
    own = np.diagonal(cosines)
    # Ties count against: a space in which all rows are the same finds nothing.
    ranks = [(cosines >= own[:, None]).sum(axis=1), (cosines >= own).sum(axis=0)]
    return np.asarray(1.0 / np.concatenate(ranks))


def unit(rows: NDArray[Any]) -> NDArray[np.float64]:
    """Rows divided by their lengths, in float64; rows of zeros stay."""
    return np.asarray(to_unit_rows(np.asarray(rows, dtype=np.float64)))


def cosines(first: Sequence[Any] | NDArray[Any], second: Sequence[Any] | NDArray[Any]) -> NDArray[np.float64]:
    """Cosine of each row with the row of the same place, (n, d) twice -> (n,)."""
    return np.asarray((unit(np.asarray(first)) * unit(np.asarray(second))).sum(axis=1))
