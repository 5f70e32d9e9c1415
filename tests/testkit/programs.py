"""Programs in processes of their own that begin with the heavy packages imported.

Importing torch, transformers and sentence-transformers takes longer than most programs of the tests. One server imports
them once; each program is a fork of it, which has imported nothing of isotrope.
"""

from __future__ import annotations

import os
import sys
import tempfile
from multiprocessing import forkserver, get_context
from pathlib import Path
from typing import NamedTuple
from unittest import mock

_HEAVY = ["torch", "transformers.modeling_utils", "transformers.models.auto.modeling_auto", "sentence_transformers"]

_WITHOUT_ISOTROPE = """
import sys
sys.modules["isotrope"] = None
try:
    import isotrope
except ImportError:
    pass
else:
    raise AssertionError("isotrope can be imported")
"""


class Done(NamedTuple):
    """What a program has printed, and how it has ended."""

    code: int | None
    out: str
    err: str


def run_program(code: str, folder: Path, **variables: str) -> Done:
    """Run Python code in a folder, in a new process that has `variables` in its environment and no network."""
    processes = get_context("forkserver")
    processes.set_forkserver_preload(_HEAVY)
    with mock.patch.dict(os.environ, HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="warning"):
        forkserver.ensure_running()
    with tempfile.TemporaryDirectory() as said:
        out, err = Path(said, "out"), Path(said, "err")
        environment = {**os.environ, "HF_HUB_OFFLINE": "1", **variables}
        process = processes.Process(target=_execute, args=(code, folder, environment, out, err))
        process.start()
        process.join()
        return Done(process.exitcode, out.read_text("utf-8"), err.read_text("utf-8"))


def run_without_isotrope(code: str, folder: Path) -> None:
    """Run Python code in a folder, in a new process that cannot import isotrope: what an export must stand."""
    done = run_program(_WITHOUT_ISOTROPE + code, folder)
    assert done.code == 0, done.err


def _execute(code: str, folder: Path, environment: dict[str, str], out: Path, err: Path) -> None:
    for path, stream in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[1:] = []
    exec(compile(code, "<program>", "exec"), {"__name__": "__main__"})
