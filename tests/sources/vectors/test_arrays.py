"""ArraySource: every format against an independent reader, every refusal by its message, constant memory."""

from __future__ import annotations

import contextlib
import hashlib
import io
import itertools
import json
import pickle
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from isotrope.errors import InputError, MissingExtra
from isotrope.sources.source import Source
from isotrope.sources.vectors.source import OPENERS, ArraySource

RNG = np.random.default_rng(0)
X = RNG.normal(size=(37, 5)).astype(np.float32)
GROUPS = np.arange(37) % 3


def values(source: ArraySource, start: int = 0) -> np.ndarray:
    return np.concatenate([batch.layers[0] for batch in source.batches(start)])


def groups(source: ArraySource, start: int = 0) -> list[str]:
    return [g for batch in source.batches(start) for g in batch.rows.group]


def lists(x: np.ndarray, kind: Any = None) -> pa.Array:
    return pa.array(x.tolist(), kind or pa.list_(pa.float32()))


def write_ipc(path: Path, table: pa.Table, rows: int = 10, stream: bool = False, codec: str | None = None) -> None:
    options = pa.ipc.IpcWriteOptions(compression=codec)
    opener = pa.ipc.new_stream if stream else pa.ipc.new_file
    with pa.OSFile(str(path), "wb") as sink, opener(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=rows)


def write_h5(path: Path, **arrays: Any) -> None:
    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array


def write(path: Path, x: np.ndarray = X, label: np.ndarray = GROUPS) -> Path:
    """Write a file of the kind its name says: x as "emb", the groups as "label" where there are names."""

    def table() -> pa.Table:
        return pa.table({"label": label, "emb": lists(x)})

    writers: dict[str, Callable[[], Any]] = {
        ".npy": lambda: np.save(path, x),
        ".npz": lambda: np.savez(path, emb=x, label=label),
        ".safetensors": lambda: safetensors.numpy.save_file({"emb": x, "label": label}, path),
        ".parquet": lambda: pq.write_table(table(), path, row_group_size=10),
        ".arrow": lambda: write_ipc(path, table()),
        ".feather": lambda: feather.write_feather(table(), path),
        ".ipc": lambda: write_ipc(path, table(), stream=True),
        ".h5": lambda: write_h5(path, emb=x, label=label),
        ".hdf5": lambda: write_h5(path, emb=x, label=label),
    }
    writers[path.suffix]()
    return path


SUFFIXES = sorted(OPENERS)
NAMED = [suffix for suffix in SUFFIXES if suffix != ".npy"]
TABLES = [".parquet", ".arrow", ".feather", ".ipc"]


# What a source promises


def test_it_is_a_source() -> None:
    source: Source = ArraySource(X)
    assert (source.layers, source.width, source.total, source.unit) == ([0], 5, 37, "rows")
    assert source.token_names(np.array([1])) is None


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("batch_rows", [1, 7, 10, 1000])
def test_every_format_gives_the_same_rows_from_any_batch_on(tmp_path: Path, suffix: str, batch_rows: int) -> None:
    source = ArraySource(write(tmp_path / f"x{suffix}"), batch_rows=batch_rows)
    assert (source.width, source.total) == (5, 37)
    batches = list(source.batches())
    assert [len(b.rows) for b in batches[:-1]] == [batch_rows] * (len(batches) - 1)
    for start in range(len(batches) + 1):
        again = list(source.batches(start))
        assert len(again) == len(batches) - start
        for one, other in zip(batches[start:], again, strict=True):
            np.testing.assert_array_equal(one.layers[0], other.layers[0])
            np.testing.assert_array_equal(one.rows.sequence, other.rows.sequence)
    np.testing.assert_array_equal(values(source), X)
    sequence = np.concatenate([b.rows.sequence for b in batches])
    assert sequence.dtype == np.uint64
    np.testing.assert_array_equal(sequence, np.arange(37))
    rows = batches[0].rows
    assert rows.token is None
    assert rows.position is None
    assert rows.special is None
    assert rows.group is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_batches_are_contiguous_native_writable_copies(tmp_path: Path, suffix: str) -> None:
    for batch in ArraySource(write(tmp_path / f"x{suffix}"), batch_rows=8).batches():
        x = batch.layers[0]
        assert type(x) is np.ndarray
        assert x.flags.c_contiguous
        assert x.flags.writeable
        assert x.flags.owndata
        assert x.dtype.isnative
        assert x.dtype == np.float32


