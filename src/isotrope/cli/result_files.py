"""Where results are written: a new folder, or for an evaluation a JSON file with everything or CSV with the scores."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from isotrope.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

_ENDINGS = (".json", ".csv")


def name_new_folder(parent: str, name: str) -> Path:
    """Name a folder for results that is not taken yet, by the time, even if the clock was set back; it is not made."""
    first = Path(parent) / f"{name}-{datetime.now():%Y%m%d-%H%M%S}"
    others = (first.with_name(f"{first.name}-{number}") for number in count(2))
    return first if not first.exists() else next(other for other in others if not other.exists())


class Result(Protocol):
    """An evaluation's result."""

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data."""

    def to_json(self) -> str:
        """Everything as one JSON document."""

    def to_frame(self) -> pd.DataFrame:
        """The scores as a tidy table."""


def check_result_file(path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix.lower() not in _ENDINGS:
        raise StoreError(f"cannot write {str(path)!r}; give a file that ends in {' or '.join(_ENDINGS)}.")
    if path.exists():
        raise StoreError(f"{str(path)!r} is there already, and is never written over; give a new file with -o.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name} in; make it first.")


def deliver_result(result: Result, path: Path | None, show: Callable[[Any], None], *, json: bool) -> None:
    """Write a result, whole or not at all, and print it.

    Args:
        result: The result.
        path: The file to write, None for no file.
        show: Prints the result for people.
        json: Whether to print JSON instead.
    """
    from isotrope.cli.output import echo, print_json
    from isotrope.formats.printable import format_csv
    from isotrope.storage.files import write_text

    if path is not None:
        is_json = path.suffix.lower() == ".json"
        write_text(path, result.to_json() + "\n" if is_json else format_csv(result.to_frame()))
    if json:
        print_json(result.to_dict())
        return
    show(result)
    if path is not None:
        echo(f"\nWritten to {path}.")
