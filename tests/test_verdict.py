"""The verdict agrees with the numbers, says where and how sure, and never praises what it cannot see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotrope.findings import Findings, Reading
from isotrope.pipeline import scan
from isotrope.verdict import FEWEST_ROWS, THRESHOLDS, judge

RNG = np.random.default_rng(11)


def _isotropic(n: int = 2000, d: int = 24) -> np.ndarray:
    return np.random.default_rng([n, d]).normal(size=(n, d))


def _leaning_to(cosine: float) -> np.ndarray:
    """Rows whose mean cosine is about this."""
    rows = _isotropic(4000, 64)
    rows[:, 0] += math.sqrt(64 * cosine / (1 - cosine))
    return rows


def _power_law() -> np.ndarray:
    return _isotropic(3000, 64) * np.arange(1, 65) ** -2.0


def _low_rank() -> np.ndarray:
    return _isotropic(3000, 2) @ np.random.default_rng(1).normal(size=(2, 64))


@pytest.mark.parametrize(
    ("rows", "word"),
    [
        (_isotropic(), "healthy"),
        (_isotropic(500, 2), "healthy"),
        (_leaning_to(0.05), "healthy"),
        (_leaning_to(0.3), "leaning"),
        (_leaning_to(0.7), "narrow"),
        (_leaning_to(0.97), "collapsed"),
        (_isotropic() * 1e-3 + 1.0, "collapsed"),
        (np.ones((100, 4)), "collapsed"),
        (_power_law(), "few directions"),
        (_low_rank(), "few directions"),
        (_low_rank() + 100.0, "collapsed"),
        (_isotropic(30, 4), "too few rows"),
        (_isotropic(100, 200), "too few rows"),
        (_isotropic(FEWEST_ROWS - 1, 2), "too few rows"),
    ],
)
def test_words(rows: np.ndarray, word: str) -> None:
    verdict = scan(vectors=rows, measures="moments").verdict
    assert verdict.word == word, str(verdict)
    assert str(verdict)


def test_two_troubles_worst_first() -> None:
    statements = scan(vectors=_low_rank() + 100.0, measures="moments").verdict.statements
    assert [s.text.split(":")[0] for s in statements] == ["Collapsed", "Few directions"]
    assert [s.level for s in statements] == [3, 2]


def test_sure_and_not_sure() -> None:
    (sure,) = scan(vectors=_leaning_to(0.97), measures="moments").verdict.statements
    assert sure.sure
    assert sure.text.endswith("Sure: no 95 % interval reaches below 0.9.")
    (unsure,) = judge(_run({0: (0.21, 0.15, 0.27)})).statements
    assert not unsure.sure
    assert unsure.text.endswith("Not sure: its 95 % interval reaches below 0.2.")
    (unknown,) = scan(vectors=_leaning_to(0.97), measures="moments", sample=0).verdict.statements
    assert not unknown.sure
    assert unknown.text.endswith("there is no interval.")


def test_healthy_is_not_sure_near_a_threshold() -> None:
    (statement,) = judge(_run({0: (0.18, 0.12, 0.24)})).statements
    assert statement.text.startswith("Healthy")
    assert not statement.sure


def test_healthy_needs_the_spread() -> None:
    verdict = scan(vectors=_isotropic(), measures="mean_cosine").verdict
    assert verdict.word == "unknown"
    assert "was not measured" in str(verdict)


def test_no_mean_cosine() -> None:
    verdict = scan(vectors=_isotropic(), measures="isoscore").verdict
    assert verdict.word == "unknown"
    assert "No verdict" in str(verdict)


def test_left_out_rows_are_said() -> None:
    rows = _isotropic()
    rows[0], rows[1, 0] = 0.0, np.nan
    verdict = scan(vectors=rows, measures="moments").verdict
    assert verdict.word == "healthy"
    assert verdict.statements[-1].text == "Left out: 1 zero row and 1 row with NaN or infinity."


def _run(cosines: dict[int, tuple[float, float, float]], rank: float = 300.0) -> Findings:
    readings = [Reading(layer, "mean_cosine", *ends, n=10_000, null=0.0) for layer, ends in cosines.items()]
    readings += [
        Reading(layer, "effective_rank_eigenvalues", rank, rank - 9, rank + 9, n=10_000, null=383.0)
        for layer in cosines
    ]
    return Findings(readings, layers=list(cosines), source={"width": 384})


def _tight(*values: float) -> dict[int, tuple[float, float, float]]:
    return {layer: (v, v - 0.001, v + 0.001) for layer, v in enumerate(values)}


def test_all_minilm() -> None:
    verdict = judge(_run(_tight(0.064, 0.113, 0.115, 0.138, 0.176, 0.274, 0.085), rank=114))
    assert verdict.word == "leaning"
    (statement,) = verdict.statements
    assert statement.layers == (5,)
    assert "in layer 5 the rows lean to one side (mean cosine 0.274" in statement.text


def test_smollm2() -> None:
    verdict = judge(_run(_tight(0.3, 0.6, *[0.999] * 27, 0.95, 0.8)))
    assert verdict.word == "collapsed"
    assert [s.layers for s in verdict.statements] == [tuple(range(2, 30)), (1, 30), (0,)]
    assert "in layers 2 to 29 nearly all rows point the same way (mean cosine 0.950 to 0.999" in str(verdict)
    assert "in layers 1 and 30 the rows lie in a narrow cone" in str(verdict)


def test_one_layer_without_rows_does_not_hide_the_others() -> None:
    run = _run(_tight(0.95, 0.95))
    run.readings.append(Reading(2, "mean_cosine", math.nan, n=0, reason="no rows"))
    run.layers.append(2)
    verdict = judge(run)
    assert verdict.word == "collapsed"
    assert verdict.statements[0].layers == (0, 1)


def test_groups_do_not_count() -> None:
    run = _run(_tight(0.01))
    run.readings.append(Reading(0, "mean_cosine", 0.99, 0.98, 1.0, n=500, group="de"))
    assert judge(run).word == "healthy"


def test_the_table_is_in_order_and_has_evidence() -> None:
    for measure in {t.measure for t in THRESHOLDS}:
        levels = [t.level for t in THRESHOLDS if t.measure == measure]
        assert levels == sorted(levels, reverse=True)
    for t in THRESHOLDS:
        assert t.word
        assert t.meaning
        assert len(t.evidence) > 40