def test_an_array_in_memory_is_copied() -> None:
    x = X.copy()
    batch = next(ArraySource(x).batches())
    x[:] = 0
    np.testing.assert_array_equal(batch.layers[0], X)


@pytest.mark.parametrize("suffix", NAMED)
def test_groups_follow_the_rows(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}")
    source = ArraySource(path, column="emb", group_by="label", batch_rows=7)
    assert groups(source) == [str(g) for g in GROUPS]
    assert groups(source, 3) == [str(g) for g in GROUPS[21:]]
    np.testing.assert_array_equal(values(source, 3), X[21:])


@settings(max_examples=25, deadline=None)
@given(sizes=st.lists(st.integers(1, 9), min_size=1, max_size=5), batch_rows=st.integers(1, 12))
def test_batches_cross_files_and_skip_exactly(tmp_path_factory: Any, sizes: list[int], batch_rows: int) -> None:
    folder = tmp_path_factory.mktemp("parts")
    ends = np.cumsum([0, *sizes])
    kinds = [".npy", ".parquet", ".arrow", ".safetensors", ".npz"]
    for i, (low, high) in enumerate(itertools.pairwise(ends)):
        write(folder / f"part-{i}{kinds[i]}", X[low:high], GROUPS[low:high])
    source = ArraySource(folder, batch_rows=batch_rows)
    n = int(ends[-1])
    assert source.total == n
    for start in range(-(-n // batch_rows)):
        np.testing.assert_array_equal(values(source, start), X[start * batch_rows : n])


def test_default_batches_are_4_mib_and_at_least_256_rows() -> None:
    assert ArraySource(np.zeros((1, 1024), np.float32)).batch_rows == 1024
    assert ArraySource(np.zeros((1, 10**6), np.int8)).batch_rows == 256


def test_a_source_survives_the_way_to_a_worker(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        source = ArraySource(write(tmp_path / f"x{suffix}"))
        np.testing.assert_array_equal(values(pickle.loads(pickle.dumps(source))), X)


# Types of numbers


@pytest.mark.parametrize("dtype", ["f2", "f4", "i1", "i2", "u1", "u2", ">f4", ">i2", ">f2"])
def test_narrow_types_become_float32(tmp_path: Path, dtype: str) -> None:
    x = RNG.integers(0, 100, (6, 3)).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    for data in (x, tmp_path / "x.npy"):
        y = values(ArraySource(data))
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, x)
        assert values(ArraySource(data, exact=True)).dtype == np.float64


@pytest.mark.parametrize("dtype", ["f8", "i4", "i8", "u4", "u8", ">f8", ">i8"])
def test_wide_types_become_float64(tmp_path: Path, dtype: str) -> None:
    x = (RNG.integers(0, 2**31, (6, 3))).astype(dtype)
    np.save(tmp_path / "x.npy", x)
    for data in (x, tmp_path / "x.npy"):
        y = values(ArraySource(data))
        assert y.dtype == np.float64
        np.testing.assert_array_equal(y, x)


def test_fortran_order(tmp_path: Path) -> None:
    x = np.asfortranarray(X)
    np.save(tmp_path / "x.npy", x)
    np.savez_compressed(tmp_path / "x.npz", x)
    for data in (x, tmp_path / "x.npy", tmp_path / "x.npz"):
        source = ArraySource(data, batch_rows=10)
        np.testing.assert_array_equal(values(source), X)
        assert all(b.layers[0].flags.c_contiguous for b in source.batches())


def test_mixed_types_over_files_are_one_type(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X.astype(np.float64))
    source = ArraySource(tmp_path, batch_rows=30)
    assert {b.layers[0].dtype for b in source.batches()} == {np.dtype(np.float64)}
    assert source.describe()["dtype"] == "float32, float64"


def test_nan_infinity_and_zero_rows_pass_untouched() -> None:
    x = np.array([[np.nan, 1], [np.inf, -np.inf], [0, -0.0]], np.float32)
    assert values(ArraySource(x)).tobytes() == x.tobytes()


def test_one_row_is_allowed() -> None:
    assert ArraySource(X[:1]).total == 1


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    for tensor in (x, x.half(), x.bfloat16(), x.double(), x.t().contiguous().t(), x.clone().requires_grad_()):
        y = values(ArraySource(tensor, batch_rows=10))
        np.testing.assert_array_equal(y, tensor.detach().to(torch.float64).numpy())
        assert y.dtype == (np.float64 if tensor.dtype == torch.float64 else np.float32)
    with pytest.raises(InputError, match="float8"):
        ArraySource(x.to(torch.float8_e4m3fn))
    with pytest.raises(InputError, match=r"reshape\(1, -1\)"):
        ArraySource(x[0])


def test_bfloat16_safetensors_as_torch_reads_them(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import safetensors.torch

    x = torch.cat([torch.from_numpy(X), torch.tensor([[torch.inf, -torch.inf, torch.nan, 0.0, -0.0]])]).bfloat16()
    safetensors.torch.save_file({"emb": x}, tmp_path / "x.safetensors")
    y = values(ArraySource(tmp_path / "x.safetensors", batch_rows=10))
    np.testing.assert_array_equal(y, x.float().numpy())


def test_torch_is_not_imported(tmp_path: Path) -> None:
    for suffix in SUFFIXES:
        write(tmp_path / f"x{suffix}")
    code = (
        "import sys, numpy; from isotrope.sources.vectors.source import ArraySource\n"
        f"n = sum(len(b.rows) for b in ArraySource({str(tmp_path)!r}, ).batches())\n"
        "list(ArraySource(numpy.eye(3)).batches())\n"
        "print(n, 'torch' in sys.modules)"
    )
    # Labels are one-dimensional and so no candidates, which makes one source of the whole folder.
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == [str(37 * len(SUFFIXES)), "False"]


# Choosing an array


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz_blocks_in_name_order_with_groups(tmp_path: Path, save: Any) -> None:
    path = tmp_path / "x.npz"
    save(path, b=X[20:], a=X[:20], label=GROUPS)
    source = ArraySource(path, group_by="label", batch_rows=6)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(values(source), np.concatenate([arrays["a"], arrays["b"]]))
    assert groups(source) == [str(g) for g in GROUPS]
    assert groups(source, 4) == [str(g) for g in GROUPS[24:]]
    np.testing.assert_array_equal(values(ArraySource(path, column="b")), X[20:])


def test_safetensors_blocks_in_name_order(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    safetensors.numpy.save_file({"b": X[20:], "a": X[:20]}, path)
    np.testing.assert_array_equal(values(ArraySource(path)), X)


def test_hdf5_slash_paths_chunks_and_compression(tmp_path: Path) -> None:
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("deep/er/emb", data=X.astype(">f8"), chunks=(4, 5), compression="gzip")
        file.create_dataset("deep/wide", data=np.ones((3, 9)))
    for name in ("deep/er/emb", "/deep/er/emb"):
        source = ArraySource(path, column=name, batch_rows=6)
        np.testing.assert_array_equal(values(source), X)
        assert source.describe()["dtype"] == "float64"


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".h5"])
def test_arrays_of_different_width_are_named(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    arrays = {"a": np.ones((3, 2)), "b": np.ones((3, 4))}
    writers: dict[str, Any] = {
        ".npz": lambda: np.savez(path, **arrays),
        ".safetensors": lambda: safetensors.numpy.save_file(arrays, path),
        ".h5": lambda: write_h5(path, **arrays),
    }
    writers[suffix]()
    with pytest.raises(InputError, match=r"a \(3, 2\) float64, b \(3, 4\) float64.*--column"):
        ArraySource(path)
    assert ArraySource(path, column="b").width == 4


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float32()),
        pa.large_list(pa.float64()),
        pa.list_(pa.float16(), 5),
        pa.list_(pa.float32(), 5),
        pa.list_(pa.int8()),
        pa.large_list(pa.int64()),
    ],
    ids=str,
)
@pytest.mark.parametrize("suffix", TABLES)
def test_list_columns_of_all_kinds(tmp_path: Path, suffix: str, kind: pa.DataType) -> None:
    x = RNG.integers(-50, 50, (37, 5)).astype(kind.value_type.to_pandas_dtype())
    table = pa.table({"emb": pa.array(list(map(list, x)), kind)})
    path = tmp_path / f"x{suffix}"
    pq.write_table(table, path, row_group_size=8) if suffix == ".parquet" else write_ipc(path, table, 8)
    source = ArraySource(path, batch_rows=6)
    np.testing.assert_array_equal(values(source), x)
    np.testing.assert_array_equal(values(source, 2), x[12:])
    assert source.describe()["dtype"] == x.dtype.name


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("codec", [None, "lz4", "zstd"])
def test_arrow_files_and_streams_plain_and_compressed(tmp_path: Path, stream: bool, codec: str | None) -> None:
    path = tmp_path / "x.arrow"
    write_ipc(path, pa.table({"text": ["t"] * 37, "emb": lists(X)}), stream=stream, codec=codec)
    np.testing.assert_array_equal(values(ArraySource(path, group_by="text", batch_rows=4), 5), X[20:])


