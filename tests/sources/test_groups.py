"""Labels of groups: integer codes, short labels, and memory that does not grow with their length."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotrope.scanner import scan
from isotrope.sources.batch import LONGEST_LABEL, Batch, Groups, Rows, shorten_label
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.media.corpus import open_media
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Collection, Wanted
from testkit import small_stores

LENGTH = 100_000
COUNT = 3_000

#: The label itself is shortened by hand here: 183 characters, an ellipsis and 16 digits of SHA-256.
LONG = "a" * LENGTH
SHORT = "a" * 183 + "…" + hashlib.sha256(LONG.encode()).hexdigest()[:16]

#: Reads vectors or texts with their groups, and prints the labels that it found and its peak memory in MB.
CODE = """
import json, sys
kind, path, key = sys.argv[1:]
if kind == "vectors":
    from isotrope.scanner import scan
    labels = {r.group for r in scan(vectors=path, group_by=key, sample=50, measures="moments").readings}
else:
    from isotrope.sources.corpora.corpus import open_corpus
    labels = {text.group for text in open_corpus(path, group_by=key)}
with open("/proc/self/status") as status:  # not getrusage, which begins with the memory of the parent
    (peak,) = (int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))
print(json.dumps([sorted(label for label in labels if label), peak]))
"""


def _labels() -> list[str]:
    return [LONG if i % 2 else "b" for i in range(COUNT)]


def _table(**more: Any) -> Any:
    import pyarrow as pa

    rows = np.random.default_rng(0).normal(size=(COUNT, 4)).astype(np.float32)
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), 4)
    return pa.table({"vector": values, "text": [f"text {i}" for i in range(COUNT)], "group": _labels(), **more})


def _parquet(path: Path, **options: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(_table(), path, **options)


def _arrow(path: Path) -> None:
    import pyarrow as pa

    table = _table()
    table = table.set_column(2, "group", table.column("group").dictionary_encode())
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table)


def _jsonl(path: Path) -> None:
    path.write_text("".join(json.dumps({"text": "a text", "group": label}) + "\n" for label in _labels()[:1_000]))


def _measure(kind: str, path: Path | str, key: str = "group") -> tuple[list[str], float]:
    command = [sys.executable, "-c", CODE, kind, str(path), key]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    labels, peak = json.loads(done.stdout)
    return labels, peak


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
class TestMemory:
    """A process that reads 3,000 rows with a label of 100,000 characters in every other one."""

    @pytest.mark.long
    @pytest.mark.parametrize(
        ("kind", "name", "write"),
        [
            ("vectors", "a.parquet", _parquet),
            ("vectors", "plain.parquet", lambda path: _parquet(path, use_dictionary=False, compression="zstd")),
            ("vectors", "a.arrow", _arrow),
            ("texts", "a.parquet", _parquet),
            ("texts", "a.jsonl", _jsonl),
        ],
    )
    def test_a_file(self, kind: str, name: str, write: Callable[[Path], None], tmp_path: Path) -> None:
        write(tmp_path / name)
        labels, peak = _measure(kind, tmp_path / name)
        assert labels == [SHORT, "b"]
        assert peak < 400

    @pytest.mark.long
    @pytest.mark.parametrize("kind", ["lancedb", "qdrant", "pgvector"])
    def test_a_store(
        self, kind: str, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A folder of Qdrant's local mode is loaded whole by its client, labels and all.
        count = 300 if kind == "qdrant" else COUNT
        monkeypatch.setattr(small_stores, "languages", lambda rows: _labels()[:rows])
        folder = request.getfixturevalue("postgres") if kind == "pgvector" else tmp_path / "store"
        rows = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
        place = getattr(small_stores, kind)(folder, rows)
        table = place.address if kind != "pgvector" else _without_other_vectors(folder, place.address)
        labels, peak = _measure("vectors", table, "language.code" if kind == "qdrant" else "language")
        assert labels == [SHORT, "b"]
        assert peak < 500


def _without_other_vectors(folder: Path, address: str) -> str:
    import psycopg

    with psycopg.connect(host=str(folder), user="postgres", dbname="postgres") as server:
        server.execute("ALTER TABLE texts DROP COLUMN other")
    return address


class TestLabels:
    def test_short_ones_stay(self) -> None:
        for label in ("", "de", "x" * LONGEST_LABEL, "\N{GREEK SMALL LETTER ALPHA}" * LONGEST_LABEL):
            assert shorten_label(label) == label

    def test_long_ones_stay_different(self) -> None:
        assert shorten_label(LONG) == SHORT
        assert len(SHORT) == LONGEST_LABEL
        labels = ["x" * 5_000 + str(i) for i in range(50)]
        assert len({shorten_label(label) for label in labels}) == 50
        assert len(shorten_label("\ud800" * 500)) == LONGEST_LABEL

    @pytest.mark.parametrize(
        "values",
        [
            ["b", "a", None, "b", "", "null"],
            [3, 1, None, 3],
            [1.5, None, 1.5],
            [b"x", None, b"y"],
            [True, False, None],
            [None, None],
        ],
    )
    def test_columns_of_every_type(self, values: list[Any], tmp_path: Path) -> None:
        """As `str` has them, with "null" for what is missing, plain and as a dictionary, in parquet and arrow."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        expected = ["null" if value is None else str(value) for value in values]
        rows = [[float(i), 1.0] for i in range(len(values))]
        plain = pa.array(values, None if any(value is not None for value in values) else pa.string())
        for column in (plain, plain.dictionary_encode()):
            table = pa.table({"v": rows, "group": column})
            pq.write_table(table, tmp_path / "a.parquet", row_group_size=4)
            with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
                writer.write_table(table)
            for name in ("a.parquet", "a.arrow"):
                source = ArraySource(tmp_path / name, group_by="group", batch_rows=4)
                found = [b.rows.group for b in source.batches()]
                assert [label for part in found if part is not None for label in part] == expected

    @pytest.mark.parametrize("kind", ["npz", "safetensors", "h5"])
    def test_numbers_in_files_of_arrays(self, kind: str, tmp_path: Path) -> None:
        rows, numbers = np.zeros((5, 2), np.float32), np.array([7, -1, 7, 2**62, -1])
        path = tmp_path / f"a.{kind}"
        if kind == "npz":
            np.savez(path, v=rows, g=numbers)
        elif kind == "safetensors":
            from safetensors.numpy import save_file

            save_file({"v": rows, "g": numbers}, path)
        else:
            h5py = pytest.importorskip("h5py")
            with h5py.File(path, "w") as file:
                file["v"], file["g"] = rows, numbers
        (batch,) = ArraySource(path, column="v", group_by="g").batches()
        assert batch.rows.group is not None
        assert batch.rows.group.tolist() == [str(n) for n in numbers]

    def test_a_folder_of_images(self, tmp_path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"image": [b"x", b"y"], "kind": [LONG, None]}), tmp_path / "a.parquet")
        media = open_media(tmp_path / "a.parquet", "image", group_by="kind")
        assert [item.group for item in media] == [SHORT, "null"]

    @pytest.mark.parametrize("ending", ["csv", "jsonl", "json", "parquet"])
    def test_texts(self, ending: str, tmp_path: Path) -> None:
        frame = pd.DataFrame({"text": ["one", "two"], "kind": [LONG, "b"]})
        path = tmp_path / f"a.{ending}"
        write = {
            "csv": lambda: frame.to_csv(path, index=False),
            "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
            "json": lambda: frame.to_json(path, orient="records"),
            "parquet": lambda: frame.to_parquet(path),
        }
        write[ending]()
        assert [text.group for text in open_corpus(path, group_by="kind")] == [SHORT, "b"]


