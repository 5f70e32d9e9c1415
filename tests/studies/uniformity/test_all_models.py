"""What SoftDecay gains by model: the printed gains, and verdicts over models of several depths."""

from __future__ import annotations

import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from isotrope.sources.input import Input
from isotrope.studies.options import StudyOptions
from isotrope.studies.runner import repeat_for_models, run_study
from isotrope.studies.uniformity.all_models import (
    _compare,
    _correlate,
    is_shared,
    join_models,
    judge_models,
    judge_printed_gains,
    judge_printed_glue,
)
from isotrope.studies.uniformity.layers import measure_layers
from isotrope.studies.uniformity.published import FIXED, find_printed_gain
from isotrope.studies.uniformity.sentence_spectra import measure_sentence_spectra
from isotrope.studies.uniformity.sts import score_sts
from testkit.models import save_model, texts
from testkit.small_studies import drawn, pair_files


def make_model(
    name: str, gain: float, *, blocks: int = 12, shared: bool = False, error: float = 0.5, **more: Any
) -> dict[str, Any]:
    row = {"model": name, "blocks": blocks, "shared": shared, "gain %": gain, "uniformity": gain / 100}
    row |= {"gain_low": gain - 1.96 * error, "gain_high": gain + 1.96 * error}
    apart, after = more.get("apart", 0.05 if shared else 0.3), more.get("after", 0.5 if shared else 1.5)
    row |= {"apart": apart, "apart_low": apart - 0.02, "apart_high": apart + 0.02}
    return row | {"after": after, "after_low": after - 0.1, "after_high": after + 0.1}


def judged(*rows: dict[str, Any]) -> dict[str, str]:
    """Outcomes by the beginning of the sentence."""
    return {claim.text[:30]: claim.outcome for claim in judge_models(pd.DataFrame(rows))}


SHARED, ALIKE, FLAT = (
    "SoftDecay gains more on models",
    "the spectra of layers are more",
    "after SoftDecay the last layer",
)
DEPTH, UNIFORMITY = "SoftDecay gains more on deeper", "the gain of SoftDecay and the "


def test_printed_gains() -> None:
    assert find_printed_gain("albert-base-v1") == pytest.approx(23.5, abs=0.05)
    assert find_printed_gain("distilbert-base-uncased") == pytest.approx(8.8, abs=0.05)
    assert math.isnan(find_printed_gain("albert-base-v2"))
    assert judge_printed_gains().outcome == "agrees"


def test_printed_gains_on_glue() -> None:
    """The gains that Table 2 prints, copied from it: the mean over its six rows."""
    bert, distilbert = (0.45, 0.87, 1.43, 0.17, 0.80, 5.00), (0.26, 1.00, -0.30, -0.18, 1.31, 4.46)
    claims = judge_printed_glue()
    assert [claim.outcome for claim in claims] == ["agrees", "agrees", "agrees"]
    for gains, model in ((bert, "bert-base"), (distilbert, "distilbert-base")):
        (shown,) = re.findall(rf"([0-9.]+) % \({model}\)", claims[0].text)
        assert float(shown) == pytest.approx(sum(gains) / 6, abs=0.02)
    assert "2.71 to 5.00 % on RTE" in claims[1].text