def test_null_numbers_become_nan_in_the_narrow_type(tmp_path: Path) -> None:
    for kind in (pa.float16(), pa.float32(), pa.int8()):
        column = pa.array([[1, None], [3, 4]], pa.list_(kind))
        pq.write_table(pa.table({"emb": column}), tmp_path / "x.parquet")
        y = values(ArraySource(tmp_path / "x.parquet"))
        assert y.dtype == np.float32
        np.testing.assert_array_equal(y, [[1, np.nan], [3, 4]])


def test_group_columns_of_any_scalar_type_become_text(tmp_path: Path) -> None:
    columns = {
        "text": (pa.array(["a", None, "ü"]), ["a", "null", "ü"]),
        "float": (pa.array([1.5, None, 2.0]), ["1.5", "null", "2.0"]),
        "flag": (pa.array([True, False, None]), ["True", "False", "null"]),
        "coded": (pa.array(["x", "y", None]).dictionary_encode(), ["x", "y", "null"]),
        "day": (pa.array([0, None, 1], pa.date32()), ["1970-01-01", "null", "1970-01-02"]),
    }
    table = pa.table({"emb": lists(X[:3]), **{name: column for name, (column, _) in columns.items()}})
    pq.write_table(table, tmp_path / "x.parquet")
    write_ipc(tmp_path / "x.arrow", table)
    for name, (_, expected) in columns.items():
        for suffix in (".parquet", ".arrow"):
            assert groups(ArraySource(tmp_path / f"x{suffix}", group_by=name)) == expected


