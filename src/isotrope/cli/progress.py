"""What goes on while a command works: a progress bar, and warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeRemainingColumn

from isotrope.cli.output import console, print_problem
from isotrope.formats.printable import escape_line


class Bar:
    """A progress bar on standard error, only where that is a terminal; call it with what, done and total."""

    def __init__(self, *, quiet: bool) -> None:
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
        if isinstance(total, float):  # work, of which the share is what people want to know
            count = f"{done / total:.0%}" if total else ""
        else:
            count = f"{done:,} of {total:,}" if total else f"{done:,}" if done else ""
        self._progress.update(self._tasks[what], completed=done, total=total, count=count)


@contextmanager
def print_warnings() -> Iterator[None]:
    """Print the warnings inside as sentences on standard error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for text in dict.fromkeys(str(w.message) for w in caught if w.category is UserWarning):
        print_problem(f"{text.rstrip('.')}.")
