"""The statistic that each kind of measure is computed from."""

from __future__ import annotations

from typing import Any

from isotrope.statistics import Moments, Points, SequenceSpectra, SequenceStatistics, TokenStatistics

#: By the `needs` of a measure's record.
STATISTICS: dict[str, Any] = {
    "moments": Moments,
    "tokens": TokenStatistics,
    "sequences": SequenceStatistics,
    "spectra": SequenceSpectra,
    "sample": Points,
}
