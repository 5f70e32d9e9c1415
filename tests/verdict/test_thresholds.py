"""The table of thresholds: its evidence is what was measured, and scan and advice use the same words."""

from __future__ import annotations

import json
import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from isotrope.advice.advise import advise
from isotrope.advice.candidate import GAIN, GAIN_OF_REPAIRABLE
from isotrope.advice.geometry import Geometry
from isotrope.measures import isoscore
from isotrope.readings.null import draw_isotropic_moments
from isotrope.scanner import scan
from isotrope.verdict.thresholds import THRESHOLDS, find_troubles, get, level_of, name_space
from testkit.paths import ROOT

VALIDATION = ROOT / "docs" / "validation"


class Space(NamedTuple):
    """One of the 90 spaces: its geometry, what was advised, and the points that repairs gained."""

    geometry: Geometry
    advice: dict[str, Any]
    gain: float
    best: float


def _space(space: dict[str, Any], width: int) -> Space:
    advice = space["advice"]
    found = advice["geometry"]
    # IsoScore is the participation ratio on a scale from 0 to 1.
    ratio = found["spread"] * min(width, found["rows"] - 1)
    share = (ratio - 1) / (width - 1) / isoscore(draw_isotropic_moments(found["rows"], width))
    points = {name: float(np.mean(list(sets.values()))) for name, sets in space["scores"].items()}
    raw = points.pop("none")
    return Space(Geometry(**found, isoscore_share=share), advice, points["advised"] - raw, max(points.values()) - raw)


@pytest.fixture(scope="module")
def spaces() -> list[Space]:
    found = []
    for path in sorted(VALIDATION.glob("*.json")):
        document = json.loads(path.read_text("utf-8"))
        width = 576 if document["model"].startswith("SmolLM2") else 384
        found += [_space(space, width) for space in document["spaces"]]
    assert len(found) == 90
    return found


def _here(spaces: list[Space], word: str) -> list[Space]:
    return [s for s in spaces if word in [t.word for t in s.geometry.troubles]]


@pytest.mark.parametrize("word", ["collapsed", "few directions"])
def test_every_space_of_these_words_gained(spaces: list[Space], word: str) -> None:
    gains = [s.gain for s in _here(spaces, word)]
    assert min(gains) > 1
    evidence = get(word).evidence
    assert f" {len(gains)} lie here" in evidence
    assert f"between {min(gains):.1f} and {max(gains):.1f} points" in evidence
    if word == "collapsed":
        assert evidence.endswith(f"3 or more in {sum(gain >= 3 for gain in gains)}.")
    else:
        above = [s for s in spaces if s not in _here(spaces, word)]
        assert f"of the {len(above)} above, {sum(s.gain >= 3 for s in above)} gained 3" in evidence


def test_evidence_for_narrow_and_leaning(spaces: list[Space]) -> None:
    narrow, leaning = _here(spaces, "narrow"), _here(spaces, "leaning")
    below = [s for s in spaces if s.geometry.mean_cosine < get("leaning").value]
    gained, none = (sum(f(s.gain) for s in narrow) for f in (lambda g: g >= 3, lambda g: g < 0.5))
    assert f" {len(narrow)} lie between 0.5 and 0.75: a repair gained 3 points or more in {gained}" in (
        get("narrow").evidence
    )
    assert get("narrow").evidence.endswith(f"nothing in {none}.")
    assert max(s.best for s in below) < 0.05
    assert f"none of the {len(below)} below 0.2 gained anything by any repair" in get("leaning").evidence
    assert f"of the {len(leaning)} between 0.2 and 0.5, {sum(s.gain >= 3 for s in leaning)} gained 3 points" in (
        get("leaning").evidence
    )


def test_the_table_advises_what_was_advised_and_validated(spaces: list[Space]) -> None:
    for s in spaces:
        least = GAIN_OF_REPAIRABLE if s.geometry.repairable else GAIN
        gain = s.advice["gain"]
        helps = gain["value"] >= least and gain["low"] > 0 and not s.geometry.healthy
        assert helps == (s.advice["advice"] != "none")
        assert least == s.advice["least_gain"]


def test_healthy_spaces_never_gained(spaces: list[Space]) -> None:
    healthy = [s for s in spaces if s.geometry.healthy]
    assert len(healthy) >= 7
    assert max(s.best for s in healthy) < 0.05


#: Rows of d dimensions, shifted by some of their length, with a spectrum that falls by a power.
SHAPES = [
    pytest.param(d, shift, power, marks=[] if d in (3, 64) and shift in (0.0, 1.0, 2.5) else pytest.mark.long)
    for d in (2, 3, 8, 64)
    for shift in (0.0, 0.6, 1.0, 1.5, 2.5)
    for power in (0.0, 0.5, 1.0, 2.0)
]


@pytest.mark.parametrize(("d", "shift", "power"), SHAPES)
def test_scan_and_advice_use_the_same_words(d: int, shift: float, power: float) -> None:
    rows = np.random.default_rng(d).normal(size=(1500, d)) / np.arange(1, d + 1) ** power
    rows[:, -1] += shift * math.sqrt(float((rows**2).sum(axis=1).mean()))
    word = scan(vectors=rows, measures="moments").verdict.word
    advice = advise(vectors=rows)
    assert next((t.word for t in advice.geometry.troubles), "healthy") == word
    assert (advice.repair is not None) == bool(
        {t.word for t in advice.geometry.troubles} & {"collapsed", "few directions"}
    )


def test_the_isotropic_side_of_the_length_thresholds() -> None:
    rng = np.random.default_rng(0)
    lengths = np.linalg.norm(rng.normal(size=(1_000_000, 2)), axis=1)
    ratios = lengths / np.median(lengths)
    assert ratios.max() < get("far longer").value
    assert (ratios <= get("far shorter").value).sum() <= 5  # one in a million is to be expected
    assert 4 < ratios.max() < 5.5


def test_words_of_values() -> None:
    assert name_space({"mean_cosine": 0.75, "isoscore_share": 0.9}) == "collapsed"
    assert name_space({"mean_cosine": 0.749, "isoscore_share": math.nan}) == "narrow"
    assert name_space({"mean_cosine": 0.1, "isoscore_share": 0.135}) == "few directions"
    assert [t.word for t in find_troubles({"mean_cosine": 0.3, "isoscore_share": 0.0})] == ["few directions", "leaning"]
    assert [level_of(word) for word in ("healthy", "leaning", "narrow", "collapsed", "unknown")] == [0, 1, 2, 3, 0]
    assert {t.bound for t in THRESHOLDS if t.word in ("collapsed", "few directions")} == {"from 0.75", "up to 0.135"}
