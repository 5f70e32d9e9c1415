"""The column Δ % of the table of STS scores."""

from __future__ import annotations

import pytest

from isotrope.studies.uniformity.sts import _relative_gain

pd = pytest.importorskip("pandas")


def test_a_gain_over_a_negative_score_is_positive() -> None:
    rows = [("a", "none", -2.0), ("a", "whitening", 1.0), ("b", "none", 50.0), ("b", "whitening", 45.0)]
    scores = pd.DataFrame(rows, columns=["set", "repair", "spearman"])
    assert _relative_gain(scores).tolist() == pytest.approx([0.0, 150.0, 0.0, -10.0])
