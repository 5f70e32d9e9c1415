"""Token statistics of hidden states over a plain Python loop, one token at a time, as Algorithm 1 of the paper.

Both see the very same hidden states of MiniLM's seven layers, and end with the same Q, M and V. Bar: 20 times as fast.
The share of the forward pass that the statistics take is printed too.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

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
            if layer not in found:
                found[layer] = TokenStatistics.empty(rows.shape[1])
            found[layer] += TokenStatistics.of(block(rows, batch.rows))
    return found


Plain = dict[int, dict[int, tuple[int, Any, float]]]


def plain(batches: list[Batch], *, numpy: bool = False) -> Plain:
    """n, mean and mean squared norm of each type and layer, one token after another, as the model's tensors come.

    numpy: the batch is turned into a float64 array first, which makes each step several times as fast.
    """
    found: Plain = {}
    for batch in batches:
        for layer, rows in batch.layers.items():
            table, values = found.setdefault(layer, {}), rows.double().numpy() if numpy else rows
            for i, token in enumerate(batch.rows.token.tolist()):
                x = values[i] if numpy else values[i].double()
                n, mean, q = table.get(token, (0, 0.0, 0.0))
                n += 1
                table[token] = (n, mean + (x - mean) / n, q + (float(x @ x) - q) / n)
    return found


def check(fast: dict[int, TokenStatistics], slow: Plain) -> float:
    """The largest difference of V, as a share of Q, over all types and layers."""
    worst = 0.0
    for layer, statistic in fast.items():
        t = statistic.table
        for i, kind in enumerate(t.types.tolist()):
            n, mean, q = slow[layer][kind]
            assert n == t.n[i]
            worst = max(worst, abs(t.v[i] - (q - float(mean @ mean))) / q)
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
    kinds = {
        "ours": lambda: ours(batches),
        "one at a time": lambda: plain(batches),
        "one at a time, from numpy": lambda: plain(batches, numpy=True),
        "forward": source.plain,
    }
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind, run in kinds.items():
            times[kind].append(seconds(run))
    took = {kind: statistics.median(some) for kind, some in times.items()}
    print(f"\n{tokens:,} tokens in {len(source.layers)} layers of {source.width}; V differs by {difference:.1e} of Q")
    print(f"  ours: {tokens / took['ours']:,.0f} tokens per second through all layers")
    for kind in ("one at a time", "one at a time, from numpy"):
        ratio = took[kind] / took["ours"]
        bar = f" (bar {BAR:g}: {'met' if ratio >= BAR else 'MISSED'})" if kind == "one at a time" else ""
        print(f"  {kind}: {tokens / took[kind]:,.0f} tokens per second, ratio {ratio:.1f}{bar}")
    print(f"  share of the forward pass ({took['forward']:.2f} s): {took['ours'] / took['forward']:.3f}")


if __name__ == "__main__":
    main()
