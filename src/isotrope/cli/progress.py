"""What a command says while it works: a progress bar, warnings, and how to go on where it is stopped."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from isotrope.formats.printable import escape_line

if TYPE_CHECKING:
    from rich.progress import TaskID

    from isotrope.runs.run import Run


class Bar:
    """A progress bar on standard error, only where that is a terminal; call it with what, done and total."""

    def __init__(self, *, quiet: bool) -> None:
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeRemainingColumn

        from isotrope.cli.output import console

        shown = sys.stderr.isatty() and not quiet
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeRemainingColumn(),
            console=console(stderr=True),
            transient=True,
            disable=not shown,
        )
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def __call__(self, what: str, done: float, total: int | float | None) -> None:
        if what not in self._tasks:
            for task in self._tasks.values():
                self._progress.update(task, visible=False)
            self._tasks[what] = self._progress.add_task(escape_line(what), total=total, count="")
        if isinstance(total, float):  # work, which is shown as a share
            count = f"{done / total:.0%}" if total else ""
        else:
            count = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        self._progress.update(self._tasks[what], completed=done, total=total, count=count)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print the warnings inside as sentences on standard error."""
    from isotrope.cli.output import print_problem

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning):
        print_problem(f"{text.rstrip('.')}.")


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
    if run.finished or run.resumable or run.has_vectors:
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
