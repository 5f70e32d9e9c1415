"""Verdicts say when a handful of rows decides them, and name the rows that are far too short."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from isotrope.findings import Findings
from isotrope.readings.unusual_rows import find_deciding_rows
from isotrope.scanner import scan
from isotrope.sources.batch import Rows
from isotrope.statistics import Summary, Wanted


def _isotropic(n: int = 3000, d: int = 64) -> np.ndarray:
    return np.random.default_rng([n, d]).normal(size=(n, d))


def _with_long(times: float, rows: list[int], n: int = 3000) -> np.ndarray:
    """Isotropic rows of which some are so many times as long as others."""
    values = _isotropic(n)
    values[rows] *= times * np.sqrt(64) / np.linalg.norm(values[rows], axis=1, keepdims=True)
    return values


def _scan(rows: np.ndarray, **options: object) -> Findings:
    return scan(vectors=rows, measures="moments", **options)  # type: ignore[arg-type]


def test_one_long_row_that_decides_is_named() -> None:
    found = _scan(_with_long(50, [1234]))
    assert found.verdict.word == "few directions"
    assert found.verdict.statements[1].text == (
        "One row decides this: row 1234 is 50 times as long as the median row. Without it: healthy."
    )
    (row,) = found.rows["extreme"]
    assert (row["id"], row["layer"], row["without"]) == (1234, 0, "healthy")
    assert row["times_median"] == pytest.approx(50, rel=0.02)
    assert row["length"] == pytest.approx(400, rel=1e-6)
    assert found.counts["long_rows"] == 1
    kept = np.delete(_with_long(50, [1234]), 1234, axis=0)
    assert _scan(kept).verdict.word == "healthy"  # what the statement says is what happens


def test_no_more_rows_are_named_than_decide() -> None:
    found = _scan(_with_long(45, [7, 70, 700]))
    (statement,) = [s for s in found.verdict.statements if "decide" in s.text]
    deciding = [row["id"] for row in found.rows["extreme"] if row.get("without")]
    assert set(deciding) == {7, 70, 700}
    assert statement.text.startswith(
        f"3 rows decide this: row {deciding[0]}, row {deciding[1]} and row {deciding[2]} are"
    )
    rest = np.delete(_with_long(45, [7, 70, 700]), deciding, axis=0)
    assert _scan(rest).verdict.word == "healthy"
    fewer = np.delete(_with_long(45, [7, 70, 700]), deciding[:-1], axis=0)
    assert _scan(fewer).verdict.word == "few directions"


def test_long_rows_that_do_not_decide_are_not_in_the_verdict() -> None:
    found = _scan(_with_long(12, [5]))
    assert found.verdict.word == "healthy"
    assert len(found.verdict.statements) == 1
    assert [(row["id"], row.get("without")) for row in found.rows["extreme"]] == [(5, None)]


def test_many_long_rows_are_no_handful() -> None:
    found = _scan(_with_long(40, list(range(100))))
    assert not [s for s in found.verdict.statements if "decide" in s.text]
    assert found.counts["long_rows"] == 100
    assert len(found.rows["extreme"]) == 16


@pytest.mark.parametrize("times", [1e4, 1e8, 1e14, 1e20])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_so_long_that_the_sums_have_lost_the_others(times: float, dtype: type) -> None:
    values = _isotropic().astype(dtype)
    values[42] *= dtype(times)
    summary = Wanted(sample=1000).empty(64, Rows(np.empty(0, np.uint64)))
    for at in np.array_split(np.arange(3000), 4):
        summary.update(values[at], Rows(at.astype(np.uint64)))
    assert find_deciding_rows(summary, {"isoscore": 0.98}) == (1, "healthy")


def test_without_a_sample_nothing_is_made_up() -> None:
    values = _isotropic()
    values[42] *= 1e14
    summary = Wanted().empty(64, Rows(np.empty(0, np.uint64)))
    summary.update(values, Rows(np.arange(3000, dtype=np.uint64)))
    assert find_deciding_rows(summary, {"isoscore": 0.98}) == (0, "")


def test_groups_carry_the_rows_too(tmp_path: Path) -> None:

    rows = _with_long(50, [1234])
    frame = pd.DataFrame({"vector": list(rows), "kind": np.where(np.arange(3000) % 3 == 0, "a", "b")})
    frame.to_parquet(tmp_path / "rows.parquet")
    found = scan(vectors=tmp_path / "rows.parquet", measures="moments", group_by="kind")
    assert "One row decides this: row 1234" in str(found.verdict)


@pytest.mark.parametrize("length", [1e-4, 1e-20])
def test_rows_far_below_the_median_are_counted_and_named(length: float) -> None:
    rows = _isotropic()
    rows[[9, 99, 999, 1999]] *= length
    found = _scan(rows)
    assert found.verdict.statements[0].text == (
        "Far shorter: 4 rows shorter than 0.001 of the median length (" + _three(found) + " and 1 more)."
    )
    assert {row["id"] for row in found.rows["extreme"]} == {9, 99, 999, 1999}
    assert found.counts["short_rows"] == 4


def _three(found: Findings) -> str:
    return ", ".join(f"row {row['id']}" for row in found.rows["extreme"][:3])


def test_rows_that_are_left_out_are_in_the_json() -> None:
    rows = _isotropic()
    rows[5], rows[7, 3] = 0.0, np.nan
    found = _scan(rows)
    document = json.loads(found.to_json())
    zero, nonfinite = ([{"id": row, "row": row, "layer": 0}] for row in (5, 7))
    assert document["rows"] == {"zero": zero, "nonfinite": nonfinite}
    assert Findings.from_json(found.to_json()).rows == found.rows
    del document["rows"]  # as version 0.1 wrote it
    assert Findings.from_dict(document).rows == {}


def test_tokens_are_named_by_text_position_and_token() -> None:
    from isotrope.formats.names import name_row

    found = scan(text=["the cat sat on the mat", "a dog"] * 20, layers="-1", measures="moments")
    assert found.rows == {}
    row = {"id": 17, "layer": 6, "position": 3, "token": "the"}
    assert name_row(found, row) == "token 'the' at position 3 of text 17"
    assert name_row(found, {"id": 17, "layer": 6}) == "text 17"


def test_a_saved_summary_keeps_what_decides() -> None:
    values = _with_long(50, [1234])
    summary = Wanted().empty(64, Rows(np.empty(0, np.uint64)))
    summary.update(values, Rows(np.arange(3000, dtype=np.uint64)))
    assert find_deciding_rows(Summary.from_arrays(summary.arrays()), {"isoscore": 0.98}) == (1, "healthy")
    summary.lengths = None
    assert find_deciding_rows(summary, {"isoscore": 0.98}) == (0, "")
