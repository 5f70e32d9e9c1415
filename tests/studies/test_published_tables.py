"""Numbers copied from papers, against other numbers of the same tables."""

from __future__ import annotations

import math

import pytest

from isotrope.studies.published.uniformity import MISPRINTS, TABLE_1, TABLE_4
from isotrope.studies.uniformity import _printed, _printed_4

#: The averages that Table 1 prints beside each row.
AVERAGES = {
    "bert-base": (62.97, 26.64, 65.38, 67.63, 67.67, 67.77, 71.26),
    "distilbert-base": (64.12, 67.48, 69.78),
    "albert-base": (51.87, 62.24, 64.06),
    "roberta-base": (59.53, 67.17, 68.50),
}

#: Two of them are off by two hundredths.
OFF = {("distilbert-base", 64.12), ("roberta-base", 68.50)}


@pytest.mark.parametrize("model", TABLE_1)
def test_rows_of_table_1_have_their_printed_averages(model: str) -> None:
    for row, average in zip(TABLE_1[model].values(), AVERAGES[model], strict=True):
        near = abs(sum(row) / 7 - average) <= 0.0051
        assert near == ((model, average) not in OFF)
    assert any("64.12" in text and "68.50" in text for text in MISPRINTS)


def test_explained_variance_and_mean_cosine_of_table_4_agree() -> None:
    """Of rows that are hardly centred the strongest direction is that of the mean: both numbers are near each other."""
    for rows in TABLE_4.values():
        for one, two in zip(rows["explained_variance_1"], rows["token_uniformity"], strict=True):
            assert one is not None
            assert two is None or abs(one - two) < 0.01


def test_printed_numbers_stand_beside_the_same_model_and_protocol_only() -> None:
    assert _printed("bert-base-uncased", "sts12", "none", "paper") == 57.72
    assert _printed("bert-base-uncased", "mean", "none", "paper") == pytest.approx(62.97, abs=0.01)
    assert math.isnan(_printed("bert-base-uncased", "sts12", "none", "concatenated"))
    assert math.isnan(_printed("all-MiniLM-L6-v2", "sts12", "none", "paper"))
    assert _printed_4("distilbert-base-uncased", "sts-b", "rbf_distance", "softdecay:alpha=-0.6") == -3.8052
    assert _printed_4("bert-base-uncased", "sts14", "explained_variance_1", "softdecay:alpha=-0.6") == 0.0151
    assert math.isnan(_printed_4("albert-base-v1", "sts12", "rbf_distance", "none"))
    assert math.isnan(_printed_4("bert-base-uncased", "sts-b", "rbf_distance", "whitening"))
