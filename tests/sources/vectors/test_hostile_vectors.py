"""Files of vectors that are made to mislead: numbers elsewhere, shared bytes, many arrays, claims in pickles."""

from __future__ import annotations

import json
import os
import pickle
import sqlite3
import struct
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.vectors.source import ArraySource
from testkit import small_stores

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3)


def _rows(source: ArraySource) -> np.ndarray[Any, Any]:
    return np.concatenate([batch.layers[0] for batch in source.batches()])


class TestHdf5:
    """Datasets whose numbers are in other files, which could be any file of this machine, a device or a pipe."""

    @pytest.fixture(params=["external", "virtual"])
    def file(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        h5py = pytest.importorskip("h5py")
        path = tmp_path / "a.h5"
        with h5py.File(tmp_path / "other.h5", "w") as other:
            other["rows"] = ROWS
        with h5py.File(path, "w", libver="latest") as file:
            if request.param == "external":
                file.create_dataset("rows", (4, 3), "f4", external=[("/dev/zero", 0, 48)])
            else:
                layout = h5py.VirtualLayout((4, 3), "f4")
                layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "rows", shape=(4, 3))
                file.create_virtual_dataset("rows", layout)
            file["own"] = ROWS
        return path

    @pytest.mark.parametrize("column", [None, "rows"])
    def test_they_are_refused(self, column: str | None, file: Path) -> None:
        with pytest.raises(InputError, match="keeps its numbers in other files"):
            ArraySource(file, column=column)

    def test_the_others_are_read(self, file: Path) -> None:
        np.testing.assert_array_equal(_rows(ArraySource(file, column="own")), ROWS)

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
    def test_a_file_that_the_library_never_finishes(self, tmp_path: Path) -> None:
        """The size of an object in the heap that virtual storage uses is -16, so that the next one is itself."""
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "a.h5", "w", libver="latest") as file:
            layout = h5py.VirtualLayout((4, 3), "f4")
            layout[:] = h5py.VirtualSource("other.h5", "rows", shape=(4, 3))
            file.create_virtual_dataset("rows", layout)
        data = bytearray((tmp_path / "a.h5").read_bytes())
        struct.pack_into("<Q", data, data.index(b"GCOL") + 24, 2**64 - 16)
        (tmp_path / "a.h5").write_bytes(data)
        with pytest.raises(InputError, match="reading it does not end"):
            ArraySource(tmp_path / "a.h5")

    def test_as_groups(self, file: Path) -> None:
        with pytest.raises(InputError, match="integers to group by"):
            ArraySource(file, column="own", group_by="rows")


