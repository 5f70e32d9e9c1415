"""Table 1: its rows and their printed names, the gain, the best α, fits on another text, and the verdicts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.sources.text.encoder import Encoder
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.published import (
    BEST,
    FIXED,
    SETS,
    TABLE_1,
    find_sts_score,
    name_fit_text,
    name_row,
)
from isotrope.studies.uniformity.sts import _relative_gain, complete_scores, judge_sts, score_sts, select_best_alpha
from testkit.models import save_model, texts
from testkit.small_studies import pair_files


def test_a_gain_over_a_negative_score_is_positive() -> None:
    rows = [("a", "none", -2.0), ("a", "whitening", 1.0), ("b", "none", 50.0), ("b", "whitening", 45.0)]
    scores = pd.DataFrame(rows, columns=["set", "repair", "spearman"])
    assert _relative_gain(scores).tolist() == pytest.approx([0.0, 150.0, 0.0, -10.0])


def test_the_best_alpha_is_chosen_for_each_set() -> None:
    names = [f"softdecay:alpha={alpha}:form=paper" for alpha in (-0.2, -0.6, -1)]
    rows = [
        (one, name, score)
        for one, of in (("a", (1, 3, 2)), ("b", (9, 7, 8)))
        for name, score in zip(names, of, strict=True)
    ]
    scores = pd.DataFrame([*rows, ("a", "whitening", 99.0)], columns=["set", "repair", "spearman"])
    best = select_best_alpha(scores).set_index("set")
    assert best["spearman"].to_dict() == {"a": 3, "b": 9}
    assert set(best["repair"]) == {BEST}
    # The mean is over the sets, each with its own α, and not of the α with the best mean; parts of sets do not count.
    means = [("mean", name, score) for name, score in zip(names, (5.0, 5.0, 5.0), strict=True)]
    part = [("b.part", name, 100.0) for name in names]
    more = pd.concat([scores, pd.DataFrame([*means, *part], columns=scores.columns)]).assign(low=1.0)
    best = select_best_alpha(more).set_index("set")
    assert best.loc["mean", "spearman"] == 6.0
    assert math.isnan(best.loc["mean", "low"])
    assert best.loc["a", "low"] == 1.0
    assert select_best_alpha(scores[scores["repair"].isin([names[0], "whitening"])]).empty  # nothing to choose from


#: Our name of every row of Table 1, and the text that it is fitted on.
ROWS = {
    "none": ("none", None),
    "sbert-wk": ("sbert-wk", None),
    "flow (NLI)": ("flow", "all-nli.txt"),
    "whitening (NLI)": ("whitening", "all-nli.txt"),
    "whitening (NLI) 256": ("whitening:dimensions=256", "all-nli.txt"),
    "whitening": ("whitening", None),
    BEST: (BEST, None),
}


def test_all_seven_rows_of_table_1_are_found_by_their_names() -> None:
    assert list(ROWS) == list(TABLE_1["bert-base"])
    for printed, (repair, text) in ROWS.items():
        name = repair if text is None else name_row(repair, name_fit_text(text))
        scores = [find_sts_score("bert-base-uncased", one, name, "paper") for one in SETS]
        assert scores == list(TABLE_1["bert-base"][printed])


def test_rows_that_are_fitted_on_another_text_have_no_printed_number() -> None:
    for text in ("wiki.txt", "qnli.tsv", "wnli.tsv", ["one", "two"]):
        assert math.isnan(find_sts_score("bert-base-uncased", "sts-b", name_row("flow", name_fit_text(text)), "paper"))


def test_the_printed_mean_is_over_the_sets_that_were_scored() -> None:
    frame = pd.DataFrame({"set": ["sts-b", "sts12", "mean"], "repair": "none", "spearman": 50.0})
    found = complete_scores(frame, "bert-base-uncased", "paper").set_index("set")["printed"]
    assert found["mean"] == pytest.approx((59.05 + 57.72) / 2)
    assert math.isnan(find_sts_score("bert-base-uncased", "mean", "none", "paper", ["sts-b", "another"]))


def test_repairs_are_fitted_on_another_text(tmp_path: Path) -> None:
    """Whitening by the mean and the covariance of the other text's sentences, by numpy."""
    model = save_model(tmp_path / "bert-base-uncased", "bert")
    data, nli = pair_files(tmp_path), tmp_path / "small-nli.txt"
    other = texts(120, seed=5)
    nli.write_text("\n".join(other) + "\n")
    options = StudyOptions(output=tmp_path / "s", models=[model], data=data, device="cpu")
    results = score_sts(options, "bert-base-uncased", "paper", nli)
    scores, differences = (table.frame for table in results.tables)
    assert [claim.text for claim in results.claims if "SBERT-WK" in claim.text]  # which needs more layers
    by = scores[scores["set"] == "sts-b"].set_index("repair")
    encoder = Encoder(options.input("bert-base-uncased", layers="1,-1", pooling="mean"))
    fitted = np.asarray(encoder(other), dtype=np.float64)
    pairs = [line.split("\t") for line in (data / "sts" / "sts-b-test.csv").read_text().splitlines()]
    rows = np.asarray(encoder([p[5] for p in pairs] + [p[6] for p in pairs]), dtype=np.float64)
    _, singular, directions = np.linalg.svd(fitted - fitted.mean(0), full_matrices=False)
    white = (rows - fitted.mean(0)) @ directions.T / singular
    first, second = np.split(white / np.linalg.norm(white, axis=1, keepdims=True), 2)
    expected = 100 * stats.spearmanr((first * second).sum(1), [float(p[4]) for p in pairs]).statistic
    assert by.loc["whitening (NLI)", "spearman"] == pytest.approx(expected, abs=1e-6)
    assert by.loc["whitening (NLI)", "printed"] == 68.19
    assert by.loc["flow (NLI)", "printed"] == 58.56
    assert by.loc["whitening (NLI)", "spearman"] != by.loc["whitening", "spearman"]
    assert by.loc["whitening (NLI)", "fitted_on"] == "NLI"
    assert "whitening (NLI) 256" not in by.index  # rows of 16 columns
    assert not scores.astype(str).apply(lambda column: column.str.contains(str(tmp_path))).any(axis=None)
    pairs_of = set(zip(differences["repair"], differences["against"], strict=True))
    assert {("whitening (NLI)", "flow (NLI)"), ("whitening (NLI)", "none"), ("flow", "whitening")} <= pairs_of


