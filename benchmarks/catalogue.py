"""The time of every measure that works from rows, each on its own, at 20,000 × 768, without and with its interval.

Bar: at most 60 s without the interval, on two cores. Each starts at the rows: what measures share is worked out anew.
"""

from __future__ import annotations

import argparse

import numpy as np

from isotrope.measures import MEASURES, Measure
from isotrope.quantization.cells import Cells
from isotrope.readings.intervals import JackknifeGroups, compute_intervals
from isotrope.statistics import Sample, prepare_rows
from machine import describe, seconds
from vectors import rows

#: Seconds that a measure may take without its interval.
_BAR = 60.0


def value(m: Measure, x: np.ndarray) -> float:
    """A measure from rows alone, or from rows and some image of them."""
    return m(x, x**3) if m.needs == "image" else m(x)


def interval(m: Measure, x: np.ndarray) -> None:
    """A measure from rows with its interval."""
    sample = Sample.empty(x.shape[1], len(x))
    sample.add(prepare_rows(x))
    groups = JackknifeGroups(sample, [m.needs])
    made = Cells.of(groups.points, **m.parameters) if m.needs == "cells" else None
    statistic = made or (groups.points if m.needs == "sample" else x)
    compute_intervals([m], [m(statistic)], groups, m.needs, made)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimensions", type=int, default=768)
    parser.add_argument("--without-intervals", action="store_true")
    arguments = parser.parse_args()
    print(describe())
    x = rows(arguments.rows, arguments.dimensions)
    print(f"\n{arguments.rows:,} × {arguments.dimensions} float32, seconds\n")
    print(f"{'measure':<34}{'alone':>9}{'with interval':>16}")
    slowest = 0.0
    for m in MEASURES:
        if m.needs not in ("moments", "sample", "image", "cells"):
            continue
        alone = seconds(lambda m=m: value(m, x))  # type: ignore[misc]
        slowest = max(slowest, alone)
        line = f"{m.name:<34}{alone:>9.2f}"
        if m.estimate and not arguments.without_intervals:
            line += f"{seconds(lambda m=m: interval(m, x)):>16.1f}"  # type: ignore[misc]
        print(line, flush=True)
    print(f"\nslowest alone {slowest:.1f} s (bar {_BAR:.0f}: {'met' if slowest <= _BAR else 'MISSED'})")


if __name__ == "__main__":
    main()