class TestSafetensors:
    @staticmethod
    def _write(path: Path, offsets: dict[str, tuple[int, int]], size: int = 48) -> None:
        header = {
            name: {"dtype": "F32", "shape": [(end - start) // 12, 3], "data_offsets": [start, end]}
            for name, (start, end) in offsets.items()
        }
        text = json.dumps(header).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(size))

    @pytest.mark.parametrize(
        "offsets",
        [
            {"a": (0, 48), "b": (0, 48)},
            {"a": (0, 36), "b": (24, 48)},
            {"a": (24, 48), "b": (0, 36), "c": (36, 36)},
            {f"t{i}": (0, 48) for i in range(20_000)},
        ],
    )
    def test_tensors_that_share_bytes(self, offsets: dict[str, tuple[int, int]], tmp_path: Path) -> None:
        self._write(tmp_path / "a.safetensors", offsets)
        with pytest.raises(InputError, match="share bytes"):
            ArraySource(tmp_path / "a.safetensors")

    def test_tensors_side_by_side_in_any_order(self, tmp_path: Path) -> None:
        self._write(tmp_path / "a.safetensors", {"b": (24, 48), "a": (0, 24)})
        assert ArraySource(tmp_path / "a.safetensors").total == 4


class TestArchives:
    def test_the_list_of_members_is_read_once(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """However many packed arrays there are: reading it for each would take time that grows with their square."""
        arrays = {f"a{i:03}": np.full((2, 3), i, np.float32) for i in range(300)}
        np.savez_compressed(tmp_path / "a.npz", **arrays)
        read = zipfile.ZipFile._RealGetContents  # type: ignore[attr-defined]
        seen: Counter[str] = Counter()

        def count(archive: zipfile.ZipFile) -> None:
            seen["read"] += 1
            read(archive)

        monkeypatch.setattr(zipfile.ZipFile, "_RealGetContents", count)
        source = ArraySource(tmp_path / "a.npz")
        np.testing.assert_array_equal(_rows(source)[:, 0], np.repeat(np.arange(300), 2))
        assert seen["read"] == 1

    @pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_every_packing(self, method: int, order: str, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.asarray(ROWS, order=order))
        with zipfile.ZipFile(tmp_path / "a.npz", "w", method) as archive:
            archive.write(tmp_path / "a.npy", "first.npy")
            archive.write(tmp_path / "a.npy", "second.npy")
        np.testing.assert_array_equal(_rows(ArraySource(tmp_path / "a.npz")), np.concatenate([ROWS, ROWS]))

    def test_memory_that_lzma_is_asked_for(self, tmp_path: Path) -> None:
        with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_LZMA) as archive:
            archive.writestr("a.npy", b"x" * 500)
        data = bytearray((tmp_path / "a.npz").read_bytes())
        at = 30 + len("a.npy") + 5  # of the size in the properties, behind the local header
        assert struct.unpack_from("<I", data, at) == (8 << 20,)
        struct.pack_into("<I", data, at, 2**32 - 1)
        (tmp_path / "a.npz").write_bytes(data)
        with pytest.raises(InputError, match="asks for 4294967295 bytes"):
            ArraySource(tmp_path / "a.npz")

    def test_damage_is_found_by_the_checksum(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", ROWS)
        with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(tmp_path / "a.npy", "a.npy")
        data = (tmp_path / "a.npz").read_bytes()
        at = data.index(b"PK\x01\x02") + 16  # the checksum in the list of members, by which a member is judged
        (tmp_path / "a.npz").write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(InputError, match="CRC"):
            _rows(ArraySource(tmp_path / "a.npz"))


class TestQdrant:
    """Points are pickled; a few bytes of a pickle can ask for gigabytes."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> small_stores.Place:
        pytest.importorskip("qdrant_client")
        return small_stores.qdrant(tmp_path / "store", ROWS)

    @pytest.mark.parametrize(
        "point",
        [
            b"\x80\x04K\x01r" + struct.pack("<I", 2**27) + b".",
            b"\x80\x04K\x01p134217728\n.",
            b"\x80\x04]\x94(" + b"G" + bytes(8) + b"e" + b"r" + struct.pack("<I", 2**31) + b".",
            b"\x80\x04B" + struct.pack("<I", 2**27) + b"x.",
            b"\x80\x04\x8e" + struct.pack("<Q", 2**40) + b"x.",
            b"\x80\x05\x96" + struct.pack("<Q", 2**40) + b"x.",
            b"\x80\x04X" + struct.pack("<I", 2**27) + b"x.",
        ],
    )
    def test_claims_are_refused(self, point: bytes, store: small_stores.Place, tmp_path: Path) -> None:
        import tracemalloc

        with sqlite3.connect(tmp_path / "store/collection/texts/storage.sqlite") as database:
            database.execute("INSERT INTO points VALUES ('x', ?)", [point])
        tracemalloc.start()
        with pytest.raises(InputError) as refused:
            ArraySource(store.address)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 50e6
        assert "\n" not in str(refused.value)

    def test_honest_points_are_what_pickle_makes_of_them(self) -> None:
        models = pytest.importorskip("qdrant_client").models
        from isotrope.sources.vectors.stores.qdrant_folder import load_point

        payload = {"text": "ä" * 300, "n": [1, -5, 2**40, 10**30, 2.5, None, True], "deep": {"a": {"b": "c" * 70_000}}}
        for width in (1, 7, 8, 9, 1000, 20_000):
            vector = np.random.default_rng(width).normal(size=width).tolist()
            point = models.PointStruct(id=3, vector={"a": vector}, payload=payload)
            for protocol in (4, 5):
                assert load_point("a folder", pickle.dumps(point, protocol)) == point

    def test_a_group_that_is_no_single_value(self, store: small_stores.Place) -> None:
        with pytest.raises(InputError, match="the payload 'language' holds a dict, expected one value"):
            _rows(ArraySource(store.address, group_by="language"))


@pytest.mark.skipif(sys.platform == "win32", reason="a device in a file")
def test_the_command_refuses_external_storage(tmp_path: Path) -> None:
    import subprocess

    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("rows", (10, 3), "f4", external=[("/dev/zero", 0, 120)])
    command = [sys.executable, "-m", "isotrope", "scan", "a.h5"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert "keeps its numbers in other files" in ended.stderr
