"""Repaired sentences: measures, LSDS with its interval, kurtosis, maps, and the verdicts on them."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist, pdist

from isotrope.repairs import SoftDecay, Whitening
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.pair_maps import _select_range, make_maps
from isotrope.studies.uniformity.published import FIXED
from isotrope.studies.uniformity.repaired import compute_kurtosis, measure_repairs, measure_set
from isotrope.studies.uniformity.repaired_claims import judge_abnormal, judge_lsds, judge_whitening
from testkit.small_studies import pair_files


@pytest.fixture(scope="module")
def images() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    raw = rng.normal(size=(300, 8)) @ np.diag(np.geomspace(8, 0.5, 8)) + 10.0
    return {
        "none": raw,
        "whitening": Whitening().fit_transform(raw),
        FIXED: SoftDecay(-0.6, form="paper").fit_transform(raw),
    }


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def compute_offsets(x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Eq. 6 for each row, with weights that sum to 1."""
    x, z = unit(x), unit(z)
    distance = cdist(x, x)
    np.fill_diagonal(distance, np.inf)
    found = []
    for i in range(len(x)):
        near = np.argsort(distance[i])[:12]
        w = np.exp(-(distance[i, near] ** 2) / 0.5)
        found.append(np.sum((z[i] - w / w.sum() @ z[near]) ** 2))
    return np.array(found)


def test_measures_of_a_set_are_those_of_the_papers_formulas(images: dict[str, np.ndarray]) -> None:
    rows, _ = measure_set(images, seed=0)
    for row in rows:
        image = images[row["repair"]]
        singular = np.linalg.svd(image, compute_uv=False)
        assert row["explained_variance_1"] == pytest.approx(singular[0] ** 2 / (singular**2).sum())
        cosines = 1 - pdist(image, "cosine")
        assert row["token_uniformity"] == pytest.approx(cosines.mean())
        assert row["rbf_distance"] == pytest.approx(math.log(np.exp(-pdist(unit(image), "sqeuclidean") / 0.5).mean()))
        if row["repair"] != "none":
            assert row["lsds"] == pytest.approx(compute_offsets(images["none"], image).mean())
            assert row["lsds_low"] < row["lsds"] < row["lsds_high"]


def test_lsds_is_compared_row_by_row(images: dict[str, np.ndarray]) -> None:
    _, found = measure_set(images, seed=0)
    white, soft = (compute_offsets(images["none"], images[name]) for name in ("whitening", FIXED))
    difference = soft - white
    assert found["lsds_difference"] == pytest.approx(difference.mean())
    error = difference.std(ddof=1) / math.sqrt(len(difference))
    assert (found["lsds_high"] - found["lsds_low"]) / 2 == pytest.approx(1.96 * error, rel=0.15)
    assert found["whitened_cosine_low"] < found["whitened_cosine"] < found["whitened_cosine_high"]


def test_kurtosis_of_normal_and_of_heavy_rows() -> None:
    rng = np.random.default_rng(1)
    normal = rng.normal(size=(2000, 5)) @ rng.normal(size=(5, 5)) + 3.0
    found = compute_kurtosis(normal)
    assert found["kurtosis"] == pytest.approx(1.0, abs=0.05)
    assert found["kurtosis_p"] > 0.01
    assert found["abnormal"] == 0
    # Mardia's statistic from its definition, with the inverse of the covariance over n.
    centred = normal - normal.mean(0)
    inverse = np.linalg.inv(np.cov(normal.T, bias=True))
    whole = np.mean([(row @ inverse @ row) ** 2 for row in centred])
    assert found["kurtosis"] == pytest.approx(whole / (5 * 7 * 1999 / 2001))
    heavy = np.vstack([normal, 40 * rng.normal(size=(3, 5))])
    found = compute_kurtosis(heavy)
    assert found["kurtosis"] > 2
    assert found["kurtosis_p"] < 1e-9
    assert found["abnormal"] == 3


def compared(**columns: float | list[float]) -> pd.DataFrame:
    default = {"lsds_difference": -0.1, "lsds_p_corrected": 0.001, "rbf_difference": 0.1, "rbf_p_corrected": 0.001}
    default |= {"whitened_cosine": 0.0, "whitened_cosine_low": -0.002, "whitened_cosine_high": 0.002}
    default |= {"kurtosis": 1.5, "kurtosis_p_corrected": 0.001, "abnormal": 3, "n": 100}
    return pd.DataFrame({"set": ["sts-b", "sts12"], **default, **columns})


@pytest.mark.parametrize(
    ("difference", "p", "outcome"),
    [([-0.1, -0.2], 0.01, "agrees"), ([-0.1, 0.2], 0.01, "contradicts"), ([-0.1, -0.2], [0.01, 0.3], "undecided")],
)
def test_lsds_must_be_lower_on_every_set(difference: list[float], p: float, outcome: str) -> None:
    (claim,) = judge_lsds("m", compared(lsds_difference=difference, lsds_p_corrected=p))
    assert claim.outcome == outcome


