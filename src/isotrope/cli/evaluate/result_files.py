"""Where an evaluation's result is written: JSON with everything, or CSV with the scores."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from isotrope.errors import StoreError

if TYPE_CHECKING:
    import pandas as pd

_ENDINGS = (".json", ".csv")


class Result(Protocol):
    """An evaluation's result."""

    def to_json(self) -> str:
        """Everything as one JSON document."""

    def to_frame(self) -> pd.DataFrame:
        """The scores as a tidy table."""


def refuse_result_file(path: Path | None) -> None:
    """Refuse what cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix.lower() not in _ENDINGS:
        raise StoreError(f"cannot write {str(path)!r}; give a file that ends in {' or '.join(_ENDINGS)}.")
    if path.exists():
        raise StoreError(f"{str(path)!r} is there already, and is never written over; give a new file with -o.")
    if not path.absolute().parent.is_dir():
        raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name} in; make it first.")


def write_result(path: Path, result: Result) -> None:
    """Write a result, whole or not at all."""
    from isotrope.formats.csv import csv_text
    from isotrope.storage.files import write_text

    is_json = path.suffix.lower() == ".json"
    write_text(path, result.to_json() + "\n" if is_json else csv_text(result.to_frame()))
