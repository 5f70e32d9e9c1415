"""Stable hashes of sequence ids, which decide what is sampled."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def mix(ids: NDArray[np.uint64], seed: int) -> NDArray[np.uint64]:
    """A well-mixed 64-bit hash of each id (splitmix64, Steele, Lea and Flood 2014), shape (n,) -> (n,).

    Ids that differ never share a hash, so "the smallest hashes" is never a matter of taste.

    >>> mix(np.array([0, 1], dtype=np.uint64), seed=0).tolist()
    [16294208416658607535, 10451216379200822465]
    """
    with np.errstate(over="ignore"):
        z = ids.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64((seed + 1) % 2**64)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return np.asarray(z ^ (z >> np.uint64(31)))
