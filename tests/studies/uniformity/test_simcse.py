"""SimCSE on sentence similarity: every set, printed numbers, and verdicts over seeds."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.published import find_simcse_score
from isotrope.studies.uniformity.simcse import compare_trained, judge_printed, judge_simcse, score_simcse
from testkit.models import WORDS, save_model
from testkit.small_studies import TEXTS, pair_files


def scores(gains: list[list[float]]) -> pd.DataFrame:
    rows = []
    for number, by_seed in enumerate(gains):
        for seed, gain in enumerate(by_seed):
            rows += [
                {"set": f"set {number}", "method": method, "seed": seed, "spearman": 70.0 + seed + extra}
                for method, extra in (("none", -10.0), ("simcse", 0.0), ("simcse+softdecay", gain))
            ]
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("gains", "outcome"),
    [
        ([2.0, 2.1, 1.9, 2.05], "agrees"),
        ([-2.0, -2.1, -1.9, -2.05], "contradicts"),
        ([2.0, -1.0, 0.5, 0.1], "undecided"),
        ([2.0], "undecided"),
    ],
)
def test_a_gain_over_simcse_is_decided_over_seeds(gains: list[float], outcome: str) -> None:
    claim = judge_simcse("m", "simcse", "9 sentences", compare_trained(scores([gains])))
    assert claim.outcome == outcome
    assert claim.ours == pytest.approx(np.mean(gains))


def test_p_values_are_those_of_a_paired_t_test_corrected_for_the_sets() -> None:
    gains = [[1.0, 2.0, 3.5], [0.1, -0.2, 0.3]]
    found = compare_trained(scores(gains))
    for row, mine in zip(found.to_dict("records"), gains, strict=True):
        assert row["p"] == pytest.approx(stats.ttest_1samp(mine, 0).pvalue)
    assert found["p_corrected"][0] == pytest.approx(min(1, 2 * found["p"][0]))


def test_the_printed_rows_do_not_show_a_gain_in_general() -> None:
    """Table 5 by itself: SoftDecay loses STS-12, STS-13 and STS-14 unsupervised, and STS-12 supervised."""
    first, second = judge_printed()
    assert {first.outcome, second.outcome} == {"contradicts"}
    assert "sts12, sts13, sts14;" in first.text
    assert "loses on sts12;" in second.text
    plain, soft = (74.48, 66.01, 81.48, 71.77, 77.55, 76.53, 69.36), (75.81, 63.25, 78.67, 70.41, 79.37, 77.69, 71.15)
    assert first.ours == pytest.approx(np.mean(soft) - np.mean(plain), abs=0.005)


def test_printed_scores_stand_beside_bert_base_only() -> None:
    assert find_simcse_score("bert-base-uncased", "simcse", "sts-b", "simcse+softdecay") == 75.81
    assert find_simcse_score("bert-base-uncased", "simcse-nli", "sts-b", "simcse") == 82.26
    assert find_simcse_score("bert-base-uncased", "simcse-nli", "sickr", "simcse+softdecay") == 79.04
    for other in (("small", "simcse", "sts-b", "simcse"), ("bert-base-uncased", "simcse", "sts-b", "none")):
        assert math.isnan(find_simcse_score(*other))


def test_all_sets_are_scored_by_both_ways_of_training(tmp_path: Path) -> None:
    """Unsupervised on a text and supervised on a file; the model as it is against scipy on its own cosines."""
    pytest.importorskip("sentence_transformers")
    model = save_model(tmp_path / "bert-base-uncased", "bert")
    data = pair_files(tmp_path)
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(WORDS, size=5)) for _ in range(40)]
    (tmp_path / "wiki.txt").write_text("\n".join(sentences) + "\n")
    lines = [",".join(sentences[3 * i : 3 * i + 3]) for i in range(12)]
    (tmp_path / "nli.csv").write_text("\n".join(["sent0,sent1,hard_neg", *lines]) + "\n")
    options = StudyOptions(models=[str(model)], text=TEXTS, data=data, output=tmp_path / "s", device="cpu")
    for method, file, what in (("simcse", "wiki.txt", "40 sentences"), ("simcse-nli", "nli.csv", "12 triplets")):
        results = score_simcse(options, "bert-base-uncased", method, 2, str(tmp_path / file))
        (scored, gained), (claim,) = (table.frame for table in results.tables), results.claims
        assert list(dict.fromkeys(scored["set"])) == ["sts-b", "sts12", "mean"]
        assert what in results.tables[0].title
        assert what in claim.text
        by = scored.set_index(["set", "method"])
        assert by.loc[("sts-b", "simcse"), "printed"] == (74.48 if method == "simcse" else 82.26)
        assert by["mean"].nunique() == 9
        assert gained["n"].tolist() == [2, 2, 2]
        assert by.loc[("mean", "none"), "mean"] == pytest.approx(
            (by.loc[("sts-b", "none"), "mean"] + by.loc[("sts12", "none"), "mean"]) / 2
        )
    encoder = Encoder(Input(model=str(model), text=TEXTS, device="cpu", layers="-1", pooling="mean"))
    pairs = [line.split("\t") for line in (data / "sts/sts-b-test.csv").read_text().splitlines()]
    a, b = (np.asarray(encoder([pair[side] for pair in pairs]), dtype=np.float64) for side in (5, 6))
    cosine = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    expected = 100 * stats.spearmanr(cosine, [float(pair[4]) for pair in pairs]).statistic
    assert by.loc[("sts-b", "none"), "mean"] == pytest.approx(expected, abs=0.05)


def test_without_triplets_there_is_a_note(model: str, tmp_path: Path) -> None:
    options = StudyOptions(models=[model], text=TEXTS, data=pair_files(tmp_path), output=tmp_path / "s", device="cpu")
    (claim,) = score_simcse(options, "small", "simcse-nli", 2).claims
    assert claim.outcome == "note"
    assert "--simcse-triplets" in claim.text
