"""Medical question pairs by the embedded model: what half of them says holds on the other half."""

from __future__ import annotations

import numpy as np
import pytest

from isotrope import Encoder, Input
from isotrope.search.background import Background
from isotrope.search.label_files import read_pairs
from isotrope.search.labelled_scores import LabelledScores
from isotrope.statistics.pair_cosines import PairCosines
from testkit.paths import SHARED_DATA

PATH = SHARED_DATA / "pairs" / "mqp_en.tsv"

SPLITS, KEPT = 20, 18


@pytest.mark.long
def test_a_rate_and_a_precision_are_kept_on_the_unseen_half() -> None:
    if not PATH.exists():
        pytest.skip(f"there is no {PATH}; set ISOTROPE_DATA to the folder of the data sets.")
    pairs = read_pairs(PATH)[:1000]
    texts = list(dict.fromkeys(text for pair in pairs for text in (pair.first, pair.second)))
    rows = Encoder(Input())(texts).astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    number = {text: i for i, text in enumerate(texts)}
    first, second = (np.array([number[pair[side]] for pair in pairs], np.int32) for side in (0, 1))
    scores = PairCosines(np.einsum("ij,ij->i", rows[first], rows[second]), first, second, len(rows))
    labels = np.array([pair.grade == 1 for pair in pairs])
    rng, rates, precisions = np.random.default_rng(0), 0, 0
    for seed in range(SPLITS):
        half = rng.random(len(rows)) < 0.5
        found = Background.of(PairCosines.of(rows[half]), seed).find_threshold(1e-3)
        rates += found.low <= np.quantile(PairCosines.of(rows[~half]).cosines, 1 - 1e-3) <= found.high
        here = half[scores.first]
        certified = LabelledScores.of(scores.only(here), labels[here], seed).find_threshold("precision", 0.55)
        unseen = labels[~here & (scores.cosines >= certified.value)]
        precisions += certified.low <= unseen.mean() <= certified.high
    assert rates >= KEPT
    assert precisions >= KEPT
