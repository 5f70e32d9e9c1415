"""isotrope scan --queries: what queries find among documents, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import isotrope
from isotrope.cli.main import app
from isotrope.errors import InputError, StoreError
from testkit.models import texts as make_texts

NAMES = ("query_gap", "query_mean_cosine", "far_queries", "query_hubness", "never_returned", "query_margin")


@pytest.fixture(scope="module")
def documents() -> np.ndarray:
    return np.random.default_rng(0).standard_normal((900, 16)) + 0.5


@pytest.fixture(scope="module")
def queries() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((120, 16)) + np.linspace(0, 1, 16)


def test_queries_add_their_measures_with_intervals_and_nulls(documents: np.ndarray, queries: np.ndarray) -> None:
    findings = isotrope.scan(vectors=documents, queries=queries)
    without = isotrope.scan(vectors=documents)
    for name in NAMES:
        reading = findings.get(name)
        plain = isotrope.measures.get(name)(documents, queries)
        assert reading.value == pytest.approx(plain, rel=1e-9)
        assert (reading.n, reading.layer) == (120, 0)
        assert np.isfinite(reading.null)
        if isotrope.measures.get(name).estimate:
            assert reading.low <= reading.value <= reading.high
    assert not {r.measure for r in without.readings} & set(NAMES)
    assert findings.source["queries"] == {"files": [], "column": None, "rows": 120}


def test_queries_of_the_same_space_are_like_the_null(documents: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((3_000, 16))
    findings = isotrope.scan(vectors=rows[:2_500], queries=rows[2_500:])
    for name in ("never_returned", "query_margin", "far_queries"):
        reading = findings.get(name)
        assert reading.low - 0.01 <= reading.null <= reading.high + 0.01


def test_texts_of_queries_are_read_by_the_model_of_the_documents(bert: Path) -> None:
    texts = make_texts(60)
    found = isotrope.scan(model=bert, text=texts[:40], queries=texts[40:], pooling="mean", layers=-1)
    rows = [
        np.asarray(isotrope.Encoder(isotrope.Input(model=bert, pooling="mean", layers=-1))(t))
        for t in (texts[:40], texts[40:])
    ]
    assert found.get("query_gap").value == pytest.approx(isotrope.measures.get("query_gap")(*rows), rel=1e-4)


def test_the_command_line_has_them(tmp_path: Path, documents: np.ndarray, queries: np.ndarray) -> None:
    np.save(tmp_path / "documents.npy", documents)
    np.save(tmp_path / "queries.npy", queries)
    arguments = ["scan", str(tmp_path / "documents.npy"), "--queries", str(tmp_path / "queries.npy"), "--json"]
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said.output
    readings = {r["measure"]: r["value"] for r in json.loads(said.stdout)["readings"]}
    assert readings["query_gap"] == pytest.approx(isotrope.measures.get("query_gap")(documents, queries))


def test_what_cannot_be_searched_is_refused(documents: np.ndarray, queries: np.ndarray) -> None:
    with pytest.raises(InputError, match="the queries have 15 dimensions and the documents 16; give vectors of one"):
        isotrope.scan(vectors=documents, queries=queries[:, 1:])
    with pytest.raises(InputError, match="no query that is a usable row"):
        isotrope.scan(vectors=documents, queries=np.zeros((3, 16)))
    with pytest.raises(InputError, match="one row for each text, not one for each token; add --pooling mean"):
        isotrope.scan(text=["a text", "another"], queries=["a query"])


def test_a_measure_of_queries_that_is_named_says_what_is_missing(documents: np.ndarray) -> None:
    reading = isotrope.scan(vectors=documents, measures="query_gap").get("query_gap")
    assert (np.isnan(reading.value), reading.reason) == (True, "there are no queries (--queries FILE)")


def test_a_stopped_scan_refuses_other_queries(tmp_path: Path, documents: np.ndarray, queries: np.ndarray) -> None:
    isotrope.scan(vectors=documents, queries=queries, output=tmp_path / "run")
    with pytest.raises((InputError, StoreError), match="queries"):
        isotrope.scan(vectors=documents, queries=queries[:50], output=tmp_path / "run", resume=True)