class TestGroups:
    def test_joined_parts_keep_their_labels(self) -> None:
        parts = [Groups.of("ba"), Groups.of("ac")[1:], Groups.of_numbers(np.array([3, 1])), Groups.of([])]
        joined = Groups.join(parts)
        assert joined.tolist() == ["b", "a", "c", "3", "1"]
        assert len(joined) == 5
        assert Groups.join([Groups.of([])]).tolist() == []

    def test_masks_indices_and_repeats(self) -> None:
        groups = Groups.of("abca")
        assert groups[np.array([True, False, False, True])].tolist() == ["a", "a"]
        assert groups[np.array([2, 0])].tolist() == ["c", "a"]
        assert groups.repeat(np.array([0, 2, 1, 0])).tolist() == ["b", "b", "c"]

    def test_members_are_those_of_numpy(self) -> None:
        labels = np.random.default_rng(0).choice(["x", "é", "a", "10", "9"], 200)
        names, which = np.unique(labels, return_inverse=True)
        expected = [(str(name), np.flatnonzero(which == i).tolist()) for i, name in enumerate(names)]
        assert [(label, rows.tolist()) for label, rows in Groups.of(labels).members()] == expected
        assert Groups.of([]).members() == []

    def test_statistics_of_groups_are_those_of_their_rows(self) -> None:
        rng = np.random.default_rng(0)
        values, labels = rng.normal(size=(300, 3)), rng.choice(["de", "en", "fr"], 300)
        collection = Collection(Wanted())
        for part in np.array_split(np.arange(300), 4):
            collection.update(Batch({0: values[part]}, Rows(part.astype(np.uint64), group=labels[part])))
        assert collection.groups() == ["de", "en", "fr"]
        for label in ("de", "en", "fr"):
            moments = collection.layer(0, label).moments
            assert moments.n == (labels == label).sum()
            np.testing.assert_allclose(moments.mean, values[labels == label].mean(axis=0), rtol=1e-12)

    def test_a_run_with_long_labels(self, tmp_path: Path) -> None:
        _parquet(tmp_path / "a.parquet")
        found = scan(vectors=tmp_path / "a.parquet", group_by="group", sample=0, output=tmp_path / "run")
        assert {r.group for r in found.readings} == {None, SHORT, "b"}
        assert sum(path.stat().st_size for path in (tmp_path / "run").rglob("*") if path.is_file()) < 3e6


def test_long_tokens_are_shortened_in_tables() -> None:
    from isotrope.runs.retention import compute_tables

    class OfTokens:
        def token_names(self, tokens: Any) -> list[str]:
            return [LONG if token else "b" for token in tokens]

    collection = Collection(Wanted(tokens=True))
    rows = Rows(np.arange(4, dtype=np.uint64), token=np.array([0, 1, 0, 1]), position=np.zeros(4, np.int64))
    collection.update(Batch({0: np.random.default_rng(0).normal(size=(4, 3))}, rows))
    made = compute_tables(collection, OfTokens(), [0])  # type: ignore[arg-type]
    assert made["tokens"]["token"].tolist() == ["b", SHORT]
