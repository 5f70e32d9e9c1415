"""Verdicts of the training experiments: a case on each side, and one that is not decided."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from isotrope.errors import InputError
from isotrope.finetuning.runs import GlueRun
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity import ablations
from isotrope.studies.uniformity.ablations import judge_other_blocks, time_steps
from isotrope.studies.uniformity.disabled_parts import judge_collapse
from isotrope.studies.uniformity.glue_spectra import judge_spectra, make_cdf_figure, tabulate_cdf, tabulate_reach
from isotrope.studies.uniformity.training import compare_methods, judge_glue, judge_sizes

RESIDUAL = "sequence_rank_one_residual"


def differences(difference: float, p: float) -> pd.DataFrame:
    row = {"task": "rte", "metric": "accuracy", "method": "softdecay", "against": "base", "difference": difference}
    return pd.DataFrame([row | {"low": difference - 1, "high": difference + 1, "p_corrected": p, "n": 5}])


@pytest.mark.parametrize(
    ("difference", "p", "outcome"),
    [(2.0, 0.01, "agrees"), (-2.0, 0.01, "contradicts"), (-0.94, 0.065, "undecided"), (2.0, math.nan, "undecided")],
)
def test_a_gain_on_glue_is_decided_by_the_corrected_p_value(difference: float, p: float, outcome: str) -> None:
    (claim,) = judge_glue("bert-base-uncased", differences(difference, p))
    assert claim.outcome == outcome
    assert claim.published == pytest.approx(68.23 - 64.98)
    assert "corrected p" in claim.evidence


def sizes(few: list[float], many: list[float]) -> pd.DataFrame:
    rows = [("rte", 100, seed, value) for seed, value in enumerate(few)]
    rows += [("rte", 2000, seed, value) for seed, value in enumerate(many)]
    return pd.DataFrame(rows, columns=["task", "rows", "seed", "reach trained"])


@pytest.mark.parametrize(
    ("few", "many", "outcome"),
    [
        ([0.30, 0.31, 0.29], [0.20, 0.22, 0.19], "agrees"),
        ([0.20, 0.22, 0.19], [0.30, 0.31, 0.29], "contradicts"),
        ([0.30, 0.21, 0.26], [0.25, 0.27, 0.26], "undecided"),
        ([0.586], [0.2], "undecided"),  # one seed
    ],
)
def test_the_number_of_training_rows_is_decided_over_seeds(few: list[float], many: list[float], outcome: str) -> None:
    (claim,) = judge_sizes("m", sizes(few, many))
    assert claim.outcome == outcome
    assert claim.ours == pytest.approx(np.mean(many) - np.mean(few))


@pytest.mark.parametrize(
    ("gains", "p_values", "outcome"),
    [
        ([1.0, -2.0], [0.01, 0.01], "contradicts"),
        ([-1.0, -2.0], [0.01, 0.01], "agrees"),
        ([-1.0, -2.0], [0.01, 0.2], "undecided"),  # no significant gain is no proof that there is none
        ([1.0, 0.5], [0.2, 0.9], "undecided"),
        ([], [], "undecided"),
    ],
)
def test_other_blocks_contradict_by_one_significant_gain(
    gains: list[float], p_values: list[float], outcome: str
) -> None:
    claim = judge_other_blocks("m", pd.DataFrame({"gain": gains, "p_corrected": p_values}), "untrained")
    assert claim.outcome == outcome


def parts(whole: list[float], alone: list[float], half: float) -> pd.DataFrame:
    rows = []
    for name, values in (
        ("whole", whole),
        ("no skip connections", alone),
        ("no MLP", whole),
        ("attention alone", alone),
    ):
        for layer, value in enumerate(values):
            ends = {f"{RESIDUAL}_low": value - half, f"{RESIDUAL}_high": value + half}
            rows.append({"model": name, "layer": layer, RESIDUAL: value} | ends)
    return pd.DataFrame(rows)


@pytest.mark.parametrize(
    ("whole", "alone", "half", "outcomes"),
    [
        ([0.9, 0.85, 0.8, 0.8], [0.9, 0.3, 0.1, 0.01], 0.01, ["agrees", "agrees"]),
        ([0.9, 0.3, 0.1, 0.01], [0.5, 0.6, 0.8, 0.9], 0.01, ["contradicts", "contradicts"]),
        ([0.9, 0.85, 0.8, 0.8], [0.9, 0.85, 0.86, 0.79], 0.2, ["undecided", "undecided"]),
        ([0.9, 0.85, 0.8, 0.8], [0.9, 0.3, 0.1, 0.01], math.nan, ["undecided", "undecided"]),
    ],
)
def test_collapse_is_decided_by_intervals(
    whole: list[float], alone: list[float], half: float, outcomes: list[str]
) -> None:
    claims = judge_collapse("m", parts(whole, alone, half))
    assert [claim.outcome for claim in claims] == outcomes
    assert claims[0].ours == alone[-1]


def glue_run(task: str, method: str, seed: int, reaches: list[float]) -> GlueRun:
    layers = [
        {"reach": r, "reach_low": r - 0.02, "reach_high": r + 0.02, "cdf": [0.0, 0.5 + r / 2, 1.0]} for r in reaches
    ]
    spectra: dict[str, Any] = {"trained": {"layers": layers}, "pretrained": {"layers": layers}}
    return GlueRun(task, method, seed, {"accuracy": 0.5}, [0.5], 1, [0.1], 3, 1.0, {"train": 9}, [], spectra)


@pytest.mark.parametrize(
    ("changes", "outcome"),
    [
        ([0.10, 0.12, 0.11], "agrees"),
        ([-0.10, -0.12, -0.11], "contradicts"),
        ([0.10, -0.12, 0.01], "undecided"),
        ([0.1], "undecided"),
    ],
)
def test_flatter_curves_are_decided_over_seeds(changes: list[float], outcome: str) -> None:
    runs = [
        glue_run("rte", method, seed, [0.5, 0.4, 0.3 + change * (method != "base")])
        for seed, change in enumerate(changes)
        for method in ("base", "softdecay:alpha=-0.5")
    ]
    (claim,) = judge_spectra("m", tabulate_reach(runs), {"rte": 2490})
    assert claim.outcome == outcome
    assert claim.ours == pytest.approx(np.mean(changes))


@pytest.mark.parametrize(("larger", "outcome"), [(0.2, "agrees"), (0.6, "contradicts"), (0.4, "undecided")])
def test_delta_l_of_a_larger_set_is_decided_over_seeds(larger: float, outcome: str) -> None:
    jitter = [0.0, 0.01, -0.01]
    runs = [
        glue_run(task, "base", seed, [0.9, value + jitter[seed] * sign, value])
        for task, value, sign in (("qnli", larger, 1), ("rte", 0.4, -1))
        for seed in range(3)
    ]
    (claim,) = judge_spectra("m", tabulate_reach(runs), {"qnli": 105_000, "rte": 2_490})
    assert (claim.outcome, claim.where) == (outcome, "Fig. 8")


def test_the_grid_of_curves_draws_each_task_before_and_after() -> None:
    runs = [
        glue_run(task, method, 0, [0.5, 0.4, 0.3 if method == "base" else 0.45])
        for task in ("qnli", "rte")
        for method in ("base", "softdecay:alpha=-0.5")
    ]
    reach, curves = tabulate_reach(runs), tabulate_cdf(runs)
    figure = make_cdf_figure(curves, reach).draw()
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == [
        *["qnli, ΔL 0.300", "rte, ΔL 0.300"] * 2,
        *["qnli, ΔL 0.450", "rte, ΔL 0.450"],
    ]
    assert [axes.get_ylabel() for axes in panels[::2]] == ["before training", "trained", "with SoftDecay"]
    for axes in panels:
        lines = axes.get_lines()
        assert len(lines) == 4  # three layers, and the line at 0.8
        assert np.asarray(lines[0].get_ydata()).tolist() == [0.0, 0.75, 1.0]
        assert lines[3].get_ydata() == pytest.approx([0.8, 0.8])


def test_runs_of_version_0_1_have_no_curves_of_layers() -> None:
    run = GlueRun("rte", "base", 0, {}, [], 1, [], 3, 1.0, {}, [], {"trained": {"reach": 0.3, "cdf": [0.0, 1.0]}})
    assert tabulate_reach([run]).empty
    with pytest.raises(InputError, match=r"version 0\.1 wrote them"):
        make_cdf_figure(tabulate_cdf([run]), tabulate_reach([run])).draw()


def test_times_are_medians_over_rounds_and_their_ratios(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that steps on by what each step says it takes."""
    now = [0.0]
    monkeypatch.setattr(ablations.time, "perf_counter", lambda: now[0])
    taken = {"forward pass": iter([2.0, 2.0, 9.0, 2.0, 1.0]), "SVD": iter([1.0, 1.0, 5.0, 0.5, 1.0])}

    def make_step(name: str) -> Any:
        def step() -> None:
            now[0] += next(taken[name])

        return step

    found = time_steps({name: make_step(name) for name in taken})
    assert found["seconds"].tolist() == [2.0, 1.0]
    assert found[["least", "most"]].to_numpy().tolist() == [[1.0, 9.0], [0.5, 5.0]]
    assert found["of the forward pass"].tolist() == [1.0, 0.5]
    assert found["total of the forward pass"].tolist() == [1.0, 1.5]  # the paper's ratio
    assert found["rounds"].tolist() == [5, 5]


def test_training_outside_of_the_domain_is_a_note(tmp_path: Path) -> None:
    class Plan:
        data: tuple[Any, ...] = ()

        def evaluate(self, *_: Any, **__: Any) -> Any:
            raise InputError("the largest singular value is 1, expected at least 2.")

    plan: Any = Plan()
    (claim,) = compare_methods(StudyOptions(models=["m"], output=tmp_path), "m", plan, 2).claims
    assert (claim.outcome, "expected at least 2" in claim.text) == ("note", True)
