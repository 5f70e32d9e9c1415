"""Shapes of measures as noise grows: those that the paper names, and made ones."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from test_published_models import FOLDER

from isotrope.studies.latent_geometry.published import TABLE_2, read_models
from isotrope.studies.latent_geometry.regression import split_models
from isotrope.studies.latent_geometry.shapes import find_shape, find_turns, judge_shapes, list_shapes

LEVELS = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
COURSES = {
    "monotonic": [0, 1, 2, 3, 4, 5, 6],
    "hook": [0, 1, 2, 3, 2, 1, 0],
    "zig-zag": [0, 2, 4, 1, 0, 3, 5],
    "flat": [0, 0, 0, 0, 0, 0, 0],
}


def make_values(course: list[float], deviation: float) -> tuple[list[float], list[float]]:
    """Three seeds for each level; at level 0 they are one space."""
    rng = np.random.default_rng(0)
    noise = [rng.normal(scale=deviation if level else 0.0, size=3) for level in LEVELS]
    values = [float(value + e) for value, three in zip(course, noise, strict=True) for e in three]
    return [level for level in LEVELS for _ in range(3)], values


@pytest.mark.parametrize("name", COURSES)
def test_made_courses(name: str) -> None:
    assert find_shape(*make_values(COURSES[name], 0.1)).name == name


def test_turns_within_the_noise_do_not_count() -> None:
    levels, values = make_values(COURSES["hook"], 3.0)
    assert find_shape(levels, values).name in ("flat", "monotonic")
    assert find_shape(levels[::3], values[::3]).name == "unknown"  # one seed


def test_the_critical_difference_by_hand() -> None:
    levels, values = make_values(COURSES["hook"], 0.1)
    table = np.array(values).reshape(7, 3)[1:]
    within = ((table - table.mean(1, keepdims=True)) ** 2).sum() / (18 - 6)
    expected = stats.t.ppf(1 - 0.05 / 21 / 2, 12) * math.sqrt(within) * math.sqrt(2 / 3)
    assert find_shape(levels, values).critical == pytest.approx(expected)


def test_turns_are_at_the_extremes() -> None:
    assert find_turns(np.array([0.0, 3.0, 1.0, 1.2, 0.5, 4.0]), 1.0) == [1, 4]
    assert find_turns(np.array([5.0, 3.0, 1.0]), 1.0) == []


def test_eee_of_the_authors_is_a_zig_zag_and_cluster_eee_a_hook() -> None:
    if not FOLDER.is_dir():
        pytest.skip(f"there is no {FOLDER}; set ISOTROPE_DATA to the folder of the data sets.")
    perturbed, _ = split_models(read_models(FOLDER))
    shapes = list_shapes(perturbed[perturbed["architecture"] == "BERT-small"], list(TABLE_2))
    by = shapes.set_index("measure")["shape"]
    assert (by["eee"], by["cluster_eee_additive"]) == ("zig-zag", "hook")
    outcomes = {claim.where: claim.outcome for claim in judge_shapes("BERT-small", shapes)}
    assert outcomes == {"Section 4.2": "agrees", "Appendix B": "note"}


@pytest.mark.parametrize(
    ("eee", "cluster", "outcomes"),
    [
        ("zig-zag", "hook", ["agrees", "agrees"]),
        ("hook", "zig-zag", ["undecided", "contradicts"]),
        ("unknown", "monotonic", ["undecided", "undecided"]),
    ],
)
def test_verdicts_on_shapes(eee: str, cluster: str, outcomes: list[str]) -> None:
    frame = pd.DataFrame({"measure": ["eee", "cluster_eee_additive"], "shape": [eee, cluster], "turns": ["", ""]})
    assert [claim.outcome for claim in judge_shapes("one", frame)][:2] == outcomes
