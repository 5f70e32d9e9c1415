"""The verdict on search: no alarm on sound vectors, the worst first, an action and a command for each trouble."""

from __future__ import annotations

import shlex
from pathlib import Path

import numpy as np
import pytest

import isotrope.gate as gate
from isotrope.cli.scan import suggest_command
from isotrope.findings import Findings, Reading, Verdict
from isotrope.measures import get
from isotrope.scanner import scan
from isotrope.sources.input import Input
from isotrope.verdict.judge import judge
from isotrope.verdict.thresholds import DUPLICATES, SEARCH_THRESHOLDS, level_of

#: Readings of a sound set of vectors, with their null values.
_SOUND = {
    "mean_cosine": (0.1, 0.0),
    "isoscore": (0.3, 0.9),
    "hub_share": (0.034, 0.019),
    "antihub_share": (0.004, 0.0),
    "relative_contrast": (3.0, 1.2),
    "near_duplicate_share": (0.01, 0.0),
    "metric_agreement_cosine_inner": (1.0, 0.8),
    "outlier_rows": (0.0, 0.0),
    "island_share": (0.02, 0.0),
}


def _findings(n: int = 5_000, *, counts: dict[str, int] | None = None, **values: float) -> Findings:
    readings = [
        Reading(0, name, values.get(name, value), values.get(name, value), values.get(name, value), n, null)
        for name, (value, null) in _SOUND.items()
    ]
    source = {"kind": "vectors", "width": 384, "files": [{"path": "my rows.npy"}]}
    return Findings(readings, layers=[0], source=source, counts={"rows": n, **(counts or {})})


def _words(verdict: Verdict) -> list[str]:
    return [s.text.split(":")[0].lower() for s in verdict.statements]


def test_sound_vectors_are_healthy_and_neighbours_were_looked_at() -> None:
    verdict = judge(_findings())
    assert verdict.word == "healthy"
    assert _words(verdict) == ["healthy"]
    assert "not looked at" not in str(verdict)


def test_a_narrow_cone_alone_takes_a_threshold_and_no_repair() -> None:
    """As e5-small: cosines of 0.77 between unrelated texts, and a good retriever."""
    judged = _findings(mean_cosine=0.79)
    judged.verdict = verdict = judge(judged)
    assert verdict.word == "narrow"
    (statement,) = verdict.statements
    assert statement.level == 1
    assert "`isotrope calibrate 'my rows.npy' --false-accept 1e-4`" in statement.text
    assert "`isotrope advise 'my rows.npy'`" in statement.text
    next_command = suggest_command(judged, Input(vectors="my rows.npy"), Path("run"))
    assert next_command == "isotrope calibrate 'my rows.npy' --false-accept 1e-4"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"mean_cosine": 0.79, "hub_share": 0.3}, ["hubs", "collapsed"]),
        ({"mean_cosine": 0.79, "isoscore": 0.05}, ["collapsed", "few directions"]),
        ({"mean_cosine": 0.79, "relative_contrast": 1.1}, ["no contrast", "collapsed"]),
    ],
)
def test_a_cone_with_other_troubles_stays_one(values: dict[str, float], words: list[str]) -> None:
    verdict = judge(_findings(**values))
    assert verdict.word == "collapsed"
    assert _words(verdict) == words


def test_few_rows_say_nothing_of_search() -> None:
    verdict = judge(_findings(900, hub_share=0.9, mean_cosine=0.79))
    assert verdict.word == "collapsed"
    assert _words(verdict) == ["collapsed"]


@pytest.mark.parametrize("t", SEARCH_THRESHOLDS, ids=lambda t: t.word)
def test_every_trouble_has_numbers_an_action_and_a_gate_that_verifies_it(t: object) -> None:
    (threshold,) = [s for s in SEARCH_THRESHOLDS if s is t]
    for value, there in ((threshold.value, True), (threshold.value - threshold.worse * 1e-3, False)):
        findings = _findings(**{threshold.measure: value})
        verdict = judge(findings)
        assert (threshold.word in _words(verdict)) is there
        if not there:
            continue
        assert verdict.word == threshold.word
        assert level_of(verdict.word) == threshold.level
        statement = verdict.statements[0]
        assert f"isotropic rows give {_SOUND[threshold.measure][1]:.3f}" in statement.text
        assert statement.sure
        command = statement.text.split("`")[1]
        parts = shlex.split(command)
        assert parts[:3] == ["isotrope", "scan", "my rows.npy"]
        outcome = gate.check(gate.parse(parts[parts.index("--fail-on") + 1]), findings)
        assert outcome.failed
        assert len(threshold.evidence) > 40
        assert get(threshold.measure).group == "search"


def test_the_worst_for_search_comes_first() -> None:
    counts = {"zero_rows": 3, "duplicate_rows": 600}
    beyond = {t.measure: t.value for t in SEARCH_THRESHOLDS}
    verdict = judge(_findings(counts=counts, mean_cosine=0.6, isoscore=0.05, **beyond))
    assert _words(verdict) == [
        "left out",
        "duplicates",
        "hubs",
        "never found",
        "no contrast",
        "near-duplicates",
        "metric mismatch",
        "outliers",
        "islands",
        "narrow",
        "few directions",
    ]


@pytest.mark.parametrize(("count", "level"), [(0, None), (10, 0), (100, 1), (900, 2)])
def test_duplicates_are_told_and_bad_only_where_there_are_many(count: int, level: int | None) -> None:
    statements = [
        s for s in judge(_findings(counts={"duplicate_rows": count})).statements if s.text.startswith("Duplicates")
    ]
    assert [s.level for s in statements] == ([] if level is None else [level])
    assert all(len(t.evidence) > 40 for t in DUPLICATES)


def test_an_estimated_number_of_duplicates_has_its_error() -> None:
    verdict = judge(_findings(counts={"duplicate_rows": 900, "duplicate_rows_error": 30}))
    assert "about 900 ± 60 of 5,000 rows" in str(verdict)


def test_a_scan_says_duplicates_first() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((1_200, 64)) * np.arange(1, 65) ** -0.2 + 0.25
    rows[1_000:] = rows[:200]
    verdict = scan(vectors=rows).verdict
    assert _words(verdict)[0] == "duplicates"
    assert "200 of 1,200 rows (17 %) repeat an earlier row; row 0 is there 2 times" in str(verdict)
