"""Every moment measure of 50,000 × 768 float32 rows, against one XᵀX of them and against spectralyte's audit; then the
default scan of 20,000 × 768 vectors (moments and search, with intervals and null values) against vecscope's audit.

Bars: at most 6 times one float32 XᵀX; at least 10 times faster than spectralyte; no slower than vecscope's audit.
CPU seconds are printed beside the times, because they tell more on a machine that is shared.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable

import numpy as np

import isotrope
from machine import describe, seconds

_SCANNED = 20_000


def rows(n: int, d: int) -> np.ndarray:
    """Rows with a common mean and a falling spectrum, as embeddings have."""
    rng = np.random.default_rng(0)
    spread = 1.0 / np.sqrt(np.arange(1, d + 1))
    return (rng.standard_normal((n, d), dtype=np.float32) * spread + 0.05).astype(np.float32)


def wall_and_cpu(function: Callable[[], object]) -> tuple[float, float]:
    """Seconds by the clock and of all cores."""
    begin = time.process_time()
    wall = seconds(function)
    return wall, time.process_time() - begin


def compare_scan(rounds: int) -> None:
    """The default scan of vectors beside vecscope's audit, in turn."""
    import vecscope

    x = rows(_SCANNED, 768)
    isotrope.scan(vectors=x[:1500])
    vecscope.audit(x[:1500])
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(wall_and_cpu(lambda: isotrope.scan(vectors=x)))
        theirs.append(wall_and_cpu(lambda: vecscope.audit(x)))
    (wall, cpu), (peer, peer_cpu) = (
        tuple(map(statistics.median, zip(*times, strict=True))) for times in (ours, theirs)
    )
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    print(
        f"\n{_SCANNED:,} × 768 float32: default scan {wall:.1f} s ({cpu:.1f} CPU s), vecscope's audit {peer:.1f} s "
        f"({peer_cpu:.1f} CPU s): {peer / wall:.2f} times ours (bar 1: {'met' if peer >= wall else 'MISSED'}; "
        f"load {load})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--without-spectralyte", action="store_true")
    parser.add_argument("--only-scan", action="store_true", help="compare the default scan with vecscope alone")
    arguments = parser.parse_args()
    print(describe())
    if arguments.only_scan:
        compare_scan(arguments.rounds)
        return
    x = rows(arguments.rows, 768)
    isotrope.measure(x[:2000])
    product, ours = [], []
    for _ in range(arguments.rounds):
        product.append(seconds(lambda: x.T @ x))
        ours.append(seconds(lambda: isotrope.measure(x)))
    one, all_measures = statistics.median(product), statistics.median(ours)
    ratio = all_measures / one
    print(
        f"\n{arguments.rows:,} × 768 float32: one XᵀX {one:.3f} s, {len(isotrope.measure(x[:2000]))} measures "
        f"{all_measures:.3f} s: ratio {ratio:.2f} (bar 6: {'met' if ratio <= 6 else 'MISSED'})"
    )
    if not arguments.without_spectralyte:
        from spectralyte import Spectralyte

        peer = seconds(lambda: Spectralyte(x).run(verbose=False))
        print(
            f"spectralyte's audit {peer:.1f} s: {peer / all_measures:.0f} times ours "
            f"(bar 10: {'met' if peer >= 10 * all_measures else 'MISSED'})"
        )
    compare_scan(min(arguments.rounds, 3))


if __name__ == "__main__":
    main()
