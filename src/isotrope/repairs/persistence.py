"""A saved repair: a folder with its arrays and a config, written at once, checked when read, never pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import StoreError
from isotrope.storage.files import name_path_in_errors, read_arrays, write_arrays, write_folder, write_text
from isotrope.storage.redaction import mask_facts
from isotrope.version import __version__

FORMAT = 1
CONFIG, ARRAYS = "config.json", "repair.safetensors"


def write(
    folder: str | Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], *, overwrite: bool = False
) -> None:
    """Write a repair; `overwrite` replaces an existing repair, and nothing else is ever replaced."""
    target = Path(folder).absolute()
    check_folder(target, "repair", lambda names: names <= {CONFIG, ARRAYS}, overwrite=overwrite)
    now = datetime.now(timezone.utc).isoformat(timespec="seconds")
    # Once to JSON and back, so that what is hashed is what will be read.
    config = json.loads(
        json.dumps({"format": FORMAT, **mask_facts(facts), "saved": now, "isotrope": __version__}, default=_to_json)
    )

    def fill(beside: Path) -> None:
        write_arrays(beside / ARRAYS, arrays)
        checksum = _checksum(config, beside / ARRAYS)
        write_text(beside / CONFIG, json.dumps({**config, "checksum": checksum}, indent=2, ensure_ascii=False))

    write_folder(target, fill)


def read(folder: str | Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What `write` wrote: the facts and the arrays."""
    path = Path(folder)
    if not (path / CONFIG).is_file():
        raise StoreError(f"there is no saved repair in {str(folder)!r} (it has no {CONFIG}); check the folder.")
    try:
        with name_path_in_errors(path / CONFIG):
            config = json.loads((path / CONFIG).read_bytes())
        version, checksum = config["format"], config.pop("checksum")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise make_damage_error(path) from error
    if isinstance(version, int) and version > FORMAT:
        raise StoreError(
            f"the repair in {str(folder)!r} has format {version}, this isotrope reads up to {FORMAT}; "
            "update isotrope (pip install -U isotrope)."
        )
    if not (path / ARRAYS).is_file() or _checksum(config, path / ARRAYS) != checksum:
        raise make_damage_error(path)
    return config, read_arrays(path / ARRAYS)


def check_folder(target: Path, what: str, is_one: Callable[[set[str]], bool], *, overwrite: bool) -> None:
    """Check that a folder can be written: it is new or empty, or holds one of what is written and may be replaced.

    Args:
        target: the folder.
        what: what is written, in a word.
        is_one: whether a folder with files of these names holds one.
        overwrite: whether one that is there may be replaced.
    """
    if target.exists() and not target.is_dir():
        raise StoreError(f"{str(target)!r} is a file; give a folder for the {what}.")
    found = {path.name for path in target.iterdir()} if target.exists() else set()
    if found and not is_one(found):
        raise StoreError(f"the folder {str(target)!r} holds other files; give a new folder for the {what}.")
    if found and not overwrite:
        raise StoreError(f"the folder {str(target)!r} already holds a {what}; choose another, or say overwrite=True.")


def _checksum(config: Mapping[str, Any], arrays: Path) -> str:
    """A hash of the arrays' file and of the config, so that a change of either shows."""
    digest = hashlib.sha256(json.dumps(config, sort_keys=True).encode())
    with name_path_in_errors(arrays), arrays.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def make_damage_error(path: Path) -> StoreError:
    """The error for a folder that is not as it was written."""
    return StoreError(f"the repair saved in {str(path)!r} was cut short or edited; fit and save it again.")


def _to_json(value: Any) -> Any:
    """Numbers of numpy as JSON knows them."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} cannot be saved: a repair's parameters are numbers, words or lists of them")
