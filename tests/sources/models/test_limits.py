"""Files that claim more than they hold, or hold more than they seem to: refused before the memory is asked for."""

from __future__ import annotations

import gzip
import io
import json
import struct
import tracemalloc
import zipfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.repairs import Centering
from isotrope.scanner import scan
from isotrope.sources.corpora import lines as text_lines
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.media import images
from isotrope.sources.media.audio import clips
from isotrope.sources.media.corpus import Item
from isotrope.sources.models.gguf import check_gguf
from isotrope.sources.vectors.source import ArraySource

HUGE = 10**15


def _npy_header(shape: tuple[int, ...]) -> bytes:
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (63 - (len(text) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def _refused(path: Path | str) -> str:
    with pytest.raises(InputError) as refused:
        for _ in ArraySource(path).batches():
            pass
    return str(refused.value)


class TestVectors:
    def test_npy(self, tmp_path: Path) -> None:
        (tmp_path / "a.npy").write_bytes(_npy_header((HUGE, 300)) + bytes(100))
        assert "100 found" in _refused(tmp_path / "a.npy")

    @pytest.mark.parametrize("name", ["a.npy", "stored.npz", "packed.npz", "remote.npy"])
    def test_a_header_of_4_gib(self, name: str, tmp_path: Path) -> None:
        data = b"\x93NUMPY\x02\x00" + b"\xff" * 4 + bytes(5000)
        path = tmp_path / name
        if path.suffix == ".npy":
            path.write_bytes(data)
        else:
            kind = zipfile.ZIP_STORED if name == "stored.npz" else zipfile.ZIP_DEFLATED
            with zipfile.ZipFile(path, "w", kind) as archive:
                archive.writestr("a.npy", data)
        tracemalloc.start()
        said = _refused(path.as_uri() if name == "remote.npy" else path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "its header claims 4294967295 bytes" in said
        assert peak < 50_000_000

    def test_a_stored_member_of_npz_that_was_damaged(self, tmp_path: Path) -> None:
        """Larger than what is checked at a time."""
        rows = np.random.default_rng(0).normal(size=(200_000, 3))
        np.savez(tmp_path / "a.npz", rows=rows, other=rows[:5])
        assert ArraySource(tmp_path / "a.npz").total == 200_005
        data = bytearray((tmp_path / "a.npz").read_bytes())
        data[3_000_000] ^= 1
        (tmp_path / "a.npz").write_bytes(data)
        assert "rows.npy is damaged: its checksum differs" in _refused(tmp_path / "a.npz")

    def test_npz_whose_member_claims_more_than_deflate_can_hold(self, tmp_path: Path) -> None:
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a.npy", _npy_header((10**6, 300)) + bytes(1000))
        data = path.read_bytes()
        size = struct.pack("<I", len(_npy_header((10**6, 300))) + 1000)
        path.write_bytes(data.replace(size, struct.pack("<I", 1_200_000_128)))
        assert "claims 1200000128 bytes" in _refused(path)

    @pytest.mark.parametrize("fortran", [False, True])
    def test_packed_npz_is_read_in_pieces(self, fortran: bool, tmp_path: Path) -> None:
        rows = np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32)
        np.savez_compressed(tmp_path / "a.npz", rows=np.asfortranarray(rows) if fortran else rows)
        source = ArraySource(tmp_path / "a.npz", batch_rows=7)
        np.testing.assert_array_equal(np.concatenate([b.layers[0] for b in source.batches()]), rows)
        np.testing.assert_array_equal(next(source.batches(start=3)).layers[0], rows[21:28])

    def test_a_bomb_takes_no_memory(self, tmp_path: Path) -> None:
        """400 MB of zeros in 400 kB: read in constant memory."""
        with (
            zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive,
            archive.open("a.npy", "w") as file,
        ):
            file.write(_npy_header((1_000_000, 100)))
            for _ in range(100):
                file.write(bytes(4_000_000))
        tracemalloc.start()
        batches = ArraySource(tmp_path / "a.npz", batch_rows=2000).batches()
        assert [next(batches).layers[0].shape for _ in range(20)] == [(2000, 100)] * 20
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000_000

    def test_safetensors(self, tmp_path: Path) -> None:
        header = json.dumps({"a": {"dtype": "F32", "shape": [HUGE, 3], "data_offsets": [0, HUGE * 12]}}).encode()
        (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(50))
        assert "50 found" in _refused(tmp_path / "a.safetensors")
        (tmp_path / "a.safetensors").write_bytes((2**60).to_bytes(8, "little") + header)
        assert "header claims" in _refused(tmp_path / "a.safetensors")

    def test_hdf5(self, tmp_path: Path) -> None:
        h5py = pytest.importorskip("h5py")
        with h5py.File(tmp_path / "a.h5", "w") as file:  # nothing is stored: all of it would read as zeros
            file.create_dataset("rows", shape=(10**12, 300), dtype="f4", chunks=(1000, 300))
        assert "claims the shape (1000000000000, 300)" in _refused(tmp_path / "a.h5")


class TestTexts:
    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_lines, "LONGEST", 1 << 20)

    @pytest.mark.parametrize(
        ("name", "line"), [("a.txt.gz", b"x" * (3 << 20)), ("a.jsonl.gz", b'{"text": "' + b"x" * (3 << 20) + b'"}')]
    )
    def test_a_line_in_a_packed_file(self, name: str, line: bytes, tmp_path: Path) -> None:
        (tmp_path / name).write_bytes(
            gzip.compress(b"first\n" if ".txt" in name else b'{"text": "first"}\n') + gzip.compress(line)
        )
        with pytest.raises(InputError, match=r"line 2 of .* is longer than 1 MiB"):
            list(open_corpus(tmp_path / name))

    def test_a_paragraph(self, tmp_path: Path) -> None:
        (tmp_path / "a.txt").write_bytes(b"first\n\n" + b"word\n" * 300_000)
        with pytest.raises(InputError, match="paragraph that begins in line 3"):
            list(open_corpus(tmp_path / "a.txt", unit="paragraph"))


class TestMedia:
    @pytest.mark.filterwarnings("ignore:Image size")
    def test_an_image_that_claims_to_be_huge(self, tmp_path: Path) -> None:
        image = pytest.importorskip("PIL.Image")
        buffer = io.BytesIO()
        image.new("RGB", (4, 4)).save(buffer, "BMP")
        data = bytearray(buffer.getvalue())
        struct.pack_into("<ii", data, 18, 20_000, 6_000)  # 120 million pixels: below what Pillow itself refuses
        assert images.read(bytes(data)) is None
        (tmp_path / "a.bmp").write_bytes(bytes(data))
        assert images.read(tmp_path / "a.bmp") is None

    @pytest.mark.parametrize("rate", [1, 7, 2_000_000_000])
    def test_a_rate_that_would_make_millions_of_a_few(self, rate: int) -> None:
        soundfile = pytest.importorskip("soundfile")
        buffer = io.BytesIO()
        soundfile.write(buffer, np.ones(500, np.float32) * 0.1, 8000, format="WAV")
        data = bytearray(buffer.getvalue())
        struct.pack_into("<I", data, 24, rate)
        counts: Counter[str] = Counter()
        loaded: Any = SimpleNamespace(processor=SimpleNamespace(sampling_rate=16_000), name="none")
        assert list(clips(loaded, Item(0, bytes(data)), counts)) == []
        assert counts["broken_sounds"] == 1


class TestGguf:
    def _write(self, path: Path, *, tensors: int = 0, pairs: int = 0, rest: bytes = b"") -> Path:
        path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, tensors, pairs) + rest)
        return path

    @pytest.mark.parametrize(
        ("more", "word"),
        [
            ({"tensors": 2**60}, "announces"),
            ({"pairs": 2**40}, "announces"),
            ({"pairs": 1, "rest": struct.pack("<Q", 2**50) + bytes(20)}, "a name of"),
            ({"pairs": 1, "rest": struct.pack("<Q1sIIQ", 1, b"a", 9, 4, 2**50) + bytes(20)}, "announces"),
            ({"pairs": 1, "rest": struct.pack("<Q1sI", 1, b"a", 77) + bytes(20)}, "unknown type 77"),
            ({"tensors": 1, "rest": struct.pack("<Q1sIQQIQ", 1, b"a", 2, 2**40, 2**40, 0, 0)}, "a tensor of shape"),
        ],
    )
    def test_claims(self, more: dict[str, Any], word: str, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=word):
            check_gguf(self._write(tmp_path / "a.gguf", **more))

    def test_a_model_is_not_opened(self, tmp_path: Path) -> None:
        pytest.importorskip("transformers")
        path = self._write(tmp_path / "a.gguf", tensors=2**60)
        with pytest.raises(InputError, match="no whole GGUF file"):
            scan(model=path, text=["a text"])


