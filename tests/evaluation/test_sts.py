"""Scores on sentence pairs, against repairs, cosines and correlations worked out by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

import isotrope
from isotrope.errors import InputError
from isotrope.evaluation.pairs import Pairs, read_sets
from isotrope.evaluation.result import StsEvaluation
from isotrope.evaluation.sts import cosines, evaluate_sts
from isotrope.repairs import AllButTheTop, Centering, Repair, SoftDecay
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from testkit.models import texts

Write = Callable[..., Path]


@pytest.fixture
def sets(write_set: Write) -> Path:
    """STS-B, and a year of two subsets, each also whole."""
    write_set("sts-b", 40)
    for name, n in (("a", 30), ("b", 50)):
        write_set(f"sts12.{name}", n)
    folder = write_set("sts12.a", 30)
    whole = "".join((folder / f"sts12.{name}-test.csv").read_text() for name in "ab")
    (folder / "sts12-test.csv").write_text(whole)
    return folder


def by_hand(rows: np.ndarray, part: Pairs, first: int, pairs: int) -> tuple[float, float]:
    """Spearman and Pearson in per cent of pairs from number `first` on; rows: all first, then all second sentences."""
    found = []
    for i in range(first, first + len(part)):
        a, b = rows[i], rows[pairs + i]
        found.append(round(a @ b / math.sqrt((a @ a) * (b @ b)), 12))
    return 100 * spearmanr(found, part.gold).statistic, 100 * pearsonr(found, part.gold).statistic


def score(found: StsEvaluation, name: str, repair: str = "none") -> tuple[float, float]:
    (one,) = [s for s in found.scores if (s.set, s.repair) == (name, repair)]
    return one.spearman, one.pearson


@pytest.mark.parametrize("repair", [None, SoftDecay(-0.4, reference_rows=500), AllButTheTop(2)], ids=repr)
def test_concatenated(bert: Path, sets: Path, repair: Repair | None) -> None:
    found = evaluate_sts(model=bert, data=sets, repairs=[] if repair is None else [repair])
    name = "none" if repair is None else repr(repair)
    expected = {}
    for one in read_sets(None, sets, "concatenated"):
        rows = Encoder(Input(model=bert))(one.sentences).astype(np.float64)
        rows = rows if repair is None else repair.fit(rows).transform(rows)
        expected[one.name] = by_hand(rows, one.parts[0], 0, len(one.parts[0]))
        assert score(found, one.name, name) == pytest.approx(expected[one.name], abs=1e-3)
    assert list(expected) == ["sts-b", "sts12"]
    assert score(found, "mean", name) == pytest.approx(np.mean(list(expected.values()), axis=0), abs=1e-3)
    assert [s.set for s in found.scores if s.repair == "none"] == ["sts-b", "sts12", "mean"]
    assert {s.layers for s in found.scores} == {"-1"}


def test_paper_fits_on_the_year_and_takes_the_mean_over_subsets(bert: Path, sets: Path) -> None:
    found = evaluate_sts(
        model=bert, data=sets, sets=["sts12"], repairs=["all-but-the-top:directions=2"], protocol="paper"
    )
    (year,) = read_sets(["sts12"], sets, "paper")
    rows = Encoder(Input(model=bert, pooling="mean:1+-1"))(year.sentences).astype(np.float64)
    for name, images in (
        ("none", rows),
        ("all-but-the-top:directions=2", AllButTheTop(2).fit_transform(rows)),
    ):
        parts = [by_hand(images, year.parts[0], 0, 80), by_hand(images, year.parts[1], 30, 80)]
        assert score(found, "sts12.a", name) == pytest.approx(parts[0], abs=1e-3)
        assert score(found, "sts12.b", name) == pytest.approx(parts[1], abs=1e-3)
        assert score(found, "sts12", name) == pytest.approx(np.mean(parts, axis=0), abs=1e-3)
    assert [s.set for s in found.scores if s.repair == "none"] == ["sts12.a", "sts12.b", "sts12"]
    assert [s.n for s in found.scores if s.repair == "none"] == [30, 50, 80]
    assert {s.layers for s in found.scores} == {"1,-1"}


def test_fitted_on_other_text(bert: Path, sets: Path, tmp_path: Path) -> None:
    other = texts(60, seed=5)
    path = tmp_path / "other.txt"
    path.write_text("\n".join(other))
    Centering().fit(Encoder(Input(model=bert))(other)).save(tmp_path / "saved")
    found = evaluate_sts(
        model=bert, data=sets, sets=["sts-b"], repairs=["centering", tmp_path / "saved"], fit_text=path
    )
    fitted_on = {s.repair: s.fitted_on for s in found.scores}
    assert fitted_on == {"none": None, "centering": str(path), str(tmp_path / "saved"): "as saved"}
    mean = Encoder(Input(model=bert))(other).mean(axis=0)
    (one,) = read_sets(["sts-b"], sets, "concatenated")
    rows = Encoder(Input(model=bert))(one.sentences) - mean
    expected = by_hand(rows.astype(np.float64), one.parts[0], 0, 40)
    assert score(found, "sts-b", "centering") == pytest.approx(expected, abs=1e-2)
    assert score(found, "sts-b", str(tmp_path / "saved")) == pytest.approx(expected, abs=1e-2)
    own = evaluate_sts(model=bert, data=sets, sets=["sts-b"], repairs=["centering"])
    assert score(own, "sts-b", "centering") != pytest.approx(expected, abs=1e-2)
    assert own.scores[1].fitted_on == "own"


def test_differences_are_to_no_repair_and_corrected(bert: Path, sets: Path) -> None:
    found = evaluate_sts(model=bert, data=sets, repairs=["centering", "softdecay:form=shifted"])
    assert len(found.differences) == 3 * 2 * 2
    for d in found.differences:
        at = ("spearman", "pearson").index(d.metric)
        expected = score(found, d.set, d.repair)[at] - score(found, d.set)[at]
        assert d.difference == pytest.approx(expected)
        assert d.low <= d.difference <= d.high
        assert d.significant == (d.p_corrected < 0.05)
    # Holm: the smallest p-value times the number of comparisons, and none made smaller.
    smallest = min(found.differences, key=lambda d: d.p)
    assert smallest.p_corrected == pytest.approx(min(1.0, 12 * smallest.p))
    assert all(d.p_corrected >= d.p for d in found.differences)


def test_differences_may_be_to_another_repair_and_to_several(bert: Path, sets: Path) -> None:
    given = {"model": bert, "data": sets, "repairs": ["centering", "whitening"], "device": "cpu"}
    to_raw, to_both = evaluate_sts(**given), evaluate_sts(**given, against=["none", "whitening"])
    score = {(s.set, s.repair): s.spearman for s in to_raw.scores}
    assert {(s.set, s.repair): s.spearman for s in to_both.scores} == score
    assert {(d.repair, d.against) for d in to_both.differences} == {
        ("centering", "none"),
        ("whitening", "none"),
        ("none", "whitening"),
        ("centering", "whitening"),
    }
    for d in to_both.differences:
        if d.metric == "spearman":
            assert d.difference == pytest.approx(score[d.set, d.repair] - score[d.set, d.against])
            assert d.low <= d.difference <= d.high
    with pytest.raises(InputError, match="no 'flow' to compare with"):
        evaluate_sts(**given, against="flow")


def test_results_as_data(bert: Path, sets: Path) -> None:
    found = isotrope.evaluate_sts(model=bert, data=sets, repairs=["centering"], seed=3)
    again = isotrope.evaluate_sts(model=bert, data=sets, repairs=["centering"], seed=3)
    assert found.scores == again.scores
    assert found.differences == again.differences
    document = json.loads(found.to_json())
    first = document["scores"][0]
    assert (first["set"], first["repair"], first["fitted_on"], first["n"]) == ("sts-b", "none", None, 40)
    assert (first["model"], first["pooling"], first["layers"]) == (str(bert), "mean", "-1")
    assert first["low"] <= first["spearman"] <= first["high"]
    assert document["protocol"] == "concatenated"
    assert document["provenance"]["settings"]["seed"] == 3
    frame = found.to_frame()
    assert list(frame["set"]) == ["sts-b", "sts-b", "sts12", "sts12", "mean", "mean"]
    assert set(frame["protocol"]) == {"concatenated"}
    assert len(found.to_frame("differences")) == len(found.differences)


def test_undefined_correlations_say_so(bert: Path, write_set: Write) -> None:
    write_set("constant", 20, score="2.5")
    folder = write_set("single", 1)
    write_set("sts-b", 30)
    found = evaluate_sts(model=bert, data=folder, repairs=["centering"])
    reasons = {s.set: s.reason for s in found.scores if s.repair == "none"}
    assert reasons["constant"] == "all 20 gold scores are the same, so that no correlation is defined"
    assert reasons["single"] == "a correlation needs at least two pairs, got 1"
    assert reasons["sts-b"] is None
    assert reasons["mean"] == reasons["constant"]
    document = json.loads(found.to_json())
    assert [s["spearman"] for s in document["scores"] if s["set"] == "constant"] == [None, None]
    assert all(d["p"] is None for d in document["differences"] if d["set"] in ("constant", "single", "mean"))
    defined = [d for d in found.differences if d.set == "sts-b"]
    assert all(d.p_corrected <= min(1.0, 2 * d.p) + 1e-12 for d in defined)  # undefined ones are no comparisons


def test_one_pair_is_too_little_to_fit_some_repairs_on(bert: Path, write_set: Write) -> None:
    folder = write_set("single", 1)
    with pytest.raises(
        InputError, match="whitening cannot be fitted on the sentences of single: got 2 rows of width 16"
    ):
        evaluate_sts(model=bert, data=folder, repairs=["whitening"])


def test_rows_of_zeros_have_no_cosine() -> None:
    found = cosines(np.array([[1.0, 1.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]))
    assert found[0] == pytest.approx(math.sqrt(0.5))
    assert math.isnan(found[1])


def test_rows_that_are_the_same_have_the_same_cosine() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 16))
    assert set(cosines(np.concatenate([rows, rows]))) == {1.0}


def test_pairs_left_out_are_counted(bert: Path, sets: Path) -> None:
    with (sets / "sts-b-test.csv").open("a") as file:
        file.write("PAD\tPAD\tPAD\t1\t\ta cat\ta mat\n")
    found = evaluate_sts(model=bert, data=sets)
    assert found.left_out == {"sts-b": {"without a score": 1}}
    assert found.scores[0].n == 40


def test_bad_input(bert: Path, sets: Path, tmp_path: Path) -> None:
    Centering().fit(np.random.default_rng(0).normal(size=(9, 5))).save(tmp_path / "narrow")
    (tmp_path / "short.txt").write_text("\n".join(texts(10)))
    with pytest.raises(InputError, match="narrow is for rows of width 5, the rows here are of width 16"):
        evaluate_sts(model=bert, data=sets, repairs=[tmp_path / "narrow"])
    with pytest.raises(InputError, match=r"whitening cannot be fitted on .*short\.txt: got 10 rows of width 16"):
        evaluate_sts(model=bert, data=sets, repairs=["whitening"], fit_text=tmp_path / "short.txt")
    with pytest.raises(InputError, match="no protocol"):
        evaluate_sts(model=bert, data=sets, protocol="simcse")
    with pytest.raises(InputError, match="the seed is -1"):
        evaluate_sts(model=bert, data=sets, seed=-1)
    with pytest.raises(InputError, match="names its layers itself"):
        evaluate_sts(model=bert, data=sets, pooling="first+last", layers="2")
    with pytest.raises(InputError, match="no pooling 'median'"):
        evaluate_sts(model=bert, data=sets, pooling="median")
