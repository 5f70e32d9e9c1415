"""Damaged inputs to every reader: a value or a sentence, and nothing else. A process each, so that a crash is seen."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.targets import TARGETS

HARNESS = Path(__file__).with_name("harness.py")

#: `make fuzz` asks for 10,000.
MANY = int(os.environ.get("ISOTROPE_FUZZ_INPUTS", "300"))


def _feed(target: str, count: int) -> None:
    done = subprocess.run(
        [sys.executable, str(HARNESS), target, str(count)], capture_output=True, text=True, timeout=60 + count / 10
    )
    last = done.stderr.strip().splitlines()[-1:]
    assert done.returncode == 0, f"code {done.returncode}, last input {last}\n{done.stdout[-3000:]}"
    assert f"{count:,} inputs" in done.stdout
    assert "0 defects" in done.stdout


@pytest.mark.parametrize("target", TARGETS)
def test_a_few_inputs(target: str) -> None:
    _feed(target, 100)


@pytest.mark.long
@pytest.mark.parametrize("target", TARGETS)
def test_many_inputs(target: str) -> None:
    _feed(target, MANY)
