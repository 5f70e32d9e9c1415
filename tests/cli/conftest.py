"""Running the command line in this process, as a user types it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.cli.main import main
from testkit.command import Command, Result


@pytest.fixture
def isotrope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    """isotrope("scan", "a.npy") -> exit code, standard output, standard error; the working folder is tmp_path."""
    monkeypatch.chdir(tmp_path)
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def run(*arguments: Any) -> Result:
        monkeypatch.setattr(sys, "argv", ["isotrope", *map(str, arguments)])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
        return Result(code, *capsys.readouterr())

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.fixture
def healthy(tmp_path: Path, rng: np.random.Generator) -> Path:
    """400 isotropic rows of 8 dimensions."""
    np.save(tmp_path / "healthy.npy", rng.normal(size=(400, 8)))
    return tmp_path / "healthy.npy"


@pytest.fixture
def collapsed(tmp_path: Path, rng: np.random.Generator) -> Path:
    """400 rows of 8 dimensions that nearly all point the same way."""
    np.save(tmp_path / "collapsed.npy", rng.normal(size=(400, 8)) + 10.0)
    return tmp_path / "collapsed.npy"
