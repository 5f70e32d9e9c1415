"""Token statistics of hidden states over a plain loop that takes one token at a time, as Algorithm 1 of the paper.

Both see the very same hidden states of MiniLM's seven layers, and end with the same Q, M and V. Bar: 20 times as fast.
The share of the forward pass that the statistics take is printed too.
"""

from __future__ import annotations

import argparse
import statistics

import numpy as np

from isotrope.sources.batch import Batch
from isotrope.sources.models import load
from isotrope.statistics import TokenStatistics, block
from machine import describe, seconds
from scan_overhead import Fixed

BAR = 20.0


def ours(batches: list[Batch]) -> dict[int, TokenStatistics]:
    """The library's statistics of every layer."""
    found: dict[int, TokenStatistics] = {}
    for batch in batches:
        for layer, rows in batch.layers.items():
            part = TokenStatistics.of(block(rows, batch.rows))
            found[layer] = found[layer] + part if layer in found else part
    return found


def plain(batches: list[Batch]) -> dict[int, dict[int, tuple[int, np.ndarray, float]]]:
    """n, mean and mean squared norm of each type and layer, one token after another."""
    found: dict[int, dict[int, tuple[int, np.ndarray, float]]] = {}
    for batch in batches:
        for layer, rows in batch.layers.items():
            table = found.setdefault(layer, {})
            values = rows.double().numpy()
            for token, x in zip(batch.rows.token.tolist(), values, strict=True):
                n, mean, q = table.get(token, (0, np.zeros(len(x)), 0.0))
                n += 1
                table[token] = (n, mean + (x - mean) / n, q + (x @ x - q) / n)
    return found


def check(fast: dict[int, TokenStatistics], slow: dict[int, dict[int, tuple[int, np.ndarray, float]]]) -> float:
    """The largest difference of V, as a share of Q, over all types and layers."""
    worst = 0.0
    for layer, statistic in fast.items():
        t = statistic.table
        for i, kind in enumerate(t.types.tolist()):
            n, mean, q = slow[layer][kind]
            assert n == t.n[i]
            worst = max(worst, abs(t.v[i] - (q - mean @ mean)) / q)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batches", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(describe())
    source = Fixed(load(), 32, 32, arguments.batches)
    batches = list(source.batches())
    tokens = sum(len(batch.rows.sequence) for batch in batches)
    difference = check(ours(batches), plain(batches))
    fast, slow, forward = [], [], []
    for _ in range(arguments.rounds):
        fast.append(seconds(lambda: ours(batches)))
        slow.append(seconds(lambda: plain(batches)))
        forward.append(seconds(source.plain))
    one, two, three = (statistics.median(times) for times in (fast, slow, forward))
    print(f"\n{tokens:,} tokens in {len(source.layers)} layers of {source.width}; V differs by {difference:.1e} of Q")
    print(f"  ours {tokens / one:,.0f} tokens per second, one at a time {tokens / two:,.0f}")
    print(f"  ratio {two / one:.1f} (bar {BAR:g}: {'met' if two / one >= BAR else 'MISSED'})")
    print(f"  share of the forward pass ({three:.2f} s): {one / three:.3f}")


if __name__ == "__main__":
    main()