def test_printed_tables_that_say_otherwise_contradict(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = {"bert-base": {"base": (50.0,) * 6, "softdecay": (40.0,) * 6}}
    rows |= {model: {"base": (50.0,) * 6, "softdecay": (60.0,) * 6} for model in ("albert-base", "distilbert-base")}
    monkeypatch.setattr("isotrope.studies.uniformity.all_models.TABLES_2_AND_6", rows)
    assert [claim.outcome for claim in judge_printed_glue()] == ["contradicts"] * 3


def test_models_like_those_of_the_paper() -> None:
    found = judged(
        make_model("albert", 23.5, shared=True), make_model("distilbert", 8.8, blocks=6), make_model("bert", 13.2)
    )
    assert found == {SHARED: "agrees", ALIKE: "agrees", FLAT: "agrees", DEPTH: "agrees", UNIFORMITY: "undecided"}


def test_models_unlike_those_of_the_paper() -> None:
    found = judged(
        make_model("albert", 2.0, shared=True, apart=0.9, after=9.0), make_model("distilbert", 20.0, blocks=6)
    )
    assert found == {SHARED: "contradicts", ALIKE: "contradicts", FLAT: "contradicts", DEPTH: "contradicts"}


def test_wide_intervals_decide_nothing() -> None:
    found = judged(make_model("bert", 23.5, error=20.0), make_model("distilbert", 8.8, blocks=6, error=20.0))
    assert found == {DEPTH: "undecided"}


def test_one_model_is_not_compared() -> None:
    (claim,) = judge_models(pd.DataFrame([make_model("bert", 5.0)]))
    assert claim.outcome == "note"


def test_two_models_are_compared_by_the_normal_distribution() -> None:
    one, two = make_model("a", 5.0, error=0.3), make_model("b", 4.0, error=0.4)
    effect, p = _compare(one, two, "gain %", 1)
    assert effect == pytest.approx(1.0)
    assert p == pytest.approx(2 * stats.norm.sf(1.0 / 0.5), rel=1e-3)
    assert _compare(one, two, "gain %", -1)[0] == pytest.approx(-1.0)


def test_the_correlation_over_models_is_by_all_permutations() -> None:
    gains = [5.0, 3.0, 8.0, 13.0, 9.0]
    frame = pd.DataFrame([make_model(str(i), gain) for i, gain in enumerate(gains)]).assign(uniformity=[1, 2, 3, 5, 4])
    rho, p = _correlate(frame)
    assert rho == pytest.approx(stats.spearmanr(gains, frame["uniformity"]).statistic)
    assert p == pytest.approx(10 / 120)  # 0.9 and its four neighbours, and as many below −0.9


def test_albert_shares_its_parameters(tmp_path: Path) -> None:
    kinds = {
        name: Input(model=save_model(tmp_path / name, name)).load().config for name in ("albert", "distilbert", "bert")
    }
    assert {name: is_shared(config) for name, config in kinds.items()} == {
        "albert": True,
        "distilbert": False,
        "bert": False,
    }


@pytest.mark.long
@pytest.mark.usefixtures("svg_alone")
def test_small_models_of_the_papers_classes_are_joined(tmp_path: Path) -> None:
    """ALBERT and DistilBERT stand side by side, as in Fig. 3; small random models of their classes."""
    models = [save_model(tmp_path / name, name) for name in ("albert", "distilbert")]
    given = {"text": texts(60), "data": pair_files(tmp_path), "device": "cpu"}
    options = StudyOptions(output=tmp_path / "s", models=models, quick=True, **given)
    parts = {
        "layers": measure_layers,
        "sts paper": partial(score_sts, protocol="paper"),
        "sentence spectra": measure_sentence_spectra,
    }
    experiments = repeat_for_models(options, parts) | {"all models": partial(join_models, options)}
    study = run_study("uniformity", "paper", experiments, options)
    gains = study.table("all models", "gains").set_index("model")
    assert gains["shared"].to_dict() == {"albert": True, "distilbert": False}
    assert gains["blocks"].tolist() == [3, 3]
    for name in ("albert", "distilbert"):
        scores = study.table(f"{name} sts paper", "scores").set_index("repair")
        assert gains.loc[name, "gain %"] == pytest.approx(scores.loc[FIXED, "gain %"])
        layers = study.table(f"{name} layers", "layers")
        assert gains.loc[name, "uniformity"] == layers["sequence_uniformity"].iloc[-1]
    claims = [claim.text[:30] for claim in study.claims if not claim.model]
    assert {SHARED, ALIKE, FLAT} <= set(claims)
    assert {"gains", "sentence_spectra"} <= drawn(study)
