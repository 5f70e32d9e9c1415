"""faiss index files: the vectors that an index gives back, and a new flat index of repaired ones with the same ids."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, StoreError
from isotrope.sources.vectors.array_files import check_no_names
from isotrope.sources.vectors.row_blocks import Block, Piece, check_matrix
from isotrope.sources.vectors.stores.address import Address
from isotrope.sources.vectors.stores.store import Records, Store, import_package, name_store_in_errors
from isotrope.sources.vectors.unreadable_files import check_safe_to_read
from isotrope.storage.files import check_regular, remove_leftovers_of, write_atomically
from isotrope.storage.locks import reserve_path
from isotrope.storage.provenance import describe_file

#: Kinds of index that give their vectors back as they were, and kinds that give back what their codes stand for.
#: Others are refused: asked for vectors, faiss ends the whole process on some of them.
_EXACT = {"IndexFlat", "IndexFlatL2", "IndexFlatIP", "IndexHNSWFlat", "IndexNSGFlat", "IndexIVFFlat"}
_APPROXIMATE = {
    "IndexScalarQuantizer", "IndexIVFScalarQuantizer", "IndexHNSWSQ", "IndexPQ", "IndexIVFPQ", "IndexHNSWPQ",
}  # fmt: skip

_APPROXIMATION = "The vectors are approximations: the index keeps codes, from which faiss makes them."

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class FaissVectors(Store):
    """The vectors of an index file: of inverted lists in the order of their ids, of others as they were added."""

    kind: str
    metric: int
    exact: bool

    @property
    def facts(self) -> Mapping[str, Any]:
        return {**describe_file(self.address.place), "store": "faiss"} | self.details

    @property
    def details(self) -> dict[str, Any]:
        note = {} if self.exact else {"note": _APPROXIMATION}
        return {"index": self.kind, "metric": self.metric} | note

    @property
    def column_names(self) -> list[str]:
        return ["id"]

    def read_column(self, name: str, size: int) -> Iterator[list[Any]]:
        """The ids; where they are the rows' numbers, these."""
        with name_store_in_errors(self.address):
            ids = _open(self.address.place).ids
        for low in range(0, self.block.rows, size):
            part = range(low, min(low + size, self.block.rows))
            yield list(part) if ids is None else ids[part.start : part.stop].tolist()

    def records(self, size: int) -> Records:
        """Ids (m,), and vectors; where the ids are the rows' numbers, None."""
        return _records(self.address, self.block.rows, 0, size)

    def target(self, address: Address, column: str | None, width: int) -> FaissTarget:
        """A new file with a flat index of the same metric and ids."""
        path = Path(address.place)
        if column is not None:
            raise InputError(f"a faiss index has one nameless column, so {column!r} has no use; leave it out.")
        if path.exists():
            raise StoreError(f"{str(path)!r} is there already, and is never written over; choose another name.")
        if not path.absolute().parent.is_dir():
            raise StoreError(f"there is no folder {str(path.parent)!r} to write {path.name!r} into; make it first.")
        return FaissTarget(address, self.metric, width)


@dataclass(frozen=True)
class FaissTarget:
    """A file of a flat index that is not there yet."""

    address: Address
    metric: int
    width: int

    @property
    def words(self) -> str:
        return f"the new flat index {self.address} with the same ids and metric"

    def write(self, records: Records) -> None:
        """Write the index as faiss does, row by row, so that it never has to fit into memory."""
        path = Path(self.address.place).absolute()
        with reserve_path(path):
            remove_leftovers_of(path)
            write_atomically(path, partial(self._write, records), new=True)

    def _write(self, records: Records, path: Path) -> None:
        faiss = _faiss()
        empty = faiss.serialize_index(faiss.IndexFlat(self.width, self.metric)).tobytes()
        ids: list[Ids] = []
        rows, heads = 0, [empty]
        with path.open("wb") as file:
            for keys, vectors in records:
                if not rows:
                    # An index of ids begins like the one inside, and has the ids behind it.
                    heads = [empty] if keys is None else [b"IxM2" + empty[4:], empty]
                    _write_heads(file, heads, 0, self.width)
                ids += [] if keys is None else [keys]
                rows += len(vectors)
                file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            if ids:
                file.write(rows.to_bytes(8, "little") + np.concatenate(ids).astype("<i8").tobytes())
            file.seek(0)
            _write_heads(file, heads, rows, self.width)


def _write_heads(file: IO[bytes], heads: list[bytes], rows: int, width: int) -> None:
    """The beginnings of empty indexes (four letters, width, rows, ..., count of numbers), for so many rows."""
    for head in heads:
        file.write(head[:8] + rows.to_bytes(8, "little") + head[16:-8])
    file.write((rows * width).to_bytes(8, "little"))


def open_faiss(address: Address, column: str | None, group_by: str | None) -> FaissVectors:
    """The vectors of an index file."""
    path = Path(address.place)
    check_no_names(f"{path} is a faiss index, which", column, group_by)
    check_regular(path)
    if not path.is_file():
        raise InputError(f"there is no file {path}, expected a faiss index; check the path.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes), expected a faiss index; write the file again.")
    check_safe_to_read(address.place, lambda: _read(address.place))
    opened = _open(address.place)
    rows, width = int(opened.index.ntotal), int(opened.index.d)
    check_matrix(str(path), (rows, width), "float32")
    block = Block(str(path), rows, width, "float32", partial(_pieces, address, rows))
    return FaissVectors(address, block, 0, opened.kind, int(opened.owner.metric_type), opened.exact)


