"""What a command says when the user or the system stops it: only what is true of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from isotrope.runs.run import Run


class Stopped(BaseException):
    """The user, or the system, wants the program to end.

    Attributes:
        number: Of the signal.
        advice: How to go on, where that is possible.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number, self.advice = number, ""

    def __str__(self) -> str:
        return f"stopped; {self.advice}." if self.advice else "stopped."


@contextmanager
def advise_when_stopped(advice: Callable[[], str]) -> Iterator[None]:
    """Let `advice` say how to go on, after everything inside has been cleaned up."""
    try:
        yield
    except Stopped as stopped:
        stopped.advice = advice()
        raise


def advise_on_run(run: Run | None) -> str:
    """How to go on with a scan that was stopped."""
    if run is None:
        return "nothing was kept; name a run folder with -o to be able to continue"
    if run.finished or run.resumable:
        return _continue(run.folder)
    return "no checkpoint had been written yet, so there is nothing to continue"


def advise_on_folder(folder: Path | None, *kept: str) -> str:
    """How to go on with a command that keeps each part it has finished.

    Args:
        folder: Where the parts are.
        kept: Patterns of the files of finished parts, one of which is enough to go on from.
    """
    if folder is None:
        return "nothing was kept; name a folder with -o to be able to continue"
    if any(next(folder.glob(pattern), None) is not None for pattern in kept):
        return _continue(folder)
    return "no part had been finished yet, so there is nothing to continue"


def _continue(folder: Path) -> str:
    return f"continue with the same command and -o {folder} --resume"