class TestBadFiles:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Ten files of rows: one cut off, one that is none, and one whose numbers are damaged in the middle."""
        import pandas as pd

        place = tmp_path / "many"
        place.mkdir()
        rows = np.random.default_rng(0).normal(size=(10, 60, 4)).astype(np.float32)
        for number, part in enumerate(rows[:9]):
            np.save(place / f"{number}.npy", part)
        pd.DataFrame({"v": list(rows[9])}).to_parquet(place / "9.parquet")
        (place / "3.npy").write_bytes((place / "3.npy").read_bytes()[:-10])
        (place / "6.npy").write_bytes(b"this is no array")
        data = bytearray((place / "9.parquet").read_bytes())
        data[4:200] = bytes(196)
        (place / "9.parquet").write_bytes(bytes(data))
        self.rows = np.concatenate([rows[i] for i in (0, 1, 2, 4, 5, 7, 8)])
        return place

    def test_it_stops_and_names_the_file(self, folder: Path) -> None:
        with pytest.raises(InputError, match=r"3\.npy cannot be read \(it is cut short"):
            scan(vectors=folder)

    def test_it_goes_on_and_names_them(self, folder: Path, tmp_path: Path) -> None:
        found = scan(vectors=folder, bad_files="skip", sample=50, output=tmp_path / "run")
        assert found.counts["bad_files"] == 3
        assert found.counts["rows"] == 420
        assert sorted(Path(path).name for path in found.source["left_out"]) == ["3.npy", "6.npy", "9.parquet"]
        assert "3 files that cannot be read" in str(found.verdict)
        assert "3.npy" in str(found.verdict)
        whole = scan(vectors=self.rows, sample=50)
        for r in whole.readings:
            assert found.get(r.measure, r.layer).value == pytest.approx(r.value, nan_ok=True, rel=1e-9)

    def test_all_are_bad(self, tmp_path: Path) -> None:
        (tmp_path / "a.npy").write_bytes(b"no")
        with pytest.raises(InputError, match="none of 1 files can be read"):
            ArraySource(tmp_path, bad_files="skip")

    def test_other_words(self, folder: Path) -> None:
        with pytest.raises(InputError, match="say stop or skip"):
            scan(vectors=folder, bad_files="ignore")
        with pytest.raises(InputError, match="only files of vectors"):
            scan(text=["a"], bad_files="skip")

    def test_a_repair(self, folder: Path) -> None:
        fitted = Centering().fit(ArraySource(folder, bad_files="skip"))
        np.testing.assert_allclose(fitted.map_.shift - fitted.map_.offset, self.rows.mean(axis=0), atol=1e-6)