def _pieces(address: Address, rows: int, start: int, size: int) -> Iterator[Piece]:
    return ((vectors, None) for _, vectors in _records(address, rows, start, size))


def _records(address: Address, rows: int, start: int, size: int) -> Iterator[tuple[Ids | None, NDArray[np.float32]]]:
    """Ids, None where they are the rows' numbers, and vectors from row `start` on."""
    with name_store_in_errors(address):
        opened = _open(address.place)
        for low in range(start, rows, size):
            ids = None if opened.ids is None else opened.ids[low : low + size]
            yield ids, opened.vectors(low, min(low + size, rows))


class _Opened(NamedTuple):
    """An index that gives back vectors.

    Attributes:
        owner: What was read, and must live as long.
        keys: What to ask the index for, None for row numbers.
        ids: The ids of the rows, in their order, None where they are the row numbers.
    """

    owner: Any
    index: Any
    kind: str
    exact: bool
    keys: Ids | None
    ids: Ids | None

    def vectors(self, low: int, high: int) -> NDArray[np.float32]:
        keys = np.arange(low, high, dtype=np.int64) if self.keys is None else self.keys[low:high]
        found: NDArray[np.float32] = self.index.reconstruct_batch(keys)
        return found


def _open(path: str) -> _Opened:
    """An index whose codes are mapped, not loaded; ids of inverted lists are (16 bytes a row)."""
    faiss, owner = _faiss(), _read(path)
    index, ids, kind, exact = owner, None, type(owner).__name__, True
    if kind in ("IndexIDMap", "IndexIDMap2"):
        ids = faiss.vector_to_array(index.id_map)
        index = faiss.downcast_index(index.index)
        kind = f"{kind}({type(index).__name__})"
    inner = index
    if isinstance(index, faiss.IndexPreTransform):
        _check_transforms(faiss, path, index)
        exact, inner = False, faiss.downcast_index(index.index)
    name = type(inner).__name__
    if name not in _EXACT | _APPROXIMATE:
        known = ", ".join(sorted(n.removeprefix("Index") for n in _EXACT | _APPROXIMATE))
        raise InputError(f"{path} is a faiss {kind} of {name}, which gives no vectors back; expected one of {known}.")
    _check_row_counts(faiss, path, index, inner, ids)
    keys = _list_ids(faiss, path, inner) if isinstance(inner, faiss.IndexIVF) else None
    if keys is not None and ids is not None:
        raise InputError(f"{path} has ids of its own inside an {type(owner).__name__}, which cannot be told apart.")
    return _Opened(owner, index, kind, exact and name in _EXACT, keys, keys if ids is None else ids)


def _read(path: str) -> Any:
    """The index in a file, its codes mapped."""
    faiss = _faiss()
    # No array in a file is longer than the file: what a damaged one announces is not allocated.
    before = faiss.get_deserialization_vector_byte_limit()
    faiss.set_deserialization_vector_byte_limit(Path(path).stat().st_size + 1)
    try:
        return faiss.read_index(path, faiss.IO_FLAG_MMAP_IFC)
    finally:
        faiss.set_deserialization_vector_byte_limit(before)


def _list_ids(faiss: Any, path: str, index: Any) -> Ids | None:
    """The ids in the inverted lists, ascending, None where they are the row numbers; the index learns where each is."""
    lists = index.invlists
    sizes = [lists.list_size(i) for i in range(lists.nlist)]
    parts = [faiss.rev_swig_ptr(lists.get_ids(i), n).copy() for i, n in enumerate(sizes) if n]
    ids: Ids = np.sort(np.concatenate([*parts, np.empty(0, np.int64)]))
    if len(ids) != index.ntotal or (len(ids) and (ids[0] < 0 or (ids[1:] == ids[:-1]).any())):
        raise InputError(f"{path} holds an id twice, or not as many ids as rows; build the index again.")
    plain = bool((ids == np.arange(len(ids))).all())
    index.set_direct_map_type(faiss.DirectMap.Array if plain else faiss.DirectMap.Hashtable)
    return None if plain else ids


def _check_transforms(faiss: Any, path: str, index: Any) -> None:
    """Refuse transforms in front of an index that faiss cannot undo."""
    for i in range(index.chain.size()):
        step = faiss.downcast_VectorTransform(index.chain.at(i))
        if not getattr(step, "is_orthonormal", isinstance(step, faiss.CenteringTransform)):
            raise InputError(
                f"{path} has a {type(step).__name__} in front, which faiss cannot undo; give the vectors from before."
            )


def _check_row_counts(faiss: Any, path: str, index: Any, inner: Any, ids: Ids | None) -> None:
    """Refuse numbers of rows that do not agree: faiss would read beyond what is there."""
    codes = faiss.downcast_index(inner.storage) if hasattr(inner, "storage") else inner
    rows = {int(i.ntotal) for i in (index, inner, codes)} | (set() if ids is None else {len(ids)})
    if len(rows) > 1 or (hasattr(codes, "codes") and codes.codes.size() != rows.copy().pop() * codes.code_size):
        raise InputError(f"{path} announces other numbers of rows than it holds; write the file again.")


def _faiss() -> Any:
    return import_package("faiss", "reading faiss indexes")
