"""Every moment measure of 50,000 × 768 float32 rows, against one XᵀX of them and against spectralyte's audit.

Bars: at most 6 times one float32 XᵀX; at least 10 times faster than spectralyte.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

import isotrope
from machine import describe, seconds


def rows(n: int, d: int) -> np.ndarray:
    """Rows with a common mean and a falling spectrum, as embeddings have."""
    rng = np.random.default_rng(0)
    spread = 1.0 / np.sqrt(np.arange(1, d + 1))
    return (rng.standard_normal((n, d), dtype=np.float32) * spread + 0.05).astype(np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--without-spectralyte", action="store_true")
    arguments = parser.parse_args()
    print(describe())
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


if __name__ == "__main__":
    main()