def test_column_names_with_dots(tmp_path: Path) -> None:
    table = pa.table({"a.b": lists(X), "a": lists(X + 1), "a.label": GROUPS})
    pq.write_table(table, tmp_path / "x.parquet")
    for name, x in (("a.b", X), ("a", X + 1)):
        source = ArraySource(tmp_path / "x.parquet", column=name, group_by="a.label")
        np.testing.assert_array_equal(values(source), x)


# Provenance


def test_describe_a_small_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.npz")
    monkeypatch.chdir(tmp_path)
    facts = ArraySource("./x.npz", column="emb", group_by="label").describe()
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert facts == {
        "kind": "vectors",
        "rows": 37,
        "width": 5,
        "dtype": "float32",
        "files": [{"path": "./x.npz", "bytes": path.stat().st_size, "sha256": sha256}],
        "column": "emb",
        "group_by": "label",
    }
    assert json.loads(json.dumps(facts)) == facts


def test_describe_a_large_file_by_its_ends(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    np.lib.format.open_memmap(path, "w+", np.float32, (17 << 20, 1))[-1] = 7  # sparse on disk
    size, raw = path.stat().st_size, np.memmap(path, np.uint8, "r")
    ends = raw[: 1 << 20].tobytes() + raw[-(1 << 20) :].tobytes() + str(size).encode()
    (facts,) = ArraySource(path).describe()["files"]
    assert facts == {"path": str(path), "bytes": size, "sha256_ends": hashlib.sha256(ends).hexdigest()}


def test_describe_memory_and_order_of_folder_and_list(tmp_path: Path) -> None:
    assert ArraySource(X).describe()["files"] == []
    for name in ("b.npy", "a.npy", "notes.txt"):
        np.save(tmp_path / "tmp.npy", X if name[0] == "a" else -X)
        (tmp_path / "tmp.npy").rename(tmp_path / name)
    source = ArraySource(tmp_path)
    assert [Path(f["path"]).name for f in source.describe()["files"]] == ["a.npy", "b.npy"]
    np.testing.assert_array_equal(values(source), np.concatenate([X, -X]))
    both = ArraySource([str(tmp_path / "b.npy"), tmp_path / "a.npy"])
    np.testing.assert_array_equal(values(both), np.concatenate([-X, X]))


# Memory


def anonymous_mib() -> float:
    status = Path("/proc/self/status").read_text()
    return int(status.split("RssAnon:")[1].split()[0]) / 1024


def test_a_200_mb_npy_is_read_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    big = np.lib.format.open_memmap(path, "w+", np.float32, (65_536, 768))
    big[::1000] = 1
    del big
    before = anonymous_mib()
    tracemalloc.start()
    total = rows = 0
    for batch in ArraySource(path).batches():
        total += int(batch.layers[0][:, 0].sum())
        rows += len(batch.rows)
        assert anonymous_mib() - before < 64
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (rows, total) == (65_536, 66)
    assert peak < 12 << 20  # two batches of 4 MiB: the one in use and the next


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_one_huge_row_group_is_read_in_little_memory(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    x = RNG.normal(size=(40_000, 256)).astype(np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 256)
    table = pa.table({"emb": column.cast(pa.list_(pa.float32()))})
    if suffix == ".parquet":
        pq.write_table(table, path, row_group_size=40_000, use_dictionary=False, compression="none")
    else:
        write_ipc(path, table, 40_000)
    pool = pa.default_memory_pool()
    held = pa.total_allocated_bytes()
    peak, rows = 0, 0
    for batch in ArraySource(path, batch_rows=1000).batches():
        np.testing.assert_array_equal(batch.layers[0], x[rows : rows + 1000])
        rows += 1000
        peak = max(peak, pool.bytes_allocated() - held)
    assert rows == 40_000
    assert peak < 12 << 20  # of 40 MiB


# Refusals: each message says what it got, what was expected, what to do


def refused(match: str, data: Any, **options: Any) -> None:
    with pytest.raises(InputError, match=match) as caught:
        for _ in ArraySource(data, **options).batches():
            pass
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message


def test_missing_file_folder_without_vectors_unknown_extension_empty_list(tmp_path: Path) -> None:
    refused("there is no file .*nowhere.npy", tmp_path / "nowhere.npy")
    refused("holds no file of vectors, expected .npy", tmp_path)
    (tmp_path / "x.csv").write_text("1,2")
    refused(r"extension '.csv', expected .npy, .npz", tmp_path / "x.csv")
    refused("list of files is empty", [])
    refused("type list, expected a numpy array", [X, X])
    refused("type dict, expected a numpy array", {"a": X})
    refused("masked array", np.ma.masked_invalid(X))
    refused("batch_rows is 0", X, batch_rows=0)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("content", [b"", b"x", b"\x00" * 64, b"garbage " * 999, b"\xff" * 999, b'{"a": 1}' * 9])
def test_empty_files_and_garbage(tmp_path: Path, suffix: str, content: bytes) -> None:
    path = tmp_path / f"x{suffix}"
    path.write_bytes(content)
    refused("cannot be read" if content else "is empty", path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("keep", [0.1, 0.5, 0.9])
def test_truncated_files(tmp_path: Path, suffix: str, keep: float) -> None:
    path = write(tmp_path / f"x{suffix}")
    raw = path.read_bytes()
    path.write_bytes(raw[: int(len(raw) * keep)])
    refused("cannot be read", path)


def test_truncated_npy_and_safetensors_say_so(tmp_path: Path) -> None:
    for suffix in (".npy", ".safetensors"):
        path = write(tmp_path / f"x{suffix}")
        path.write_bytes(path.read_bytes()[:-4])
        refused("cut short", path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_damage_anywhere_is_refused_or_read_but_never_another_error(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}")
    raw = path.read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(40):
        damaged = np.frombuffer(raw, np.uint8).copy()
        damaged[rng.integers(0, len(raw), 3)] = rng.integers(0, 256, 3)
        path.write_bytes(damaged.tobytes())
        with contextlib.suppress(InputError):
            assert values(ArraySource(path, batch_rows=5)).shape[1] > 0


@pytest.mark.parametrize("suffix", TABLES)
def test_a_file_that_changes_under_the_scan_is_refused(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}")
    source = ArraySource(path, batch_rows=5)
    write(path, X[:20], GROUPS[:20])
    with pytest.raises(InputError, match="announced 37 rows and holds 20"):
        values(source)


def one_tensor(dtype: str, shape: list[int], offsets: list[int]) -> bytes:
    return safetensors_bytes({"a": {"dtype": dtype, "shape": shape, "data_offsets": offsets}}, b"0" * 16)


def safetensors_bytes(header: Any, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ((10**15).to_bytes(8, "little") + b"{}", "header claims"),
        (safetensors_bytes([1]), "cannot be read"),
        (safetensors_bytes({"a": 1}), "cannot be read"),
        (one_tensor("F32", [2, 2], [0, 8]), "claims 8 bytes"),
        (one_tensor("F32", [2, 2], [8, 24]), "cut short"),
        (one_tensor("F32", [-2, -2], [0, 16]), "shape"),
        (one_tensor("F32", [2, 2], [-16, 0]), "offsets"),
        (one_tensor("F8_E4M3", [2, 2], [0, 4]), "F8_E4M3"),
        (safetensors_bytes({"__metadata__": {"x": "y"}}), "holds no arrays"),
        (b"\xff" * 7, "cannot be read"),
    ],
)
def test_safetensors_headers_that_lie(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    refused(match, path)


def test_a_header_over_the_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with path.open("wb") as file:
        file.write((150_000_000).to_bytes(8, "little"))
        file.truncate(200_000_000)  # sparse on disk
    tracemalloc.start()
    refused("header claims 150000000 bytes", path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


def test_pickles_are_refused_unopened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> Any:
            return exec, ("raise SystemExit('the pickle ran')",)

    objects = np.array([[Bomb()]], object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    np.savez(tmp_path / "x.npz", a=objects)
    np.savez_compressed(tmp_path / "y.npz", a=objects)
    for name in ("x.npy", "x.npz", "y.npz"):
        refused("pickled objects, which are refused for safety.*np.save", tmp_path / name)
    (tmp_path / "y.npy").write_bytes(pickle.dumps(Bomb()))
    refused("cannot be read", tmp_path / "y.npy")


SHAPES = [
    (np.ones(4), r"shape \(4,\).*reshape\(1, -1\).*reshape\(-1, 1\)"),
    (np.float64(3), r"shape \(\).*single number"),
    (np.ones((2, 3, 4)), r"shape \(2, 3, 4\).*flatten or pool"),
    (np.ones((0, 4)), "no rows"),
    (np.ones((4, 0)), "no columns"),
    (np.ones((2, 2), complex), "type complex128, expected real numbers"),
    (np.array([["a", "b"]]), "type text, expected real numbers"),
    (np.ones((2, 2), bool), "type bool, expected real numbers"),
    (np.ones((2, 2), "M8[s]"), r"type datetime64\[s\], expected real numbers"),
]


@pytest.mark.parametrize(("x", "match"), SHAPES)
def test_wrong_shapes_and_types(tmp_path: Path, x: Any, match: str) -> None:
    refused(match, np.asarray(x))
    np.save(tmp_path / "x.npy", x)
    refused(match, tmp_path / "x.npy")
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", emb=x, other=X)
        refused(match, tmp_path / "x.npz", column="emb")
        save(tmp_path / "x.npz", emb=x)
        refused(match, tmp_path / "x.npz")
    if np.asarray(x).dtype.kind in "fb":
        write_h5(tmp_path / "x.h5", emb=x)
        refused(match, tmp_path / "x.h5")
        safetensors.numpy.save_file({"emb": np.asarray(x)}, tmp_path / "x.safetensors")
        refused(match, tmp_path / "x.safetensors")


def test_hdf5_ragged_and_empty_datasets(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("ragged", (3, 1), h5py.vlen_dtype(np.float32))
        file["nothing"] = h5py.Empty("f4")
    refused("type object", tmp_path / "x.h5", column="ragged")
    refused("single number", tmp_path / "x.h5", column="nothing")
    refused(r"holds nothing \(\) float32, ragged \(3, 1\) object, expected a two-dim", tmp_path / "x.h5")


@pytest.mark.parametrize("suffix", TABLES)
@pytest.mark.parametrize(
    ("column", "match"),
    [
        (pa.array([[1.0, 2.0]] * 30 + [[1.0]]), r"row 30 of .*has 1 numbers, expected 2"),
        (pa.array([[1.0, 2.0]] * 30 + [[1.0, 2.0, 3.0], [1.0]]), r"row 30 of .*has 3 numbers, expected 2"),
        (pa.array([[1.0, 2.0]] * 29 + [None]), r"row 29 of .*is null"),
        (pa.array([None, [1.0, 2.0]]), r"row 0 of .*is null"),
        (pa.array([[1.0, 2.0]] * 29 + [None], pa.list_(pa.float32(), 2)), r"row 29 of .*is null"),
        (pa.array([[], []], pa.list_(pa.float32())), "no columns"),
        (pa.array([], pa.list_(pa.float32())), "no rows"),
        (pa.array([], pa.list_(pa.float32(), 3)), "no rows"),
    ],
)
def test_bad_list_columns(tmp_path: Path, suffix: str, column: pa.Array, match: str) -> None:
    path, table = tmp_path / f"x{suffix}", pa.table({"emb": column})
    pq.write_table(table, path, row_group_size=8) if suffix == ".parquet" else write_ipc(
        path, table, 8, stream=suffix == ".ipc"
    )
    refused(match, path, batch_rows=7)
    refused(match, path)


def test_bad_row_is_found_where_reading_starts_later(tmp_path: Path) -> None:
    pq.write_table(pa.table({"emb": [[1.0, 2.0]] * 30 + [[1.0]]}), tmp_path / "x.parquet", row_group_size=8)
    source = ArraySource(tmp_path / "x.parquet", batch_rows=5)
    with pytest.raises(InputError, match="row 30 "):
        values(source, 5)


@pytest.mark.parametrize("suffix", TABLES)
def test_wrong_kinds_of_columns(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"

    def save(**columns: Any) -> None:
        table = pa.table(columns)
        pq.write_table(table, path) if suffix == ".parquet" else write_ipc(path, table)

    save(a=lists(X), b=lists(X))
    refused(r"several columns of lists of numbers \(a, b\).*--column", path)
    save(a=[1.0, 2.0], b=["x", "y"])
    refused("a double, b string, expected one with a list", path)
    refused("holds double, expected a list of numbers", path, column="a")
    save(a=[[[1.0, 2.0]]])
    refused("flatten or pool", path, column="a")
    save(a=[["x"]], b=[[True]])
    refused("type string", path, column="a")
    refused("type bool", path, column="b")
    save(a=[[1.0]], b=[[1]])
    refused(r"one value per row to group by", path, column="a", group_by="b")


@pytest.mark.parametrize("suffix", NAMED)
def test_wrong_names_list_what_there_is(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}")
    listed = r"no column 'embb' \(did you mean 'emb'\?\); it holds .*label"
    refused(listed, path, column="embb")
    refused(r"no column 'labels' \(did you mean 'label'\?\); it holds .*emb", path, group_by="labels")
    refused(r"no column 'zzz'; it holds", path, group_by="zzz")


@pytest.mark.parametrize("suffix", [".npz", ".safetensors", ".h5"])
def test_groups_of_another_length_or_type(tmp_path: Path, suffix: str) -> None:
    path = write(tmp_path / f"x{suffix}", label=np.arange(36))
    refused(r"\[label\] is \(36,\) int64, expected \(37,\) integers", path, group_by="label")
    path = write(tmp_path / f"x{suffix}", label=np.ones(37))
    refused(r"\[label\] is \(37,\) float64, expected \(37,\) integers", path, group_by="label")


def test_names_where_there_are_none(tmp_path: Path) -> None:
    for data in (X, write(tmp_path / "x.npy")):
        refused("group_by='g' cannot be used: it works with a column of a parquet", data, group_by="g")
        refused("column='c' cannot be used", data, column="c")


def test_files_of_different_width(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", X)
    np.save(tmp_path / "b.npy", X[:, :4])
    refused(r"b.npy has 4 columns and .*a.npy has 5, expected the same width", tmp_path)


def test_several_arrays_none_of_them_a_matrix(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", a=np.ones(3), b=np.ones((1, 2, 3)))
    refused(r"holds a \(3,\) float64, b \(1, 2, 3\) float64, expected a two-dimensional", tmp_path / "x.npz")
    with zipfile.ZipFile(tmp_path / "y.npz", "w") as archive:
        archive.writestr("readme.txt", "no arrays here")
    refused("holds no arrays", tmp_path / "y.npz")


def test_a_compressed_member_shorter_than_its_header_says(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, X)
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("emb.npy", buffer.getvalue()[:-8])
    refused("cut short", tmp_path / "x.npz")


def test_hdf5_without_h5py_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "x.h5")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[files\]'"):
        ArraySource(path)
