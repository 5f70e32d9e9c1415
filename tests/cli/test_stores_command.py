"""scan, repair fit, repair apply and advise on every store, against the same commands on a file of the same rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from testkit import small_stores
from testkit.command import Command, one_sentence
from testkit.small_stores import Place, Rows

Build = Callable[[Rows], Place]


@pytest.fixture(params=["lancedb", "qdrant", "faiss", "pgvector"])
def build(request: pytest.FixtureRequest, tmp_path: Path) -> Build:
    """rows -> a store of one kind that holds them."""
    folder = request.getfixturevalue("postgres") if request.param == "pgvector" else tmp_path / "store"
    return lambda rows: getattr(small_stores, request.param)(folder, rows)


def numbers(rows: int, width: int) -> Rows:
    return (np.random.default_rng(3).normal(size=(rows, width)) + 2).astype(np.float32)


def readings(result: Any) -> Any:
    assert result.code == 0, result
    return result.json["readings"]


def test_end_to_end_as_with_a_file(isotrope: Command, build: Build, tmp_path: Path) -> None:
    rows = numbers(205, 8)
    place = build(rows)
    np.save("rows.npy", rows)
    there, file = ["--vectors", place.address, *place.column], ["--vectors", "rows.npy"]
    # The sample too: intervals and sampled measures come out the same.
    wanted = ["--measures", "moments,spread", "--sample", "60", "--json"]
    assert readings(isotrope("scan", *there, *wanted)) == readings(isotrope("scan", *file, *wanted))
    for where, name in ((there, "there"), (file, "file")):
        done = isotrope("repair", "fit", *where, "--with", "whitening", "--dimensions", 6, "-o", name)
        assert done.code == 0, done
    assert isotrope("repair", "apply", "file", "rows.npy", "-o", "repaired.npy").code == 0
    done = isotrope("repair", "apply", "there", place.address, *place.column, "-o", place.target, "--json")
    assert (done.json["rows"], done.json["columns"]) == (205, 6)
    np.testing.assert_allclose(place.back(), np.load("repaired.npy"), rtol=0, atol=1e-6)
    advice = isotrope("advise", place.address, *place.column, "--json")
    assert advice.json == isotrope("advise", "rows.npy", "--json").json
    refused = isotrope("repair", "apply", "there", place.address, *place.column, "-o", place.target)
    assert "already" in one_sentence(refused)
    wrong = isotrope("repair", "apply", "there", "rows.npy", "-o", place.target.replace("repaired", "other"))
    assert "its own kind of store" in one_sentence(wrong)


def test_a_new_database_is_made_for_the_repaired_table(isotrope: Command, tmp_path: Path) -> None:
    rows = numbers(30, 4)
    place = small_stores.lancedb(tmp_path / "store", rows)
    assert isotrope("repair", "fit", place.address, "--with", "centering", "-o", "r").code == 0
    done = isotrope("repair", "apply", "r", place.address, "-o", f"lancedb:{tmp_path / 'new'}#repaired")
    assert done.code == 0, done
    import lancedb

    table = lancedb.connect(str(tmp_path / "new")).open_table("repaired").to_arrow()
    np.testing.assert_allclose(np.stack(table.column("vector").to_pylist()), rows - rows.mean(axis=0), atol=1e-5)
    assert isotrope("scan", f"lancedb:{tmp_path / 'none'}#x").code == 2  # what is read must be there
    assert not (tmp_path / "none").exists()


def test_stores_are_written_by_the_local_engine(isotrope: Command, tmp_path: Path) -> None:
    place = small_stores.faiss(tmp_path / "store", numbers(20, 4))
    assert isotrope("repair", "fit", place.address, "--with", "centering", "-o", "r").code == 0
    refused = isotrope("repair", "apply", "r", place.address, "-o", place.target, "--engine", "ray")
    assert "stores are written with --engine local, not ray" in one_sentence(refused)


def test_a_run_folder_and_what_it_says(isotrope: Command, postgres: Path, tmp_path: Path) -> None:
    place = small_stores.pgvector(postgres, numbers(205, 8))
    done = isotrope("scan", place.address, *place.column, "--group-by", "language", "-o", "run")
    assert done.code == 0, done
    assert "#texts" in Path("run/findings.json").read_text()
    resumed = isotrope("scan", place.address, *place.column, "--group-by", "language", "-o", "run", "--resume")
    assert resumed.code == 0, resumed


#: The parts of a password that is hard to tell from the address around it; none may stand anywhere else.
WORDS = ["hunter", "qu33n", "zebra9", "w1ng"]


def test_a_password_is_nowhere(isotrope: Command, postgres: Path, tmp_path: Path) -> None:
    secret = "{}/{}@{} {}".format(*WORDS)
    place = small_stores.pgvector(postgres, numbers(205, 8))
    address = place.address.replace("postgres@", f"postgres:{secret}@")
    said = [
        isotrope("scan", address, *place.column),  # into a folder that gets its name from the address
        isotrope("scan", "--vectors", address, *place.column, "-o", "run"),
        isotrope("repair", "fit", address, *place.column, "--with", "centering", "-o", "fitted"),
        isotrope("repair", "show", "fitted", address, *place.column),
        isotrope("repair", "apply", "fitted", address, *place.column, "-o", address, "--output-column", "new"),
        isotrope("advise", address, *place.column, "-o", "advice"),
    ]
    assert [result.code for result in said] == [0] * len(said), said
    wrong = [
        isotrope("scan", address, "--column", "nosuch"),
        isotrope("scan", address, "--vectors", address),
        isotrope("scan", address, "--text", address),
        isotrope("repair", "apply", "fitted", address, *place.column, "-o", address, "--output-column", "new"),
        isotrope("scan", address.replace("postgresql", "postgresq")),
        isotrope("scan", f"postgresql://me:{secret}@127.0.0.1:9/db#t"),
        isotrope("scan", f"postgresql://me:{secret}@127.0.0.1:port/db#t"),
        isotrope("scan", f"qdrant+http://me:{secret}@127.0.0.1:9#t"),
    ]
    assert [result.code for result in wrong] == [2] * len(wrong), wrong
    files = list(tmp_path.rglob("*"))
    assert any(path.name == "report.html" for path in files)
    for result in said + wrong:
        for word in WORDS:
            assert word not in result.out + result.err
    for path in files:
        assert not any(word in str(path.relative_to(tmp_path)) for word in WORDS)
        if path.is_file():
            assert not any(word.encode() in path.read_bytes() for word in WORDS), path
