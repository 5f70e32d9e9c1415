"""Cosines of pairs that are known to match or not: curves, and thresholds for a wanted precision or recall."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.search.match_probability import compute_calibration_error, compute_crossed_error, fit_probability
from isotrope.search.rate_interval import compute_lower_bound, widen_to_new_sample
from isotrope.statistics.pair_cosines import PairCosines, compute_shared_variance

Vector = NDArray[np.float64]
Labels = NDArray[np.bool_]
Goal = Literal["precision", "recall"]

#: Fewest matches, and fewest pairs that are no matches.
_FEWEST = 10

#: Candidates for a threshold, and points of the curves.
_CANDIDATES, _POINTS = 100, 200

#: Sets the random numbers of the split apart from others of the same seed.
_SPLIT = 23

#: The confidence of the bound that says which candidate is tested first. More than that of the test, so that a
#: candidate with many pairs goes before one with few.
_SURE = 0.999


@dataclass(frozen=True)
class CertifiedThreshold:
    """A threshold whose precision or recall is certified on pairs that did not choose it.

    Attributes:
        goal: "precision" or "recall".
        wanted: The precision or recall that was asked for; the true one is at least this with a chance of 95 %.
        value: The cosine.
        reached: Precision or recall on the held-out pairs.
        low: Lower end of the interval of `reached`: where it lies in 95 of 100 other sets of as many pairs.
        high: Upper end.
        pairs: Number of held-out pairs that it was taken over.
        recall: Share of the held-out matches at or above the cosine.
        precision: Share of matches among the held-out pairs at or above the cosine.
    """

    goal: Goal
    wanted: float
    value: float
    reached: float
    low: float
    high: float
    pairs: int
    recall: float
    precision: float


@dataclass(frozen=True, eq=False)
class LabelledScores:
    """Cosines of pairs with labels.

    Attributes:
        scores: The pairs and their cosines.
        labels: Whether each pair matches, (p,).
        part: Whether each pair helps to choose thresholds; the others certify them. Pairs with the same first row are
            in the same part, (p,).
    """

    scores: PairCosines
    labels: Labels
    part: NDArray[np.bool_]

    @classmethod
    def of(cls, scores: PairCosines, labels: Labels, seed: int = 0) -> LabelledScores:
        """Labelled pairs, split at random into two parts."""
        for count, what in ((labels.sum(), "match"), ((~labels).sum(), "do not match")):
            if count < _FEWEST:
                raise InputError(f"{count:,} of {len(labels):,} labelled pairs {what}; give at least {_FEWEST}.")
        chosen = np.random.default_rng((seed, _SPLIT)).random(scores.rows) < 0.5
        return cls(scores, labels, chosen[scores.first])

    def find_threshold(self, goal: Goal, wanted: float) -> CertifiedThreshold:
        """The most useful threshold whose precision or recall is certified.

        Candidates are ordered by one part of the pairs: for a precision, from the most certain one down. The other
        part tests them in this order, and stops at the first that fails, so that trying many costs nothing (fixed
        sequence testing, Angelopoulos et al. 2021, arXiv:2110.01052). A test passes where the one-sided lower bound of
        Clopper and Pearson reaches what is wanted.
        """
        if not 0.0 < wanted < 1.0:
            raise InputError(f"the {goal} {wanted:g} is not between 0 and 1; give a share.")
        bound = self._compute_precision_bound if goal == "precision" else self._compute_recall_bound
        candidates = np.unique(np.quantile(self.scores.cosines[self.part], np.linspace(0.0, 1.0, _CANDIDATES)))
        if goal == "precision":
            found_here = [self._compute_precision_bound(cosine, self.part) for cosine in candidates]
            bounds = [compute_lower_bound(share, effective, _SURE) for _, share, effective in found_here]
            candidates = candidates[: int(np.argmax(bounds)) + 1][::-1]
        best, found = 0.0, None
        for cosine in candidates.tolist():
            lowest, share, effective = bound(cosine, ~self.part)
            best = max(best, lowest)
            if lowest < wanted:
                break
            found = cosine, share, effective
        if found is None:
            raise InputError(
                f"no threshold has a {goal} of {wanted:g} for certain: {int((~self.part).sum()):,} held-out pairs "
                f"support {math.floor(best * 1000) / 1000:g} at most; ask for less, or give more pairs."
            )
        cosine, share, effective = found
        low, high = widen_to_new_sample(share, effective)
        _, precision, _ = self._compute_precision_bound(cosine, ~self.part)
        _, recall, _ = self._compute_recall_bound(cosine, ~self.part)
        held_out = int((~self.part).sum())
        return CertifiedThreshold(goal, wanted, cosine, share, low, high, held_out, recall, precision)

    def _compute_precision_bound(self, cosine: float, part: NDArray[np.bool_]) -> tuple[float, float, float]:
        """Lower bound, share and effective number of matches among the pairs of a part from a cosine on."""
        return self._compute_bound(part & (self.scores.cosines >= cosine), self.labels)

    def _compute_recall_bound(self, cosine: float, part: NDArray[np.bool_]) -> tuple[float, float, float]:
        """The same for pairs from a cosine on among the matches of a part."""
        return self._compute_bound(part & self.labels, self.scores.cosines >= cosine)

    def _compute_bound(self, among: NDArray[np.bool_], hits: NDArray[np.bool_]) -> tuple[float, float, float]:
        pairs, outcomes = self.scores.only(among), hits[among].astype(np.float64)
        if not len(outcomes):
            return 0.0, 0.0, 0.0
        share = float(outcomes.mean())
        effective = _count_effective(pairs, outcomes - share)
        return compute_lower_bound(share, effective), share, effective

    def to_dict(self) -> dict[str, Any]:
        """What a calibration keeps of the pairs: curves, the probability of a match, and calibration errors."""
        order = np.argsort(self.scores.cosines, kind="stable")
        scores, labels = self.scores.cosines[order], self.labels[order]
        cosines, probabilities = fit_probability(scores, labels)
        return {
            "pairs": len(labels),
            "matches": int(labels.sum()),
            "curve": _make_curve(scores, labels),
            "probability": {"cosines": cosines.tolist(), "probabilities": probabilities.tolist()},
            "auc": compute_auc(scores, labels),
            "ece_before": compute_calibration_error(scores, labels),
            "ece_after": compute_crossed_error(scores, labels, self.part[order]),
        }


def _count_effective(pairs: PairCosines, away: Vector) -> float:
    """How many independent pairs would tell a share as exactly as pairs that may have rows in common."""
    squares = float(away @ away)
    if squares <= 0.0:  # all alike: as if pairs with a common row were one
        return float(min(len(np.unique(pairs.first)), len(np.unique(pairs.second))))
    return len(away) * squares / compute_shared_variance(away, pairs.first, pairs.second, pairs.rows)


def compute_auc(scores: Vector, labels: Labels) -> float:
    """The area under the ROC curve: the chance that a match scores higher than another pair, ties counting half.

    >>> compute_auc(np.array([0.1, 0.4, 0.35, 0.8]), np.array([False, False, True, True]))
    0.75
    """
    from scipy.stats import rankdata

    matches = int(labels.sum())
    ranks = rankdata(scores)[labels].sum()
    return float((ranks - matches * (matches + 1) / 2) / (matches * (len(labels) - matches)))


def _make_curve(scores: Vector, labels: Labels) -> dict[str, list[float]]:
    """False-accept rate, recall and precision at thresholds, from the highest down; scores (n,) rise."""
    at = np.unique(np.linspace(0, len(scores) - 1, _POINTS).round().astype(np.int64))
    thresholds = np.unique(scores[at])[::-1]
    starts = np.searchsorted(scores, thresholds, side="left")
    hits = np.concatenate([np.cumsum(labels[::-1])[::-1], [0]])[starts]
    accepted = len(scores) - starts
    return {
        "cosines": thresholds.tolist(),
        "false_accept": ((accepted - hits) / int((~labels).sum())).tolist(),
        "recall": (hits / int(labels.sum())).tolist(),
        "precision": (hits / accepted).tolist(),
    }