@pytest.mark.long
def test_whitening_is_cut_to_256_columns(tmp_path: Path) -> None:
    model = save_model(tmp_path / "bert-base-uncased", "bert", hidden_size=272, num_hidden_layers=2)
    data, nli = pair_files(tmp_path), tmp_path / "nli.txt"
    nli.write_text("\n".join(texts(500, seed=5)) + "\n")
    for name in ("sts12.one", "sts12.two"):
        (data / "sts" / f"{name}-test.csv").unlink()
    pairs = zip(texts(200, seed=6), texts(200, seed=7), strict=True)  # more sentences than columns
    lines = [f"g\tf\ty\t{i}\t{i % 5}\t{one}\t{two}" for i, (one, two) in enumerate(pairs)]
    (data / "sts" / "sts-b-test.csv").write_text("\n".join(lines) + "\n")
    options = StudyOptions(output=tmp_path / "s", models=[model], data=data, device="cpu")
    scores = score_sts(options, "bert-base-uncased", "paper", nli).tables[0].frame
    row = scores[(scores["set"] == "sts-b") & (scores["repair"] == "whitening (NLI) 256")]
    assert row["printed"].tolist() == [67.51]


def differences(*rows: tuple[str, str, str, float, float]) -> pd.DataFrame:
    """Differences by set, repair, against, points and p-value."""
    frame = pd.DataFrame(rows, columns=["set", "repair", "against", "difference", "p"])
    return frame.assign(metric="spearman")


def judged(*rows: tuple[str, str, str, float, float]) -> list[Any]:
    return [(claim.outcome, claim.ours) for claim in judge_sts("m", "paper", differences(*rows))]


def test_gains_are_judged_by_corrected_p_values() -> None:
    assert judged(("sts-b", FIXED, "none", 5.0, 0.001)) == [("agrees", 5.0)]
    assert judged(("sts-b", FIXED, "none", -0.94, 0.065)) == [("undecided", -0.94)]
    assert judged(("sts-b", "whitening", "none", -3.0, 0.001)) == [("contradicts", -3.0)]
    assert judged(("sts-b", "whitening", "none", -3.0, math.nan)) == [("undecided", -3.0)]


def test_p_values_are_corrected_for_the_comparisons_that_are_judged() -> None:
    both = [("sts-b", FIXED, "none", 5.0, 0.03), ("sts-b", "whitening", "none", 5.0, 0.03)]
    assert judged(*both) == [("undecided", 5.0)] * 2  # 0.06 each
    others = [("sts-b", f"softdecay:alpha={i}:form=paper", "none", 1.0, 0.9) for i in range(200)]
    assert judged(both[0], *others) == [("agrees", 5.0)]


def test_whitening_is_compared_with_flow() -> None:
    assert judged(("sts-b", "flow", "whitening", -2.0, 0.01)) == [("agrees", 2.0)]
    assert judged(("sts-b", "flow", "whitening", 2.0, 0.01)) == [("contradicts", -2.0)]
    assert judged(("sts-b", "whitening (NLI)", "flow (NLI)", 2.0, 0.01)) == [("agrees", 2.0)]
    assert judged(("sts-b", "whitening (NLI)", "flow (NLI)", 2.0, 0.2)) == [("undecided", 2.0)]


@pytest.mark.parametrize(
    ("second", "outcome"), [((1.0, 0.01), "agrees"), ((1.0, 0.3), "undecided"), ((-1.0, 0.01), "contradicts")]
)
def test_softdecay_must_be_ahead_on_every_set(second: tuple[float, float], outcome: str) -> None:
    rows = [(one, FIXED, "whitening", *found) for one, found in (("sts-b", (2.0, 0.001)), ("sts12", second))]
    subset = ("sts12.one", FIXED, "whitening", -9.0, 0.001)  # part of a set
    *_, last = judge_sts("m", "paper", differences(*rows, subset, ("mean", FIXED, "whitening", 1.5, 0.001)))
    assert last.outcome == outcome
    assert "of 2 sets" in last.text
