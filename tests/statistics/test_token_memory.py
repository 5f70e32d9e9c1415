"""Memory of the token statistics of a real vocabulary: 24,000 types of 768 dimensions."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from isotrope.sources.batch import Rows
from isotrope.statistics import TokenStatistics, prepare_rows

TYPES, WIDTH, LAYERS = 24_000, 768, 13

_SCRIPT = f"""
import threading, time
import numpy as np
from isotrope.sources.batch import Rows
from isotrope.statistics import prepare_rows
from isotrope.statistics import TokenStatistics

def now():
    for line in open("/proc/self/status"):
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000

peak, stop = now(), False
def watch():
    global peak
    while not stop:
        peak = max(peak, now())
        time.sleep(0.002)

values = np.ones((1000, {WIDTH}), np.float32)
def fill():
    total = TokenStatistics.empty({WIDTH})
    for start in range(0, {TYPES}, 1000):
        tokens = np.arange(start, start + 1000)
        total += TokenStatistics.of(prepare_rows(values, Rows(tokens.astype(np.uint64), token=tokens)))
    return total

fill_small = TokenStatistics.of(prepare_rows(values[:10], Rows(np.arange(10, dtype=np.uint64), token=np.arange(10))))
base = now()
watcher = threading.Thread(target=watch, daemon=True); watcher.start()
a = fill()
filling, held = peak - base, now() - base
b = fill()
peak = now()
a += b
stop = True; watcher.join()
print(filling, held, peak - base)
"""


def test_arrays_hold_twelve_bytes_a_number_in_fast_precision() -> None:
    tokens = np.arange(500)
    rows = np.random.default_rng(0).standard_normal((500, 64)).astype(np.float32)
    found = TokenStatistics.of(prepare_rows(rows, Rows(tokens.astype(np.uint64), token=tokens)))
    found += found.copy()
    assert sum(a.nbytes for a in found.arrays().values()) <= 500 * (12 * 64 + 40)


@pytest.mark.long
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_peak_memory_of_a_vocabulary_while_filling_and_merging() -> None:
    # The best of three each: the allocator sometimes keeps some megabytes of what was freed.
    runs = [
        subprocess.run([sys.executable, "-c", _SCRIPT], capture_output=True, text=True, check=True) for _ in range(3)
    ]
    filling, held, merging = np.array([run.stdout.split() for run in runs], np.float64).min(axis=0)
    table = TYPES * WIDTH * 12 / 1e6  # MB
    assert held <= table + 60
    assert filling <= 330
    assert merging <= 2 * table + 120
    # All layers but one at rest, that one being merged with its like.
    assert (LAYERS - 1) * held + merging < 4000
