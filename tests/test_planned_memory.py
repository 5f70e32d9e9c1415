"""The memory that --dry-run announces is about what a scan takes, above what the program takes by itself."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from test_memory import CODE

pytestmark = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")

#: Measures that need no spectrum, which is what takes long; the matrices of their intervals are the same.
QUICK = ("--measures", "mean_cosine,variance,isoscore", "--json")
REPORT = ("-o", "run")


def _run(folder: Path, shape: tuple[int, int], *options: str) -> subprocess.CompletedProcess[str]:
    path = folder / f"{shape[0]}x{shape[1]}.npy"
    np.save(path, np.random.default_rng(0).standard_normal(shape, dtype=np.float32))
    command = [sys.executable, "-c", CODE, "scan", str(path), *options]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder)


def _taken(folder: Path, shape: tuple[int, int], *options: str) -> float:
    """Peak anonymous memory of a scan in bytes."""
    return 1024.0 * int(_run(folder, shape, *options).stderr.split()[-1])


def _planned(folder: Path, shape: tuple[int, int], *options: str) -> float:
    """What --dry-run announces, in bytes."""
    return float(json.loads(_run(folder, shape, *options, "--json", "--dry-run").stdout)["memory"])


@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((300, 1024), QUICK),
        pytest.param((300, 2048), QUICK, marks=pytest.mark.long),
        pytest.param((300, 4096), QUICK, marks=pytest.mark.long),
        pytest.param((20_000, 384), REPORT, marks=pytest.mark.long),
        pytest.param((5_000, 1024), REPORT, marks=pytest.mark.long),
    ],
)
def test_the_plan_is_within_half_of_what_a_scan_takes(
    shape: tuple[int, int], options: tuple[str, ...], tmp_path: Path
) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    planned = _planned(large, shape, *options) - _planned(small, (100, 8), *options)
    taken = _taken(large, shape, *options) - _taken(small, (100, 8), *options)
    assert taken / 1.5 < planned < 1.5 * taken
