"""Fitting and applying a linear repair of 400,000 × 768 float32 rows, against scikit-learn and the bare product.

Whitening is fitted from an npy file, in constant memory and float64; scikit-learn's `PCA` on the same rows in memory,
with the solver that it chooses by itself for such rows, "covariance_eigh", in float32; its `IncrementalPCA` on the same
file, mapped into memory, with its own batch size. The file has been read before, so that no disk is timed. Bars: at
most 2 times PCA; at most a quarter of IncrementalPCA; applying at 0.8 or more of the rate of one float32 product.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.decomposition import PCA, IncrementalPCA

from isotrope import Whitening
from machine import describe, seconds

WIDTH = 768


def write_rows(path: Path, n: int) -> None:
    """Rows with a common mean and a falling spectrum, as embeddings have, a few at a time."""
    rng = np.random.default_rng(0)
    spread = (1.0 / np.sqrt(np.arange(1, WIDTH + 1))).astype(np.float32)
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, WIDTH))
    for start in range(0, n, 10_000):
        part = file[start : start + 10_000]
        part[:] = rng.standard_normal(part.shape, dtype=np.float32) * spread + np.float32(0.05)
    file.flush()


def medians(rounds: int, tasks: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median seconds of each task, taken in turns: what slows the machine down for a while then slows all of them."""
    taken: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(rounds):
        for name, task in tasks.items():
            taken[name].append(seconds(task))
    for name, times in taken.items():
        print(f"  {name:28} {', '.join(f'{t:.2f}' for t in times)} s")
    return {name: statistics.median(times) for name, times in taken.items()}


def verdict(met: bool) -> str:
    return "met" if met else "MISSED"


def fitting(path: Path, rounds: int) -> None:
    rows = np.load(path)
    # The same map by both, or the times would say nothing.
    ours, theirs = Whitening().fit(path), PCA(svd_solver="covariance_eigh").fit(rows)
    apart = np.abs(ours.spectrum_**2 / theirs.explained_variance_ - 1).max()
    print(f"\nfitting on {len(rows):,} × {WIDTH} float32; variances of both at most {apart:.0e} apart")
    found = medians(
        rounds,
        {
            "Whitening, file": lambda: Whitening().fit(path),
            "PCA, memory": lambda: PCA(svd_solver="covariance_eigh").fit(rows),
            "IncrementalPCA, mapped file": lambda: IncrementalPCA().fit(np.load(path, mmap_mode="r")),
        },
    )
    one, in_memory, in_batches = found.values()
    print(f"over PCA in memory: {one / in_memory:.2f} (bar 2: {verdict(one <= 2 * in_memory)})")
    print(f"over IncrementalPCA: {one / in_batches:.3f} (bar 0.25: {verdict(one <= in_batches / 4)})")


def applying(path: Path, n: int, rounds: int) -> None:
    rows = np.load(path, mmap_mode="r")[:n].copy()
    repair = Whitening().fit(rows)
    weight = repair.affine_.weight.astype(np.float32)
    print(f"\napplying to {len(rows):,} × {WIDTH} float32")
    repair.transform(rows), rows @ weight
    found = medians(rounds, {"transform": lambda: repair.transform(rows), "product": lambda: rows @ weight})
    rate = found["product"] / found["transform"]
    print(f"rate over that of the product: {rate:.2f} (bar 0.8: {verdict(rate >= 0.8)})")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=400_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="20,000 rows, once: to see that it runs, not to judge")
    arguments = parser.parse_args()
    n, rounds = (20_000, 1) if arguments.quick else (arguments.rows, arguments.rounds)
    print(describe())
    with TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        write_rows(path, n)
        fitting(path, rounds)
        applying(path, min(n, 100_000), 3 * rounds)


if __name__ == "__main__":
    main()
