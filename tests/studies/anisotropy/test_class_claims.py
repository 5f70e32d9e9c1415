"""Claims by class on made tables: a case that agrees, one that contradicts and one that is not decided."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from isotrope.studies.anisotropy.class_claims import find_extremes, judge_classes, widen_intervals
from isotrope.studies.result import Claim


def make_layers(
    model: str,
    kind: str,
    cosines: list[float],
    *,
    family: str = "other",
    half: float = 0.01,
    trained: bool = True,
    names: list[str] | None = None,
) -> pd.DataFrame:
    facts = {"model": model, "class": kind, "family": family, "trained": trained}
    rows = [
        {"layer": name, "mean_cosine": cosine, "low": cosine - half, "high": cosine + half, **facts}
        for name, cosine in zip(names or map(str, range(len(cosines))), cosines, strict=True)
    ]
    return pd.DataFrame(rows)


def judge(*frames: pd.DataFrame) -> list[Claim]:
    return judge_classes(pd.concat(frames, ignore_index=True))


def outcome_of(claims: list[Claim], words: str) -> str:
    (found,) = (claim for claim in claims if words in claim.text)
    return found.outcome


@pytest.mark.parametrize(
    ("kind", "family", "words", "cosines", "outcome"),
    [
        ("subword", "bert", "token models are anisotropic", [0.1, 0.5], "agrees"),
        ("subword", "bert", "token models are anisotropic", [0.1, 0.12], "contradicts"),
        ("subword", "bert", "token models are anisotropic", [0.1, 0.205], "undecided"),
        ("character", "canine", "all are anisotropic", [0.1, 0.5], "agrees"),
        ("character", "canine", "all are anisotropic", [0.1, 0.12], "contradicts"),
        ("character", "canine", "all are anisotropic", [0.1, 0.195], "undecided"),
        ("speech", "hubert", "at least 0.2 in every layer", [0.3, 0.9], "agrees"),
        ("speech", "hubert", "at least 0.2 in every layer", [0.1, 0.9], "contradicts"),
        ("speech", "hubert", "at least 0.2 in every layer", [0.21, 0.9], "undecided"),
        ("vision transformer", "segformer", "MiT", [0.1, 0.05], "agrees"),
        ("vision transformer", "segformer", "MiT", [0.1, 0.5], "contradicts"),
        ("vision transformer", "vit", "ViT is low", [0.1, 0.05], "agrees"),
        ("vision transformer", "vit", "ViT is low", [0.1, 0.5], "contradicts"),
        ("vision transformer", "vit", "ViT is low", [0.1, 0.2], "undecided"),
        ("vision transformer", "beit", "but for MiT and ViT", [0.1, 0.5], "agrees"),
        ("vision transformer", "beit", "but for MiT and ViT", [0.1, 0.1], "contradicts"),
        ("convolution", "convnext", "most convolutions are isotropic", [0.1, 0.15], "agrees"),
        ("convolution", "convnext", "most convolutions are isotropic", [0.912, 0.5], "contradicts"),
        ("convolution", "convnext", "most convolutions are isotropic", [0.1, 0.2], "undecided"),
        ("convolution", "resnet", "more isotropic with depth", [0.9, 0.6, 0.4, 0.2], "agrees"),
        ("convolution", "resnet", "more isotropic with depth", [0.2, 0.4, 0.6, 0.912], "contradicts"),
        ("convolution", "resnet", "more isotropic with depth", [0.2, 0.4, 0.4, 0.2], "undecided"),
    ],
)
def test_a_model_is_judged_by_the_claim_of_its_class(
    kind: str, family: str, words: str, cosines: list[float], outcome: str
) -> None:
    claims = judge(make_layers("m", kind, cosines, family=family))
    assert outcome_of(claims, words) == outcome
    assert {claim.model_class for claim in claims} == {kind}
    assert {claim.model for claim in claims} == {"m"}


def test_convolutions_are_never_judged_by_the_claim_of_transformers() -> None:
    claims = judge(make_layers("m", "convolution", [0.912, 0.9], family="efficientnet"))
    assert [claim.outcome for claim in claims] == ["contradicts"]
    assert "transformer" not in claims[0].text


def test_numbers_of_real_networks() -> None:
    """EfficientNet-Lite0 over 50 photographs, alone and beside a network that is not isotropic."""
    convolution = make_layers("EfficientNet-Lite0", "convolution", [0.002, 0.137, *[0.03] * 16], half=0.017)
    assert outcome_of(judge(convolution), "most convolutions are isotropic") == "agrees"
    random = make_layers("random", "convolution", [0.912, 0.9], family="efficientnet")
    assert outcome_of(judge(convolution, random), "1 of 2 models") == "undecided"


def test_a_class_without_a_model_gives_no_claim() -> None:
    assert {claim.model_class for claim in judge(make_layers("m", "speech", [0.5]))} == {"speech"}


def test_claims_on_all_models_and_on_most_models() -> None:
    high, low = [0.1, 0.6], [0.1, 0.1]
    speech = [make_layers(f"s{i}", "speech", c) for i, c in enumerate(([0.5], [0.5], [0.1]))]
    assert outcome_of(judge(*speech), "every layer") == "contradicts"
    subword = [make_layers(f"s{i}", "subword", c) for i, c in enumerate((high, high, low))]
    claims = judge(*subword)
    assert outcome_of(claims, "2 of 3 models") == "agrees"
    assert claims[0].model == ""
    assert outcome_of(judge(*subword[1:]), "1 of 2 models") == "undecided"


def test_models_of_characters_alone_are_more_anisotropic() -> None:
    names = ("byt5-small", "canine-s")
    for cosines, outcome in (((0.9, 0.5), "agrees"), ((0.5, 0.9), "contradicts"), ((0.51, 0.5), "undecided")):
        claims = judge(*(make_layers(n, "character", [0.1, c]) for n, c in zip(names, cosines, strict=True)))
        assert outcome_of(claims, "characters alone") == outcome
    assert len(judge(make_layers("byt5-small", "character", [0.9]))) == 1  # nothing to compare with


def test_decoders_are_compared_with_their_encoders() -> None:
    names = ["encoder.0", "encoder.1", "decoder.0", "decoder.1"]
    for cosines, outcome in (
        ([0.1, 0.3, 0.1, 0.9], "agrees"),
        ([0.1, 0.9, 0.1, 0.3], "contradicts"),
        ([0.1, 0.5, 0.1, 0.5], "undecided"),
    ):
        for kind in ("encoder-decoder", "character"):  # T5 and ByT5
            claims = judge(make_layers("m", kind, cosines, names=names))
            assert outcome_of(claims, "decoders of T5 and ByT5") == outcome
    whisper = judge(make_layers("m", "speech", [0.3, 0.3, 0.9, 0.9], names=names))
    assert len(whisper) == 1


def test_random_weights_get_no_verdict() -> None:
    fresh = make_layers("fresh", "convolution", [0.912], family="resnet", trained=False)
    (claim,) = judge(fresh)
    assert claim.outcome == "note"
    assert "fresh" in claim.text
    assert len(judge(fresh, make_layers("m", "speech", [0.5]))) == 2


def test_intervals_are_widened_for_the_number_of_layers() -> None:
    """By the quantile of a normal distribution at 0.05 / 2 / n: three layers need 2.394 instead of 1.960 errors."""
    frame = make_layers("m", "subword", [0.1, 0.2, 0.3], half=1.959964 * 0.01)
    wide = widen_intervals(frame)
    expected = stats.norm.isf(0.05 / 6) * 0.01
    np.testing.assert_allclose(wide["high"] - wide["mean_cosine"], expected, rtol=1e-5)
    np.testing.assert_allclose(wide["mean_cosine"] - wide["low"], expected, rtol=1e-5)
    assert widen_intervals(frame[:1])["low"].tolist() == pytest.approx(frame["low"][:1].tolist())


def test_the_interval_of_the_highest_layer_is_that_of_all_layers() -> None:
    frame = make_layers("m", "subword", [0.1, 0.3, 0.2], half=0.0)
    frame.loc[2, ["low", "high"]] = [0.0, 0.6]  # not the highest, but it may be
    (found,) = find_extremes(frame, "highest")
    assert (found.value, found.layer, found.low) == (0.3, "1", 0.3)
    assert found.high > 0.6
    (found,) = find_extremes(frame, "lowest")
    assert (found.value, found.layer, found.high) == (0.1, "0", 0.1)
    assert found.low < 0.0


def test_one_layer_without_an_interval_leaves_all_layers_undecided() -> None:
    frame = make_layers("m", "convolution", [0.01, 0.02, 0.03], family="efficientnet", half=0.001)
    assert [claim.outcome for claim in judge(frame)] == ["agrees"]
    frame.loc[0, ["low", "high"]] = math.nan
    (found,) = find_extremes(frame, "highest")
    assert math.isnan(found.high)
    assert not math.isnan(found.low)
    assert [claim.outcome for claim in judge(frame)] == ["undecided"]
    (found,) = find_extremes(frame, "lowest")
    assert math.isnan(found.low)
    assert not math.isnan(found.high)
    # One layer that is known to be above the border is enough for the opposite.
    frame.loc[2, ["mean_cosine", "low", "high"]] = [0.5, 0.49, 0.51]
    assert [claim.outcome for claim in judge(frame)] == ["contradicts"]


def test_without_intervals_nothing_is_decided() -> None:
    claims = judge(make_layers("m", "speech", [0.9], half=math.nan))
    assert [claim.outcome for claim in claims] == ["undecided"]


def test_every_claim_says_what_decided_it() -> None:
    many: list[Any] = [
        make_layers("a", "subword", [0.5]),
        make_layers("b", "speech", [0.5]),
        make_layers("c", "convolution", [0.9, 0.5, 0.1], family="resnet"),
    ]
    for claim in judge(*many):
        assert "95 % interval" in claim.evidence
