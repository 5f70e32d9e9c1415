"""Intervals of a share of pairs, exact for independent pairs and widened where pairs share rows."""

from __future__ import annotations

from typing import NamedTuple

from scipy.stats import beta

#: The chance that an interval holds what it is about.
CONFIDENCE = 0.95

#: Samples that an interval is about: the one at hand, and another of as many rows, which is as uncertain.
SAMPLES = 2


class RateInterval(NamedTuple):
    """Ends of an interval of a share, 0 to 1."""

    low: float
    high: float


def compute_rate_interval(share: float, effective: float, confidence: float = CONFIDENCE) -> RateInterval:
    """The interval of Clopper and Pearson (1934) of a share, two-sided.

    With an effective number of items below the real one it is that of Korn and Graubard (1998).

    Args:
        share: the share that was found, 0 to 1.
        effective: how many independent items it was found on; need not be whole.
        confidence: how often it holds the true share at least.

    >>> [round(end, 4) for end in compute_rate_interval(0.1, 50)]
    [0.0333, 0.2181]
    """
    hits, outside = share * effective, (1.0 - confidence) / 2.0
    low = 0.0 if hits <= 0.0 else float(beta.ppf(outside, hits, effective - hits + 1.0))
    high = 1.0 if hits >= effective else float(beta.ppf(1.0 - outside, hits + 1.0, effective - hits))
    return RateInterval(low, high)


def compute_lower_bound(share: float, effective: float, confidence: float = CONFIDENCE) -> float:
    """The lower bound of Clopper and Pearson for a share, one-sided.

    >>> round(compute_lower_bound(1.0, 58), 4)
    0.9497
    """
    return compute_rate_interval(share, effective, 2.0 * confidence - 1.0).low


def widen_to_new_sample(share: float, effective: float) -> RateInterval:
    """Where the share lies in 95 of 100 other samples that are as large as this one."""
    return compute_rate_interval(share, effective / SAMPLES)
