"""Constant memory: ten times the rows take no more, apart from the pages of the mapped file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")

#: The command line, beside a thread that looks at the process's own memory every two milliseconds.
CODE = """
import sys, threading, time
peak = 0
def watch():
    global peak
    while True:
        with open("/proc/self/status") as status:
            peak = max(peak, *(int(line.split()[1]) for line in status if line.startswith("RssAnon")))
        time.sleep(0.002)
threading.Thread(target=watch, daemon=True).start()
from isotrope.cli.main import main
sys.argv = ["isotrope", *sys.argv[1:]]
try:
    main()
finally:
    print(peak, file=sys.stderr)
"""


def _peak(folder: Path, rows: int, width: int, *options: str) -> int:
    """Peak anonymous memory in KiB of a scan of so many rows."""
    path = folder / f"{rows}.npy"
    array = np.lib.format.open_memmap(path, "w+", np.float32, (rows, width))
    rng = np.random.default_rng(0)
    for begin in range(0, rows, 10_000):
        array[begin : begin + 10_000] = rng.standard_normal((10_000, width), dtype=np.float32)
    array.flush()
    del array
    command = [sys.executable, "-c", CODE, "scan", str(path), "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    path.unlink()
    return int(done.stderr)


@pytest.mark.long
@pytest.mark.parametrize("width", [64, 128, 384])
def test_ten_times_the_rows(width: int, tmp_path: Path) -> None:
    # The best of three each: the allocator sometimes keeps a dozen megabytes of what was freed.
    small, large = (min(_peak(tmp_path, rows, width) for _ in range(3)) for rows in (40_000, 400_000))
    assert large == pytest.approx(small, rel=0.05)


@pytest.mark.long
def test_checkpoints_take_no_more(tmp_path: Path) -> None:
    often = ["--checkpoint-every", "0", "--batch-size", "4000", "-o"]
    # The best of three, as above.
    small, large = (
        min(_peak(tmp_path, rows, 32, *often, str(tmp_path / f"{rows}.{attempt}")) for attempt in range(3))
        for rows in (40_000, 160_000)
    )
    assert large == pytest.approx(small, rel=0.05)
