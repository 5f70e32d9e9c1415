"""Vectors that an endpoint has answered, kept in a folder: what is there is never asked for again."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any
from weakref import finalize

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.storage.files import check_writable, name_path_in_errors, read_arrays, write_arrays, write_text
from isotrope.storage.redaction import mask_secrets

#: Bytes of the hash of a text.
_KEY_BYTES = 16

#: Files whose vectors stay in memory: texts that come one after another are often in the same few.
_FILES_IN_MEMORY = 16


def hash_text(text: str) -> bytes:
    """Hash a text, to know it again."""
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=_KEY_BYTES).digest()


class KeptVectors:
    """The vectors of one model of one endpoint, in safetensors files with checksums, one for each answer.

    A file is written whole or not at all, and never changed. Vectors of other models and endpoints can be in the same
    folder. Several processes can add to it.

    Args:
        folder: Where vectors are kept; None for a temporary folder that goes with this object.
        url: Of the endpoint; secrets in it do not count.
        model: The name of the model.
        run: The run folder that the folder is in, if it is in one.
    """

    def __init__(self, folder: str | Path | None, url: str, model: str, run: Path | None = None) -> None:
        self.folder, self._run = None if folder is None else Path(folder), run
        self._facts = {"endpoint": mask_secrets(url), "model": model}
        name = hashlib.sha256(json.dumps(self._facts).encode()).hexdigest()[: 2 * _KEY_BYTES]
        place = Path(mkdtemp(prefix="isotrope-")) if self.folder is None else self.folder.absolute()
        if self.folder is None:
            finalize(self, rmtree, place, ignore_errors=True)
        self._files = place / name
        self._places: dict[bytes, tuple[Path, int]] = {}
        self.width: int | None = None
        self._adding = threading.Lock()
        self._read_file = lru_cache(_FILES_IN_MEMORY)(_read_vectors)
        for path in sorted(self._files.glob("*.safetensors")):
            keys, width = _read_keys(path)
            self._check_width(width, f"those of {str(path)!r}")
            self._add_places(keys, path)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def __len__(self) -> int:
        return len(self._places)

    def prepare(self) -> None:
        """Refuse a folder that cannot be written into, before anything is paid for."""
        if self.folder is not None:
            check_writable(self._files, "--keep-vectors")

    def add(self, keys: Sequence[bytes], rows: NDArray[np.float32]) -> None:
        """Write the vectors (n, d) of texts, by their hashes; they are on the disk when this returns.

        Several threads may add, while one reads.
        """
        with self._adding:
            self._check_width(rows.shape[1], "those of the latest answer")
            if not self._places:
                write_text(self._files / "endpoint.json", json.dumps(self._facts))
        path = self._files / f"{hashlib.sha256(b''.join(keys)).hexdigest()[:32]}.safetensors"
        arrays: dict[str, NDArray[Any]] = {"keys": np.frombuffer(b"".join(keys), np.uint8).reshape(-1, _KEY_BYTES)}
        arrays["rows"] = rows
        write_arrays(path, {**arrays, "sha256": _compute_checksum(arrays)})
        with self._adding:
            self._add_places(list(keys), path)

    def read_rows(self, keys: Sequence[bytes]) -> NDArray[np.float32]:
        """Read the vectors (n, d) of texts by their hashes, in this order."""
        rows = np.empty((len(keys), self.width or 0), np.float32)
        for number, key in enumerate(keys):
            path, place = self._places[key]
            rows[number] = self._read_file(path)[place]
        return rows

    def describe_progress(self) -> str:
        """How many texts are done, and how to go on without sending them again; empty where none is done."""
        if not self._places:
            return ""
        done = "1 text is" if len(self) == 1 else f"{len(self):,} texts are"
        if self.folder is None:
            return f"{done} done and not kept: name a folder with --keep-vectors to be able to go on"
        how = "" if self._run is None else f" and -o {self._run} --resume"
        return f"{done} done and kept in {str(self.folder)!r}: go on with the same command{how}"

    def _add_places(self, keys: list[bytes], path: Path) -> None:
        self._places |= {key: (path, place) for place, key in enumerate(keys)}

    def _check_width(self, width: int, which: str) -> None:
        if self.width not in (None, width):
            kept = "" if self.folder is None else f" and keep its vectors in another folder than {str(self.folder)!r}"
            raise InputError(
                f"the embeddings of {self._facts['model']} at {self._facts['endpoint']} have {self.width:,} "
                f"dimensions, and {which} have {width:,}; check which model the server runs{kept}."
            )
        self.width = width


def _read_keys(path: Path) -> tuple[list[bytes], int]:
    """Read the hashes of the texts in a file, and the width of their vectors; the vectors are not read."""
    from safetensors import SafetensorError, safe_open

    with name_path_in_errors(path):
        try:
            with safe_open(path, framework="numpy") as file:
                keys, shape = file.get_tensor("keys"), file.get_slice("rows").get_shape()
        except SafetensorError as error:
            raise _damage_error(path) from error
    if keys.dtype != np.uint8 or len(shape) != 2 or keys.shape != (shape[0], _KEY_BYTES):
        raise _damage_error(path)
    return [key.tobytes() for key in keys], int(shape[1])


def _read_vectors(path: Path) -> NDArray[Any]:
    """Read the vectors of a file, checked."""
    arrays = read_arrays(path)
    checksum = arrays.pop("sha256", None)
    if checksum is None or set(arrays) != {"keys", "rows"} or arrays["rows"].dtype != np.float32:
        raise _damage_error(path)
    if not np.array_equal(checksum, _compute_checksum(arrays)):
        raise _damage_error(path)
    return arrays["rows"]


def _compute_checksum(arrays: dict[str, NDArray[Any]]) -> NDArray[np.uint8]:
    digest = hashlib.sha256()
    for name in ("keys", "rows"):
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return np.frombuffer(digest.digest(), np.uint8)


def _damage_error(path: Path) -> StoreError:
    return StoreError(f"{str(path)!r} is damaged or was changed; delete it, and its texts are sent again.")
