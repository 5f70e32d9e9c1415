"""isotrope.calibrate from vectors, with labels and to another space; what it saves and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.errors import InputError, StoreError

rng = np.random.default_rng(0)
ROWS = rng.normal(size=(600, 32)) + 0.6
BESIDE = ROWS + 0.6 * rng.normal(size=ROWS.shape)
PAIRS = [(i, 600 + i, 1) for i in range(300)] + [(i, 600 + (i + 7) % 600, 0) for i in range(600)]


def cosines(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a / np.linalg.norm(a, axis=1, keepdims=True)) @ (b / np.linalg.norm(b, axis=1, keepdims=True)).T


def test_a_threshold_accepts_the_share_that_was_asked_for() -> None:
    found = isotrope.calibrate(vectors=ROWS, false_accept=1e-3)
    pairs = cosines(ROWS, ROWS)[np.triu_indices(600, 1)]
    assert (pairs >= found.asked).mean() == pytest.approx(1e-3, rel=0.05)
    assert found.threshold(1e-3) == found.asked
    assert found.percentile(0.3) == pytest.approx(100 * (pairs < 0.3).mean(), abs=0.2)
    assert found.percentile(np.array([-1.0, 0.3])).shape == (2,)


def test_one_query_against_many_documents() -> None:
    found = isotrope.calibrate(vectors=ROWS, false_accept=1e-3, documents=5_000)
    assert found.query_false_accept == pytest.approx(1 - (1 - 1e-3) ** 5_000)
    assert isotrope.calibrate(vectors=ROWS, false_accept=1e-3).documents == 600
    by_query = found.threshold(0.05, documents=100)
    assert by_query.false_accept == pytest.approx(1 - 0.95 ** (1 / 100))
    assert 1 - (1 - by_query.false_accept) ** 100 == pytest.approx(0.05)


def test_queries_are_compared_with_documents() -> None:
    queries = rng.normal(size=(80, 32)) - 0.3
    found = isotrope.calibrate(vectors=ROWS, queries=queries, false_accept=0.01)
    assert found.background.pairs == 80 * 600
    assert (cosines(queries, ROWS) >= found.asked).mean() == pytest.approx(0.01, rel=0.05)


def test_the_default_rate_is_one_that_the_rows_support() -> None:
    assert isotrope.calibrate(vectors=ROWS[:60]).asked.false_accept in (0.1, 0.01, 1e-3)
    assert isotrope.calibrate(vectors=np.concatenate([ROWS, BESIDE])).asked.false_accept == 1e-4


def test_known_matches_are_no_background() -> None:
    both = np.concatenate([ROWS, BESIDE])
    pairs = [(i, 600 + i, 1) for i in range(600)] + [(i, 601 + i, 0) for i in range(590)]
    found = isotrope.calibrate(vectors=both, pairs=pairs, false_accept=1e-3)
    assert found.background.pairs == 1200 * 1199 // 2 - 600
    assert found.asked < isotrope.calibrate(vectors=both, false_accept=1e-3).asked


def test_labelled_pairs_give_certified_thresholds_and_probabilities() -> None:
    both = np.concatenate([ROWS, BESIDE])
    found = isotrope.calibrate(vectors=both, pairs=PAIRS, false_accept=1e-3, precision_at=0.9, recall_at=0.8)
    precision, recall = found.certified
    labels = np.array([pair[2] for pair in PAIRS], dtype=bool)
    scores = cosines(both, both)[[pair[0] for pair in PAIRS], [pair[1] for pair in PAIRS]]
    assert labels[scores >= precision.value].mean() > 0.9
    assert (scores[labels] >= recall.value).mean() > 0.8
    assert (precision.goal, recall.goal) == ("precision", "recall")
    assert found.probability(0.1) < 0.1 < 0.9 < found.probability(0.95)
    assert found.labelled is not None
    assert found.labelled["ece_after"] < found.labelled["ece_before"]


def test_qrels_label_the_ten_best_documents_and_the_judged_ones(tmp_path: Path) -> None:
    path = tmp_path / "qrels.tsv"
    path.write_text("query-id\tcorpus-id\tscore\n" + "".join(f"{i}\t{i}\t1\n" for i in range(200)))
    found = isotrope.calibrate(vectors=ROWS, queries=BESIDE, qrels=path, false_accept=1e-3, precision_at=0.8)
    best = np.argsort(-cosines(BESIDE[:200], ROWS), axis=1)[:, :10]
    missed = sum(i not in best[i] for i in range(200))
    assert found.labelled is not None
    assert (found.labelled["pairs"], found.labelled["matches"]) == (2_000 + missed, 200)
    assert found.background.pairs == 600 * 600 - 200


@pytest.mark.parametrize("by", ["to", "repair"])
def test_a_cutoff_is_carried_to_another_space(by: str, tmp_path: Path) -> None:
    repair = isotrope.Centering().fit(ROWS)
    repair.save(tmp_path / "repair")
    other: dict[str, Any] = {"to": ROWS - ROWS.mean(axis=0)} if by == "to" else {"repair": tmp_path / "repair"}
    found = isotrope.calibrate(vectors=ROWS, cutoff=0.5, **other).transfer
    assert found is not None
    places = np.triu_indices(600, 1)
    old, new = (cosines(rows, rows)[places] for rows in (ROWS, ROWS - ROWS.mean(axis=0)))
    share = (old >= 0.5).mean()
    assert found.share == pytest.approx(share)
    assert (new >= found.after).mean() == pytest.approx(share, rel=1e-3)
    assert found.low < found.after < found.high
    assert found.disagree == pytest.approx(((old >= 0.5) != (new >= found.after)).mean(), abs=1e-5)


def test_a_carried_cutoff_holds_on_unseen_rows() -> None:
    """40 draws: the unseen share before lies between the unseen shares after at both ends of the interval."""
    from isotrope.statistics import Image
    from isotrope.statistics.cutoff_transfer import translate

    draws, kept = np.random.default_rng(5), 0
    for seed in range(40):
        rows = draws.normal(size=(500, 12)) + 0.5
        other = rows + 0.4 * draws.normal(size=rows.shape) - 0.3
        (found,) = translate(Image.of(rows[:250], other[:250]), [0.6], seed=seed)
        places = np.triu_indices(250, 1)
        old, new = (cosines(each[250:], each[250:])[places] for each in (rows, other))
        kept += (new >= found.high).mean() <= (old >= 0.6).mean() <= (new >= found.low).mean()
    assert kept >= 36


def test_saved_and_loaded_it_says_the_same(tmp_path: Path) -> None:
    both = np.concatenate([ROWS, BESIDE])
    found = isotrope.calibrate(vectors=both, pairs=PAIRS, precision_at=0.9, to=both[:, :16].copy(), cutoff=0.5)
    found.save(tmp_path / "calibration.json")
    again = isotrope.Calibration.load(tmp_path / "calibration.json")
    assert again.to_dict() == found.to_dict()
    for rate in (0.1, 1e-3, 1e-5):
        assert again.threshold(rate).to_dict() == found.threshold(rate).to_dict()
    assert again.probability([0.1, 0.8]).tolist() == found.probability([0.1, 0.8]).tolist()
    document = json.loads((tmp_path / "calibration.json").read_text())
    assert document["version"] == 1
    assert {"rows", "seed", "date", "isotrope", "documents"} <= document["made_from"].keys()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda text: text[:-40], "damaged"),
        (lambda text: text.replace('"pairs": ', '"pairs": 1'), "damaged"),
        (lambda text: "[1]", "damaged"),
        (lambda text: '{"kind": "other"}', "damaged"),
        (lambda text: text.replace('"version": 1', '"version": 7'), "of version 7, expected 1"),
    ],
)
def test_a_damaged_file_is_refused(change: Any, says: str, tmp_path: Path) -> None:
    path = tmp_path / "calibration.json"
    isotrope.calibrate(vectors=ROWS[:100], false_accept=0.1).save(path)
    path.write_text(change(path.read_text()))
    with pytest.raises(StoreError, match=says):
        isotrope.Calibration.load(path)


def test_ids_of_a_table_and_of_a_file(tmp_path: Path) -> None:
    names = [f"d{i}" for i in range(600)]
    pairs = [(f"d{a}", f"d{b % 600}", label) for a, b, label in [(i, i + 1, i % 2) for i in range(200)]]
    pd.DataFrame({"name": names, "vector": list(ROWS)}).to_parquet(tmp_path / "rows.parquet")
    np.save(tmp_path / "rows.npy", ROWS)
    (tmp_path / "ids.txt").write_text("\n".join(names))
    by_column = isotrope.calibrate(vectors=tmp_path / "rows.parquet", pairs=pairs, id_column="name")
    by_file = isotrope.calibrate(vectors=tmp_path / "rows.npy", pairs=pairs, id_column=tmp_path / "ids.txt")
    assert by_column.labelled == by_file.labelled


@pytest.mark.parametrize("ending", ["tsv", "csv", "jsonl", "parquet"])
def test_pairs_of_any_table(ending: str, tmp_path: Path) -> None:
    table = pd.DataFrame([(str(a), str(b), label) for a, b, label in PAIRS], columns=["id1", "id2", "label"])
    path = tmp_path / f"pairs.{ending}"
    if ending == "parquet":
        table.to_parquet(path)
    elif ending == "jsonl":
        table.to_json(path, orient="records", lines=True)
    else:
        table.to_csv(path, sep="\t" if ending == "tsv" else ",", index=False)
    both = np.concatenate([ROWS, BESIDE])
    assert (
        isotrope.calibrate(vectors=both, pairs=path).labelled == isotrope.calibrate(vectors=both, pairs=PAIRS).labelled
    )


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"vectors": ROWS[:20]}, "got 20 usable rows, expected at least 50"),
        ({"vectors": ROWS, "false_accept": 1e-15}, "the smallest rate is"),
        ({"vectors": ROWS, "false_accept": 2.0}, "not between 0 and 1"),
        ({"vectors": ROWS, "queries": np.ones((3, 5))}, "5 dimensions and the documents 32"),
        ({"vectors": ROWS, "precision_at": 0.9}, "needs labels"),
        ({"vectors": ROWS, "cutoff": 0.8}, "together with --to or --repair"),
        ({"vectors": ROWS, "to": ROWS}, "together with --to or --repair"),
        ({"vectors": ROWS, "to": ROWS[:50], "cutoff": 0.5}, "600 rows here and 50 in the other space"),
        ({"vectors": ROWS, "to": ROWS, "cutoff": 0.99}, "reach the cut-off 0.99, expected at least 100"),
        ({"vectors": ROWS, "to": ROWS, "cutoff": 3.0}, "not between −1 and 1"),
        ({"vectors": ROWS, "pairs": [("0", "x", 1)] * 30}, "'x'"),
        ({"vectors": ROWS, "pairs": [(0, 1, "yes")]}, "has the label 'yes'"),
        ({"vectors": ROWS, "pairs": [(0, 1)]}, "has 2 values, expected three"),
        ({"vectors": ROWS, "pairs": [(0, 1, 4.0)] * 30}, "--match-from"),
        ({"vectors": ROWS, "pairs": []}, "holds no pair"),
        ({"vectors": ROWS, "documents": 0}, "at least one"),
        ({"vectors": ROWS, "qrels": "q.tsv"}, "give them with --queries"),
        ({"vectors": np.ones((100, 4)), "false_accept": 0.01}, "have the cosine 1, as copies have"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError) as caught:
        isotrope.calibrate(**asked)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ids_that_repeat_are_missing_or_unknown(tmp_path: Path) -> None:
    pairs = [(str(i), str(i + 1), i % 2) for i in range(100)]
    for text, says in (
        ("\n".join(["a"] * 600), "rows 0 and 1 .* are both 'a'"),
        ("\n".join(["a", "", *map(str, range(598))]), "row 1 of .*ids.txt .counted from 0. has no id"),
        ("a\nb", "holds 2 ids and there are 600 rows"),
    ):
        (tmp_path / "ids.txt").write_text(text)
        with pytest.raises(InputError, match=says):
            isotrope.calibrate(vectors=ROWS, pairs=pairs, id_column=tmp_path / "ids.txt")
    (tmp_path / "qrels.tsv").write_text("0\tnowhere\t1\n")
    with pytest.raises(InputError, match="the judgements name as document 1 of 1 times an id that no row has"):
        isotrope.calibrate(vectors=ROWS, queries=BESIDE, qrels=tmp_path / "qrels.tsv")
    (tmp_path / "qrels.tsv").write_text("nobody\t1\t1\n")
    with pytest.raises(InputError, match="name as query"):
        isotrope.calibrate(vectors=ROWS, queries=BESIDE, qrels=tmp_path / "qrels.tsv")


def test_probability_needs_labels() -> None:
    with pytest.raises(InputError, match="needs labels"):
        isotrope.calibrate(vectors=ROWS, false_accept=0.01).probability(0.5)
