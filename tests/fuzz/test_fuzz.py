"""Damaged inputs to every reader: a value or a sentence, and nothing else. A process each, so that a crash is seen."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS

HARNESS = Path(__file__).with_name("harness.py")

#: `make fuzz` asks for 10,000.
MANY = int(os.environ.get("ISOTROPE_FUZZ_INPUTS", "300"))


def _run_harness(target: str, count: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(HARNESS), target, str(count)]
    return subprocess.run(command, capture_output=True, text=True, timeout=600 if target == "all" else 60 + count / 10)


def _feed(target: str, count: int) -> None:
    done = _run_harness(target, count)
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"code {done.returncode}, last input {last}\n{done.stdout[-3000:]}"
    assert f"{count:,} inputs" in done.stdout
    assert "0 defects" in done.stdout


def test_a_few_inputs() -> None:
    done = _run_harness("all", 40)
    lines = done.stdout.splitlines()
    for target in TARGETS:
        said = [line for line in lines if line.startswith(f"{target}: ")]
        assert re.fullmatch(r".*: 40 inputs, .* 0 defects", said[-1]), said
    assert done.returncode == 0, done.stderr[-1000:]


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_many_inputs(target: str) -> None:
    _feed(target, MANY)
