"""The verdict agrees with the numbers, says where and how sure, and never praises what it cannot see."""

from __future__ import annotations

import math

import numpy as np
import pytest

from isotrope.findings import Findings, Reading
from isotrope.scanner import scan
from isotrope.verdict.judge import judge
from isotrope.verdict.thresholds import FEWEST_ROWS, THRESHOLDS


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
    assert sure.text.endswith("Sure: no 95 % interval reaches below 0.75.")
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
    assert "how the spread is shared was not measured" in str(verdict)


@pytest.mark.parametrize("d", range(2, 21))
@pytest.mark.parametrize("noise", [0.0, 1e-6, 0.1])
def test_rows_near_one_line_have_few_directions_in_any_dimension(d: int, noise: float) -> None:
    rng = np.random.default_rng(d)
    rows = np.outer(rng.normal(size=500), rng.normal(size=d) + 2) + noise * rng.normal(size=(500, d))
    verdict = scan(vectors=rows, measures="moments").verdict
    assert verdict.word == "few directions", str(verdict)
    assert verdict.statements[0].sure


@pytest.mark.parametrize("d", range(2, 21))
@pytest.mark.parametrize("n", [60, 500])
def test_isotropic_rows_are_healthy_in_any_dimension(d: int, n: int) -> None:
    assert scan(vectors=_isotropic(n, d), measures="moments").verdict.word == "healthy"


def test_one_dimension_has_no_shape() -> None:
    verdict = scan(vectors=_isotropic(500, 1), measures="moments").verdict
    assert verdict.word == "unknown"
    assert "in one dimension there is no shape to judge" in str(verdict)
    assert scan(vectors=np.abs(_isotropic(500, 1)), measures="moments").verdict.word == "collapsed"


def test_no_mean_cosine() -> None:
    verdict = scan(vectors=_isotropic(), measures="isoscore").verdict
    assert verdict.word == "unknown"
    assert "No verdict" in str(verdict)


def test_left_out_rows_are_said() -> None:
    rows = _isotropic()
    rows[0], rows[1, 0] = 0.0, np.nan
    verdict = scan(vectors=rows, measures="moments").verdict
    assert verdict.word == "healthy"
    assert verdict.statements[0].text == "Left out: 1 zero row and 1 row with NaN or infinity."


def _run(cosines: dict[int, tuple[float, float, float]], isoscore: float = 0.5) -> Findings:
    readings = [Reading(layer, "mean_cosine", *ends, n=10_000, null=0.0) for layer, ends in cosines.items()]
    ends = isoscore, isoscore - 0.01, isoscore + 0.01
    readings += [Reading(layer, "isoscore", *ends, n=10_000, null=0.99) for layer in cosines]
    return Findings(readings, layers=list(cosines), source={"width": 384})


def _tight(*values: float) -> dict[int, tuple[float, float, float]]:
    return {layer: (v, v - 0.001, v + 0.001) for layer, v in enumerate(values)}


def test_all_minilm() -> None:
    verdict = judge(_run(_tight(0.064, 0.113, 0.115, 0.138, 0.176, 0.274, 0.085)))
    assert verdict.word == "healthy"
    first, second = verdict.statements
    assert first.layers == (6,)
    assert first.text.startswith("Healthy: no common direction in the last layer (mean cosine 0.085), and many")
    assert second.layers == (5,)
    assert second.text.startswith("Layer 5: leaning, the rows lean to one side (mean cosine 0.274")


def test_smollm2() -> None:
    verdict = judge(_run(_tight(0.3, 0.6, *[0.999] * 27, 0.95, 0.7)))
    assert verdict.word == "narrow"
    assert [s.layers for s in verdict.statements] == [(30,), tuple(range(2, 30)), (1,), (0,)]
    assert [s.text.split(",")[0].split(" (")[0] for s in verdict.statements] == [
        "Narrow: in the last layer the rows lie in a narrow cone",
        "Layers 2 to 29: collapsed",
        "Layer 1: narrow",
        "Layer 0: leaning",
    ]
    assert "Layers 2 to 29: collapsed, nearly all rows point the same way (mean cosine 0.950 to 0.999" in str(verdict)


def test_other_layers_without_trouble_are_mentioned_once() -> None:
    verdict = judge(_run(_tight(0.05, 0.1, 0.15)))
    assert [s.layers for s in verdict.statements] == [(2,), (0, 1)]
    assert verdict.statements[1].text == "Layers 0 and 1: no trouble either (mean cosine 0.050 to 0.100)."


def test_a_last_layer_without_rows_does_not_hide_the_others() -> None:
    run = _run(_tight(0.95, 0.95))
    run.readings.append(Reading(2, "mean_cosine", math.nan, n=0, reason="no rows"))
    run.layers.append(2)
    verdict = judge(run)
    assert verdict.word == "collapsed"
    assert [s.layers for s in verdict.statements] == [(1,), (0,)]


def test_hubs_are_trouble_where_neighbours_were_looked_at() -> None:
    rows = _isotropic(2000, 64) / np.sqrt(np.arange(1, 65))
    without = scan(vectors=rows, measures="moments").verdict
    assert without.word == "healthy"
    assert without.statements[0].text.endswith(
        "Neighbours were not looked at: --measures moments,neighbours does that."
    )
    found = scan(vectors=rows, measures="moments,hubness")
    hubness = found.get("hubness")
    assert hubness.value > 2 > hubness.null
    assert found.verdict.word == "hubs"
    assert f"hubness {hubness.value:.3f}, isotropic rows give {hubness.null:.3f}" in str(found.verdict)
    even = scan(vectors=_isotropic(2000, 64), measures="moments,hubness").verdict
    assert even.word == "healthy"
    assert "and no hubs (hubness 0." in str(even)
    assert "not looked at" not in str(even)


def test_few_rows_say_nothing_about_neighbours() -> None:
    rows = _isotropic(999, 64) / np.sqrt(np.arange(1, 65))
    verdict = scan(vectors=rows, measures="moments,hubness").verdict
    assert verdict.word == "healthy"
    assert "Neighbours were not looked at" in str(verdict)


def test_groups_do_not_count() -> None:
    run = _run(_tight(0.01))
    run.readings.append(Reading(0, "mean_cosine", 0.99, 0.98, 1.0, n=500, group="de"))
    assert judge(run).word == "healthy"


def test_the_table_is_in_order_and_has_evidence() -> None:
    for measure, worse in {(t.measure, t.worse) for t in THRESHOLDS}:
        levels = [t.level for t in THRESHOLDS if (t.measure, t.worse) == (measure, worse)]
        assert levels == sorted(levels, reverse=True)
    for t in THRESHOLDS:
        assert t.word
        assert t.meaning
        assert len(t.evidence) > 40
