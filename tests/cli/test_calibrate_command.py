"""isotrope calibrate as it is typed: sentences, JSON, the file it writes, and what it says of bad input."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from isotrope import Calibration, Centering
from testkit.command import Command, one_sentence

LINES = [
    f"Line {i} says that {word} eat {food}." for i in range(12) for word in ("cats", "dogs") for food in ("f", "m")
]


@pytest.fixture(autouse=True)
def _files(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 16)) + 0.5
    np.save(tmp_path / "rows.npy", rows)
    np.save(tmp_path / "queries.npy", rows[:200] + 0.4 * rng.normal(size=(200, 16)))
    np.save(tmp_path / "other.npy", rows[:, :12] - 0.2)
    np.save(tmp_path / "narrow.npy", rows[:, :3])
    Centering().fit(rows).save(tmp_path / "centering")
    pairs = "".join(f"{i}\t{(i + 1 + i % 7) % 400}\t{i % 2}\n" for i in range(300))
    (tmp_path / "pairs.tsv").write_text(f"id1\tid2\tlabel\n{pairs}")
    (tmp_path / "unknown.tsv").write_text("id1\tid2\tlabel\n0\tx9\t1\n")
    (tmp_path / "qrels.tsv").write_text("".join(f"{i}\t{i}\t1\n" for i in range(200)))
    (tmp_path / "strange.tsv").write_text("0\tnowhere\t1\n")


def test_a_threshold_in_words_and_in_json(isotrope: Command) -> None:
    result = isotrope("calibrate", "rows.npy", "--false-accept", "0.01", "--documents", "1000", "-o", "saved.json")
    assert (result.code, result.err) == (0, "")
    document = isotrope("calibrate", "rows.npy", "--false-accept", "0.01", "--documents", "1000", "--json").json
    found = document["threshold"]
    assert found["low"] < found["value"] < found["high"]
    assert (found["false_accept"], found["method"]) == (0.01, "quantile")
    assert document["query"] == {"documents": 1000, "false_accept": pytest.approx(1 - 0.99**1000)}
    assert document["separation"]["separates"] == "no"
    assert f"Accept from a cosine of {found['value']:.4f} on: 0.01 of random pairs reach it." in result.out
    assert "No threshold separates best matches from the background" in result.out
    assert Calibration.load("saved.json").asked == found["value"]
    saved = json.loads(Path("saved.json").read_text())
    assert saved["threshold"] == found
    assert "never written over" in one_sentence(isotrope("calibrate", "rows.npy", "-o", "saved.json"))


def test_queries_qrels_and_another_space(isotrope: Command) -> None:
    arguments = ("--queries", "queries.npy", "--qrels", "qrels.tsv", "--precision-at", "0.5", "--recall-at", "0.5")
    result = isotrope("calibrate", "rows.npy", *arguments)
    assert (result.code, result.err) == (0, "")
    assert "For a precision of 0.5, accept from" in result.out
    assert "For a recall of 0.5, accept from" in result.out
    assert "area under the ROC curve" in result.out
    document = isotrope("calibrate", "rows.npy", *arguments, "--json").json
    assert [each["goal"] for each in document["certified"]] == ["precision", "recall"]
    for other in (("--to", "other.npy"), ("--repair", "centering")):
        result = isotrope("calibrate", "rows.npy", *other, "--cutoff", "0.5")
        assert "The cut-off 0.5 becomes" in result.out, result.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("rows.npy --false-accept 1e-14", "the smallest rate is"),
        ("rows.npy --false-accept 7", "not between 0 and 1"),
        ("rows.npy --queries narrow.npy", "3 dimensions and the documents 16"),
        ("rows.npy --pairs unknown.tsv", "an id that no row has (the first: 'x9')"),
        ("rows.npy --pairs nosuch.tsv", "there is no file 'nosuch.tsv'"),
        ("rows.npy --pairs rows.npy", "is no table of pairs"),
        ("rows.npy --pairs qrels.tsv", "expected id1 and id2"),
        ("rows.npy --pairs pairs.tsv --qrels qrels.tsv", "got pairs and qrels"),
        ("rows.npy --qrels qrels.tsv", "give them with --queries"),
        ("rows.npy --queries queries.npy --qrels strange.tsv", "'nowhere'"),
        ("rows.npy --queries queries.npy --qrels nosuch.tsv", "there is no file 'nosuch.tsv'"),
        ("rows.npy --pairs pairs.tsv --precision-at 0.99", "no threshold has a precision of 0.99 for certain"),
        ("rows.npy --precision-at 0.9", "needs labels"),
        ("rows.npy --cutoff 0.8", "together with --to or --repair"),
        ("rows.npy --to queries.npy --cutoff 0.8", "400 rows here and 200 in the other space"),
        ("rows.npy --repair nosuch --cutoff 0.8", "nosuch"),
        ("rows.npy --id-column name --pairs pairs.tsv", "no column 'name'"),
        ("rows.npy --id-column nosuch.txt --pairs pairs.tsv", "no column 'nosuch.txt', nor is there such a file"),
        ("nosuch.npy", "nosuch.npy"),
        ("", "got no rows"),
    ],
)
def test_bad_input_is_one_sentence(isotrope: Command, arguments: str, says: str) -> None:
    assert says in one_sentence(isotrope("calibrate", *arguments.split()))


def test_pairs_of_texts_by_the_embedded_model(isotrope: Command) -> None:
    pairs = [(LINES[i], LINES[(i + 1 + i % 2) % len(LINES)], i % 2) for i in range(len(LINES))]
    Path("texts.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(f"{a}\t{b}\t{c}\n" for a, b, c in pairs * 1))
    Path("more.txt").write_text("\n".join(f"{line} Number {i}." for i, line in enumerate(LINES * 2)))
    result = isotrope("calibrate", "more.txt", "--false-accept", "0.1", "--json")
    assert result.json["made_from"]["documents"]["kind"] == "texts"
    assert result.json["made_from"]["rows"] == len(LINES) * 2
    assert "48 usable rows" in one_sentence(isotrope("calibrate", "--pairs", "texts.tsv"))
