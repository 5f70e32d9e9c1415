"""10 million × 384 float32 vectors, 15 GB on disk, scanned and repaired in constant memory.

The file is made first, then `isotrope scan`, `isotrope repair fit` and `isotrope repair apply` run over it as a user
would run them, each in a process of its own whose memory is looked at every 20 ms. Bar: each under 2 GB, its own memory
(anonymous pages) and what it has mapped of files, libraries among them, together. Needs twice the file's size on disk.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np

from machine import describe

#: Rows that are made at a time.
_PIECE = 50_000

#: Bytes that a process may hold.
_BAR = 2_000_000_000


class Cost(NamedTuple):
    """Seconds of a command, and bytes at their peak: its own, and those that are mapped from files."""

    seconds: float
    own: int
    mapped: int


def write(path: Path, rows: int, width: int) -> float:
    """Make the file: rows with a common mean and a falling spectrum, as embeddings have. Seconds that it took."""
    begin = time.perf_counter()
    rng = np.random.default_rng(0)
    spread = (1.0 / np.sqrt(np.arange(1, width + 1))).astype(np.float32)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, width)})
        for start in range(0, rows, _PIECE):
            piece = rng.standard_normal((min(_PIECE, rows - start), width), dtype=np.float32) * spread
            piece += np.float32(0.05)
            piece.tofile(file)
    return time.perf_counter() - begin


def run(*arguments: object) -> Cost:
    """Run a command of isotrope to its end, watching its memory."""
    command = [sys.executable, "-m", "isotrope", *map(str, arguments), "--json"]
    begin = time.perf_counter()
    own = mapped = 0
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        try:
            lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except (OSError, ValueError):
            break
        own = max(own, _bytes(lines.get("RssAnon", "0 kB")))
        mapped = max(mapped, _bytes(lines.get("RssFile", "0 kB")))
        time.sleep(0.02)
    text, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    json.loads(text)
    return Cost(time.perf_counter() - begin, own, mapped)


def _bytes(text: str) -> int:
    return int(text.split()[0]) * 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--folder", type=Path, default=None, help="where the files are made; a temporary one")
    parser.add_argument("--repair", default="whitening")
    arguments = parser.parse_args()
    print(describe())
    rows, width = arguments.rows, arguments.width
    size = 4 * rows * width
    with tempfile.TemporaryDirectory(dir=arguments.folder) as place:
        source, fitted, out = (Path(place) / name for name in ("rows.npy", "repair", "repaired.npy"))
        made = write(source, rows, width)
        print(f"\n{rows:,} × {width} float32, {size / 1e9:.1f} GB on disk, written in {made:.0f} s")
        commands = {
            "scan": ("scan", source),
            "scan, fast": ("scan", source, "--precision", "fast"),
            "repair fit": ("repair", "fit", source, "--with", arguments.repair, "-o", fitted),
            "repair apply": ("repair", "apply", fitted, source, "-o", out),
        }
        for name, command in commands.items():
            cost = run(*command)
            bar = "met" if cost.own + cost.mapped < _BAR else "MISSED"
            print(
                f"{name:12}  {cost.seconds:7.1f} s  {rows / cost.seconds:12,.0f} rows/s  "
                f"{size / cost.seconds / 1e6:6,.0f} MB/s  {cost.own / 1e6:5,.0f} MB of its own "
                f"and {cost.mapped / 1e6:,.0f} MB mapped of files (bar 2,000: {bar})"
            )
        check(source, out, fitted)


def check(source: Path, out: Path, fitted: Path) -> None:
    """Say how far some repaired rows are from the repair applied to them alone, and how isotropic they are."""
    from isotrope import load_repair

    before, after = (np.load(path, mmap_mode="r", allow_pickle=False) for path in (source, out))
    which = np.linspace(0, len(before) - 1, 20_000).astype(int)
    image = load_repair(fitted).transform(np.asarray(before[which], np.float64))
    rows = np.asarray(after[which], np.float64)
    spread = np.linalg.svd(rows - rows.mean(0), compute_uv=False)
    print(
        f"20,000 repaired rows: at most {np.abs(rows - image).max():.1e} from the repair in float64; "
        f"singular values {spread.min() / spread.max():.3f} to 1 of the largest"
    )


if __name__ == "__main__":
    main()
