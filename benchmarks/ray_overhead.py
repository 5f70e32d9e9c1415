"""What Ray costs on one machine, and what a second worker brings: the statistics of vectors in a file.

Local and cluster passes alternate over the same file on the same cores, everything started and opened before; the
ratios of their medians are printed, and what Ray's own processes took meanwhile. Bars: a pass by one worker for each
core at most 1.25 times the local one's, and two workers of one thread at least 1.6 times as fast as one.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

from isotrope.engines.ray.source import RaySource, Workers, ray_workers
from isotrope.pipeline import resolve_measures
from isotrope.sources.input import Input
from isotrope.statistics import Collection
from machine import describe, seconds

#: Processes that Ray starts beside the workers, by the beginning of their command.
OWN = ("raylet", "gcs_server", "dashboard", "agent", "log_monitor", "monitor")


def write_rows(path: Path, rows: int, width: int) -> None:
    """Rows with a common mean and a falling spectrum, a block at a time."""
    rng = np.random.default_rng(0)
    scale = (1.0 / np.sqrt(np.arange(1, width + 1))).astype(np.float32)
    out = np.lib.format.open_memmap(path, "w+", np.float32, (rows, width))
    for start in range(0, rows, 100_000):
        block = out[start : start + 100_000]
        block[:] = rng.standard_normal(block.shape, dtype=np.float32) * scale + 0.5
    out.flush()


def cpu_seconds() -> Counter[str]:
    """CPU time so far of this process's children, those of Ray's own by name, the workers' together."""
    used: Counter[str] = Counter()
    for child in psutil.Process().children(recursive=True):
        try:
            times, command = child.cpu_times(), child.cmdline()
        except psutil.Error:
            continue
        words = " ".join(command[:3])
        name = next((own for own in OWN if own in words), "workers" if "ray::" in words else "idle workers and others")
        used[name] += times.user + times.system
    return used


def startup(count: int) -> float:
    """Seconds until so many workers are there, on a Ray of their own."""

    def start() -> None:
        with ray_workers(address="local", workers=count, gpus_per_worker=0.0, skip=False):
            pass

    return seconds(start)


def on_workers(count: int, path: Path, small: Path, rounds: int, beside: Callable[[], object]) -> list[float]:
    """Times of passes by so many workers, each after a pass of something else; everything started beforehand."""
    options = resolve_measures("moments", sample=20_000)
    times = []
    with ray_workers(address="local", workers=count, gpus_per_worker=0.0, skip=False) as workers:
        opened(workers, small).reduce(Collection(options.wanted))  # everything is imported
        source = opened(workers, path)
        source.reduce(Collection(options.wanted))
        for _ in range(rounds):
            beside()
            before = cpu_seconds()
            times.append(seconds(lambda: source.reduce(Collection(options.wanted))))
            took = cpu_seconds() - before
        told = ", ".join(f"{name} {value:.1f}" for name, value in sorted(took.items()))
        print(f"  CPU seconds in the last pass by {count}: {told}")
    return times


def opened(workers: Workers, path: Path) -> RaySource:
    return workers.open(Input(vectors=str(path), precision="fast"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    print(describe())
    cores = psutil.cpu_count() or 1
    with tempfile.TemporaryDirectory() as folder:
        path, small = Path(folder) / "rows.npy", Path(folder) / "small.npy"
        write_rows(path, arguments.rows, arguments.width)
        write_rows(small, max(arguments.rows // 20, 1000), arguments.width)
        options = resolve_measures("moments", sample=20_000)
        source = Input(vectors=str(path), precision="fast").open()
        here: list[float] = []
        cpu: list[float] = []

        def alone() -> None:
            before = psutil.Process().cpu_times()
            here.append(seconds(lambda: source.reduce(Collection(options.wanted))))
            after = psutil.Process().cpu_times()
            cpu.append(after.user + after.system - before.user - before.system)

        print(f"\n{arguments.rows:,} × {arguments.width} float32, moments and a sample of 20,000 rows, {cores} cores")
        print(f"  start-up of Ray and {cores} workers: {startup(cores):.1f} s, not counted below")
        alone()
        here.clear()
        every = on_workers(cores, path, small, arguments.rounds, alone)
        one = every if cores == 1 else on_workers(1, path, small, arguments.rounds, lambda: None)
        two = every if cores == 2 else on_workers(2, path, small, arguments.rounds, lambda: None)
        base, overhead = statistics.median(here), statistics.median(every) / statistics.median(here)
        scaling = statistics.median(one) / statistics.median(two)
        rate = f"{arguments.rows / base:,.0f} rows/s"
        print(f"  in this process, all cores: {base:.2f} s, {rate}, {cpu[-1]:.1f} CPU seconds")
        print(f"  by {cores} workers on the same cores: ratio {overhead:.3f}{met(overhead <= 1.25, 1.25)}")
        print(f"  from 1 to 2 workers of one thread: {scaling:.2f} times as fast{met(scaling >= 1.6, 1.6)}")


def met(passed: bool, bar: float) -> str:
    return f" (bar {bar:.2f}: {'met' if passed else 'MISSED'})"


if __name__ == "__main__":
    main()