def variances(white: float) -> pd.DataFrame:
    rows = [
        (one, repair, value)
        for one in ("sts-b", "sts12")
        for repair, value in zip(("none", "whitening", FIXED), (0.6, white, 0.02), strict=True)
    ]
    return pd.DataFrame(rows, columns=["set", "repair", "explained_variance_1"]).assign(width=100)


def test_whitening_is_judged_by_three_claims() -> None:
    agreeing = judge_whitening("m", variances(0.01), compared())
    assert [claim.outcome for claim in agreeing] == ["agrees", "agrees", "agrees"]
    far = compared(whitened_cosine_low=0.05, whitened_cosine_high=0.06, rbf_difference=-0.1)
    assert [claim.outcome for claim in judge_whitening("m", variances(0.03), far)] == [
        "contradicts",
        "contradicts",
        "undecided",
    ]
    wide = compared(whitened_cosine_low=-0.05, whitened_cosine_high=0.06, rbf_p_corrected=0.5)
    assert [claim.outcome for claim in judge_whitening("m", variances(0.01), wide)] == [
        "undecided",
        "undecided",
        "agrees",
    ]


def test_no_rows_have_a_weaker_strongest_direction_than_whitened_ones(images: dict[str, np.ndarray]) -> None:
    rows, _ = measure_set(images, seed=0)
    assert {row["repair"]: row for row in rows}["whitening"]["explained_variance_1"] == pytest.approx(1 / 8, rel=1e-9)


def test_abnormal_points_are_judged_on_the_sets_that_the_paper_names() -> None:
    (claim,) = judge_abnormal("m", compared())
    assert claim.outcome == "agrees"
    assert "sts-b" in claim.text
    assert judge_abnormal("m", compared(kurtosis=0.8))[0].outcome == "contradicts"
    assert judge_abnormal("m", compared(kurtosis_p_corrected=0.2))[0].outcome == "undecided"


def test_a_far_point_does_not_squeeze_a_map() -> None:
    values = np.append(np.random.default_rng(0).normal(size=400), 500.0)
    low, high = _select_range(values)
    assert high < 5
    assert low > -5
    assert _select_range(np.arange(5.0)) == (0.0, 4.0)


def test_maps_of_every_set_have_the_measures_of_the_table(model: str, tmp_path: Path) -> None:
    pytest.importorskip("openTSNE")
    options = StudyOptions(output=tmp_path / "s", models=[model], data=pair_files(tmp_path), device="cpu")
    found = measure_repairs(options, "small")
    tables = {table.name: table.frame for table in found.tables}
    measured, planes = tables["repaired"].set_index(["set", "repair"]), tables["tsne"]
    assert planes.groupby(["set", "repair", "pair"]).size().eq(2).all()
    assert set(planes["set"]) == {"sts-b", "sts12"}
    figures = {figure.name: figure.draw() for figure in found.figures}
    assert set(figures) == {"lsds", "tsne-sts-b", "tsne-sts12", "tsne"}
    titles = [axes.get_title() for axes in figures["tsne-sts12"].axes]
    for title, repair in zip(titles, ("none", "whitening", FIXED), strict=True):
        row = measured.loc[("sts12", repair)]
        columns = {"EV₁": "explained_variance_1", "RBF": "rbf_distance", "TokenUni": "token_uniformity", "LSDS": "lsds"}
        shown = dict(re.findall(r"(EV₁|RBF|TokenUni|LSDS) (−?[0-9.]+)", title))
        assert list(shown) == list(columns)[: 3 if repair == "none" else 4]
        for name, number in shown.items():
            assert float(number.replace("−", "-")) == pytest.approx(
                row[columns[name]], abs=0.0051 if name == "RBF" else 6e-4
            )
    assert len(figures["tsne"].axes) == 6
    heights = sorted(bar.get_height() for bar in figures["lsds"].axes[0].patches)
    assert heights == pytest.approx(sorted(measured["lsds"].dropna()))


def test_a_map_says_how_many_points_lie_outside() -> None:
    rng = np.random.default_rng(0)
    parts = []
    for repair in ("none", "whitening", FIXED):
        x, y = rng.normal(size=(2, 300))
        x[0] = 900.0 if repair == "whitening" else 0.0
        pair, side = np.tile(np.arange(150), 2), np.repeat([1, 2], 150)
        parts.append(pd.DataFrame({"set": "sts-b", "repair": repair, "pair": pair, "sentence": side, "x": x, "y": y}))
    names = ("explained_variance_1", "rbf_distance", "token_uniformity", "lsds")
    measured = pd.DataFrame(
        [{"set": "sts-b", "repair": part["repair"][0], **dict.fromkeys(names, 0.5)} for part in parts]
    )
    (figure,) = make_maps(pd.concat(parts), measured)
    panels = figure.draw().axes
    assert ["outside" in axes.get_title() for axes in panels] == [False, True, False]
    assert panels[1].get_xlim()[1] < 20


def test_one_set_needs_no_grid() -> None:
    rows = [("sts-b", repair, 0, side, side, side) for repair in ("none", "whitening", FIXED) for side in (1, 2)]
    planes = pd.DataFrame(rows, columns=["set", "repair", "pair", "sentence", "x", "y"])
    assert [figure.name for figure in make_maps(planes, pd.DataFrame())] == ["tsne-sts-b"]
