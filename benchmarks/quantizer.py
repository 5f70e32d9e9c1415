"""Our additive quantizer against `faiss.LocalSearchQuantizer`, on the token states of a real model.

Both are trained on, and encode, the same rows on the same number of threads, 4 codebooks of 256. Bars at 100,000 × 384:
at least 5 times faster; squared error at most 1 % above; point patchiness (PP) within faiss's spread from seed to seed.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from isotrope.quantization.additive import quantize_additive
from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.sources.models.load import load
from machine import describe
from scan_overhead import Fixed


class Outcome(NamedTuple):
    """What one training and encoding took and gave: seconds, mean squared error, patchiness."""

    seconds: float
    error: float
    patchiness: float

    def __str__(self) -> str:
        return f"{self.seconds:7.1f} {self.error:9.4f} {self.patchiness:7.3f}"


def states(n: int, layer: int) -> np.ndarray:
    """n token states of one layer of MiniLM over the Python manual, (n, 384), in the order of the text."""
    source = Fixed(load(), 32, 32, 1 + n // 1024)
    batches = [compute_hidden_states(source.loaded, ids, source.mask)[0][layer] for ids in source.ids]
    rows = np.concatenate([np.asarray(states).reshape(-1, source.width) for states in batches])
    return np.ascontiguousarray(rows[np.sort(np.random.default_rng(0).permutation(len(rows))[:n])], dtype=np.float32)


def patchiness(codes: np.ndarray) -> float:
    """k Σ_j c_j (n c_j − 1) / n, averaged over the codebooks; c_j the share of the n rows in cell j of 256."""
    counts = np.stack([np.bincount(column, minlength=256) for column in codes.T])
    return float(256 * (counts * (counts - 1)).sum(axis=1).mean() / len(codes) ** 2)


def theirs(rows: np.ndarray, seed: int, steps: int = 25) -> Outcome:
    quantizer = faiss.LocalSearchQuantizer(rows.shape[1], 4, 8)
    quantizer.random_seed, quantizer.train_iters = seed, steps
    begin = time.perf_counter()
    quantizer.train(rows)
    codes = quantizer.compute_codes(rows)
    taken = time.perf_counter() - begin
    return Outcome(taken, float(np.square(rows - quantizer.decode(codes)).sum(axis=1).mean()), patchiness(codes))


def ours(rows: np.ndarray, seed: int, steps: int | None = None) -> Outcome:
    begin = time.perf_counter()
    q = quantize_additive(rows, 4, 256, seed, steps)
    taken = time.perf_counter() - begin
    return Outcome(taken, float(np.square(q.errors(rows)).mean()), patchiness(q.codes))


def curve(name: str, run: Callable[..., Outcome], rows: np.ndarray, steps: tuple[int, ...]) -> None:
    """Error against time for several lengths of training, each with its encoding."""
    print(f"\n{name}: steps of training, seconds, mean squared error, PP")
    for count in steps:
        print(f"  {count:3d}: {run(rows, 1, count)}", flush=True)


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--layer", type=int, default=-1)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--without-curves", action="store_true")
    arguments = parser.parse_args()
    print(describe())
    threads = os.cpu_count() or 1
    faiss.omp_set_num_threads(threads)
    rows = states(arguments.rows, arguments.layer)
    variance = float(np.square(rows - rows.mean(axis=0)).sum(axis=1).mean())
    shape = f"{len(rows):,} × {rows.shape[1]}"
    print(f"\n{shape} states of layer {arguments.layer}, variance {variance:.3f}, {threads} threads")
    with threadpool_limits(threads, user_api="blas"):
        found: dict[str, list[Outcome]] = {"faiss": [], "ours": []}
        print("\nseed: seconds, mean squared error, PP of faiss and of ours")
        for seed in range(1, arguments.seeds + 1):
            found["faiss"].append(theirs(rows, seed))
            found["ours"].append(ours(rows, seed))
            both = " | ".join(
                f"{o[-1].seconds:7.1f} {o[-1].error:9.4f} {o[-1].patchiness:7.3f}" for o in found.values()
            )
            print(f"  {seed}: {both}", flush=True)
        if not arguments.without_curves:
            curve("faiss", theirs, rows, (2, 5, 10))
            curve("ours", ours, rows, (2, 4, 8))
    middle = {name: [statistics.median(values) for values in zip(*o, strict=True)] for name, o in found.items()}
    faster, error = middle["faiss"][0] / middle["ours"][0], middle["ours"][1] / middle["faiss"][1]
    print(f"\nmedians of {arguments.seeds} seeds: ours is {faster:.1f} times faster (bar 5: {verdict(faster >= 5)})")
    print(f"error {error:.4f} times that of faiss (bar 1.01: {verdict(error <= 1.01)})")
    spread = sorted(o.patchiness for o in found["faiss"])
    inside = spread[0] <= middle["ours"][2] <= spread[-1]
    print(f"PP {middle['ours'][2]:.3f}; faiss from {spread[0]:.3f} to {spread[-1]:.3f} ({verdict(inside)})")


if __name__ == "__main__":
    main()
