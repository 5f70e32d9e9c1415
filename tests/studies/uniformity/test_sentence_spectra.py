"""Spectra of STS sentences against numpy's decomposition of the sentences themselves."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.sources.text.encoder import Encoder
from isotrope.studies.options import StudyOptions
from isotrope.studies.uniformity.published import FIXED
from isotrope.studies.uniformity.sentence_spectra import (
    bend_spectrum,
    compare_spectra,
    compute_distance,
    compute_spectrum,
    judge_flatter,
    measure_sentence_spectra,
)
from testkit.small_studies import pair_files


def bend(spectrum: np.ndarray) -> np.ndarray:
    """Eq. 2 with α = −0.6 and Algorithm 1."""
    f = np.log(1 + 0.6 * (spectrum - 0.6)) / 0.6
    return np.sort(np.abs(f * spectrum[0] / f[0]))[::-1]


def test_curves_are_those_of_the_sentences_of_each_set(model: str, tmp_path: Path) -> None:
    data = pair_files(tmp_path)
    options = StudyOptions(output=tmp_path / "s", models=[model], data=data, device="cpu")
    found = measure_sentence_spectra(options, "small")
    frame = next(table.frame for table in found.tables if table.name == "spectra")
    assert list(dict.fromkeys(frame["set"])) == ["sts-b", "sts12"]
    lines = (data / "sts" / "sts-b-test.csv").read_text().splitlines()
    sentences = list(dict.fromkeys([line.split("\t")[i] for i in (5, 6) for line in lines]))
    here = frame[frame["set"] == "sts-b"]
    for layer in ("0", "2", "3"):
        rows = Encoder(options.input("small", layers=layer, pooling="mean"))(sentences)
        singular = np.linalg.svd(np.asarray(rows, np.float64), compute_uv=False)
        values = here[(here["layer"] == layer) & (here["repair"] == "none")]["value"]
        assert values.tolist() == pytest.approx((singular / singular[0]).tolist(), abs=1e-6)
    after = here[here["repair"] == FIXED]
    assert set(after["layer"]) == {"3"}  # SoftDecay is in the last layer alone
    assert after["value"].tolist() == pytest.approx((bend(singular) / singular[0]).tolist(), abs=1e-6)
    (figure,) = (one.draw() for one in found.figures)
    panels = [axes for axes in figure.axes if axes.get_title()]
    assert [axes.get_title() for axes in panels] == ["sts-b, before", "sts12, before", "sts-b, after", "sts12, after"]
    drawn = panels[2].get_lines()[-1].get_xdata()
    assert np.asarray(drawn)[1:].tolist() == pytest.approx(sorted(after["value"]), abs=1e-12)


def test_softdecay_of_a_spectrum_is_that_of_the_formula() -> None:
    spectrum = np.array([50.0, 20.0, 5.0, 0.7, 0.3])
    assert bend_spectrum(spectrum) == pytest.approx(bend(spectrum))
    assert bend_spectrum(spectrum)[0] == pytest.approx(50.0)
    assert np.isnan(bend_spectrum(np.array([0.5, 0.1]))).all()  # outside the domain of the form


def test_the_distance_of_layers_is_that_of_kolmogorov_and_smirnov() -> None:
    rng = np.random.default_rng(0)
    spectra = [np.sort(rng.exponential(size=30))[::-1] for _ in range(3)]
    scaled = [spectrum / spectrum[0] for spectrum in spectra]
    expected = [stats.ks_2samp(scaled[i], scaled[j]).statistic for i, j in ((0, 1), (0, 2), (1, 2))]
    assert compute_distance(spectra) == pytest.approx(np.mean(expected))
    assert compute_distance([spectra[0], 4 * spectra[0]]) == 0.0
    assert math.isnan(compute_distance(spectra[:1]))


def test_skewness_and_its_interval() -> None:
    rng = np.random.default_rng(1)
    groups = [20 * rng.normal(size=(40, 6)) @ np.diag(np.geomspace(5, 0.2, 6)) for _ in range(20)]
    grams = [rows.T @ rows for rows in groups]
    found = compare_spectra([grams, grams])
    singular = np.linalg.svd(np.concatenate(groups), compute_uv=False)
    assert compute_spectrum(sum(grams)) == pytest.approx(singular)
    before, after = (float(stats.skew(values)) for values in (singular, bend(singular)))
    assert found["before"] == pytest.approx(before)
    assert found["after"] == pytest.approx(after)
    assert found["change"] == pytest.approx(after - before)
    # Over new samples of the same rows the skewness varies about as the interval says.
    fresh = [20 * rng.normal(size=(800, 6)) @ np.diag(np.geomspace(5, 0.2, 6)) for _ in range(200)]
    spread = np.std([stats.skew(np.linalg.svd(rows, compute_uv=False)) for rows in fresh])
    half = (found["before_high"] - found["before_low"]) / 2
    assert half / stats.t.ppf(0.975, 19) == pytest.approx(spread, rel=0.5)


@pytest.mark.parametrize(
    ("ends", "outcome"),
    [
        ([(-0.9, -0.5), (-0.8, -0.6)], "agrees"),
        ([(-0.9, -0.5), (0.1, 0.2)], "contradicts"),
        ([(-0.9, 0.1)], "undecided"),
    ],
)
def test_the_last_layer_must_be_less_skewed_on_every_set(ends: list[tuple[float, float]], outcome: str) -> None:
    frame = pd.DataFrame(ends, columns=["change_low", "change_high"])
    frame["change"] = frame.mean(axis=1)
    assert judge_flatter("m", frame).outcome == outcome
