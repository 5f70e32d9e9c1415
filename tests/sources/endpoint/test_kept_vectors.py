"""Vectors that are kept: found again, told apart, checked."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError, StoreError
from isotrope.sources.endpoint.kept_vectors import KeptVectors, hash_text
from testkit.embedding_server import embed

URL = "http://host/v1/embeddings"
TEXTS = ["a", "b", "c"]
KEYS = [hash_text(text) for text in TEXTS]
ROWS = np.stack([embed(text) for text in TEXTS])


def test_what_was_added_is_found_again_in_any_order(tmp_path: Path) -> None:
    kept = KeptVectors(tmp_path, URL, "small")
    assert (len(kept), kept.width, KEYS[0] in kept) == (0, None, False)
    kept.add(KEYS[:1], ROWS[:1])
    kept.add(KEYS[1:], ROWS[1:])
    again = KeptVectors(tmp_path, URL, "small")
    assert (len(again), again.width) == (3, 16)
    assert np.array_equal(again.read_rows([KEYS[i] for i in (2, 0, 1, 2)]), ROWS[[2, 0, 1, 2]])


def test_nothing_is_written_before_there_is_something_to_keep(tmp_path: Path) -> None:
    KeptVectors(tmp_path / "new", URL, "small").prepare()
    assert list(tmp_path.iterdir()) == []


def test_models_and_endpoints_are_told_apart_and_secrets_are_not(tmp_path: Path) -> None:
    KeptVectors(tmp_path, f"{URL}?api_key=one", "small").add(KEYS, ROWS)
    assert len(KeptVectors(tmp_path, f"{URL}?api_key=two", "small")) == 3
    assert len(KeptVectors(tmp_path, f"{URL}?api_key=one", "large")) == 0
    assert len(KeptVectors(tmp_path, "http://other/v1/embeddings", "small")) == 0
    assert all(b"one" not in path.read_bytes() for path in tmp_path.rglob("*.json"))


def test_another_width_is_refused(tmp_path: Path) -> None:
    kept = KeptVectors(tmp_path, URL, "small")
    kept.add(KEYS[:1], ROWS[:1])
    with pytest.raises(InputError, match="have 16 dimensions, and those of the latest answer have 8"):
        kept.add(KEYS[1:], ROWS[1:, :8])
    assert len(KeptVectors(tmp_path, URL, "small")) == 1


def test_without_a_folder_nothing_stays() -> None:
    kept = KeptVectors(None, URL, "small")
    kept.add(KEYS, ROWS)
    assert np.array_equal(kept.read_rows(KEYS), ROWS)
    assert len(KeptVectors(None, URL, "small")) == 0
    folder = kept._files.parent
    assert folder.is_dir()
    del kept
    assert not folder.exists()


def read_all(folder: Path) -> None:
    kept = KeptVectors(folder, URL, "small")
    kept.read_rows(list(kept._places))


@pytest.mark.parametrize("place", [-1, 700, 200, 4])
def test_a_byte_that_flips_is_noticed(tmp_path: Path, place: int) -> None:
    keys, rows = KEYS * 20, np.tile(ROWS, (20, 1))
    KeptVectors(tmp_path, URL, "small").add([hash_text(str(i)) for i in range(len(keys))], rows)
    [path] = tmp_path.rglob("*.safetensors")
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)
    with pytest.raises(StoreError, match="damaged"):
        read_all(tmp_path)
    path.unlink()
    assert len(KeptVectors(tmp_path, URL, "small")) == 0


def test_a_file_that_is_cut_off_is_named(tmp_path: Path) -> None:
    KeptVectors(tmp_path, URL, "small").add(KEYS, ROWS)
    [path] = tmp_path.rglob("*.safetensors")
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(StoreError, match=f"{path.name}.* is damaged"):
        KeptVectors(tmp_path, URL, "small")


def test_what_a_killed_process_left_half_written_is_not_read(tmp_path: Path) -> None:
    KeptVectors(tmp_path, URL, "small").add(KEYS, ROWS)
    [path] = tmp_path.rglob("*.safetensors")
    path.with_name(f".{path.name}.4711.part").write_bytes(b"half")
    assert len(KeptVectors(tmp_path, URL, "small")) == 3
