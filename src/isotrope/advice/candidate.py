"""Evaluation of a candidate space without labels: benchmark pairs, halves of passages and geometry."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.advice.benchmark_pairs import Benchmark
from isotrope.advice.geometry import Geometry, compute_geometry, compute_neighbours_kept
from isotrope.compute.arrays import to_float64, to_unit_rows
from isotrope.evaluation.metrics import Correlation, Mean
from isotrope.evaluation.significance import Difference, PairedComparison, compare
from isotrope.repairs.fit_data import collect
from isotrope.repairs.softdecay import fit_scale_free_softdecay
from isotrope.sources.text.encoder import Rows

#: The gain on the benchmark that a repair needs, where rows are collapsed or in few directions, and where they are not.
#: In the validation (docs/validation.md), spaces of the first kind gain 0.04 or more from a repair that helps; others
#: gain 0.046 or more from a repair that helps, and at most 0.04 from one that does not.
GAIN_OF_REPAIRABLE, GAIN = 0.015, 0.04

#: Share of everyday sentences among the rows that a repair is fitted on.
EVERYDAY = 0.4

#: The two systems that are compared, by their names in the JSON document: rows without and with the repair.
BASELINE, REPAIRED = "none", "bent"

#: Part of the seed of the resamples on the benchmark; another name gives other intervals than version 0.1.
_SEED_NAME = "yardstick"

#: The minimum number of words of a passage that is cut into halves.
LEAST_WORDS = 6

#: The maximum number of words of a half: words near the cut are most similar.
_MOST_WORDS = 45


@dataclass(frozen=True)
class CandidateTexts:
    """Texts of an evaluation: to fit on, halves of other passages, and the benchmark."""

    fitted: Sequence[str]
    halves: Sequence[tuple[str, str]]
    benchmark: Benchmark

    @property
    def all(self) -> list[str]:
        """All texts, to be encoded."""
        pairs = [text for pair in self.benchmark.pairs for text in (pair.first, pair.second)]
        return [*self.fitted, *self.benchmark.sentences, *pairs, *(text for pair in self.halves for text in pair)]


@dataclass(frozen=True)
class Candidate:
    """One space and what a repair does to it.

    layers: the layers that are averaged. weighted: whether frequent tokens have lower weights. similarity: correlation
    of cosines with the known similarity of the benchmark pairs. halves: reciprocal rank of the other half of a passage.
    geometry: of the rows before the repair. neighbours_kept: share of nearest neighbours that the repair keeps.
    """

    layers: str
    weighted: bool
    similarity: PairedComparison
    halves: PairedComparison | None
    geometry: Geometry
    neighbours_kept: float

    @property
    def gain(self) -> Difference:
        """Gain of the repair on the benchmark."""
        return self.similarity.differences[REPAIRED]

    @property
    def required_gain(self) -> float:
        """The gain that justifies a repair."""
        return GAIN_OF_REPAIRABLE if self.geometry.repairable else GAIN

    @property
    def helps(self) -> bool:
        """Whether the repair has a significant and large enough gain, and the space is not healthy."""
        return self.gain.value >= self.required_gain and self.gain.low > 0 and not self.geometry.healthy

    @property
    def repaired_score(self) -> float:
        """Correlation on the benchmark after the repair."""
        return self.similarity.scores[REPAIRED].value

    def format_cells(self) -> dict[str, str]:
        """Format the columns of a table of candidates, by their titles."""
        halves = ["-", "-"]
        if self.halves is not None:
            halves = [f"{self.halves.scores[name].value:.3f}" for name in (BASELINE, REPAIRED)]
        return {
            "layers": self.layers,
            "tokens": "weighted" if self.weighted else "alike",
            "likeness": f"{self.similarity.scores[BASELINE].value:.3f}",
            "repaired": f"{self.repaired_score:.3f}",
            "gain": f"{self.gain.value:+.3f} ({self.gain.low:+.3f} to {self.gain.high:+.3f})",
            "halves": halves[0],
            "halves repaired": halves[1],
            "mean cosine": f"{self.geometry.mean_cosine:.2f}",
        }


def evaluate_candidate(
    layers: str,
    rows_of: Callable[[Sequence[str]], Rows],
    texts: CandidateTexts,
    *,
    weighted: bool = False,
    seed: int = 0,
) -> Candidate:
    """Evaluate one space before and after a repair.

    Args:
        layers: name of the layers.
        rows_of: gives the rows of texts in this space, (n, d).
        texts: texts to fit and evaluate on.
        weighted: whether tokens are weighted.
        seed: seed of resamples and permutations.
    """
    rows = rows_of(texts.fitted)
    repair = fit_scale_free_softdecay(add_everyday(rows, rows_of(texts.benchmark.sentences)))
    systems: dict[str, Callable[[Rows], Rows]] = {BASELINE: np.asarray, REPAIRED: repair.transform}
    pairs = texts.benchmark.pairs
    firsts, seconds = rows_of([pair.first for pair in pairs]), rows_of([pair.second for pair in pairs])
    gold = [pair.similarity for pair in pairs]
    correlations = {name: Correlation(cosines(do(firsts), do(seconds)), gold) for name, do in systems.items()}
    halves = None
    if texts.halves:
        lefts, rights = (rows_of([pair[side] for pair in texts.halves]) for side in (0, 1))
        ranks = {name: Mean(reciprocal_ranks(do(lefts), do(rights))) for name, do in systems.items()}
        halves = compare(ranks, seed=seed, items="halves", resamples=500, swaps=999)
    return Candidate(
        layers,
        weighted,
        compare(correlations, seed=seed, items=_SEED_NAME, resamples=500, swaps=999),
        halves,
        compute_geometry(collect(rows).moments),
        compute_neighbours_kept(rows, repair.transform(rows)),
    )


def add_everyday(rows: Rows, everyday: Rows) -> Rows:
    """Add rows of everyday sentences, the fewer ones repeated to their share, (n, d) and (m, d) -> (k, d).

    A repair that is fitted on one kind of text amplifies what does not occur in it: fitted on an encyclopedia alone,
    the third layer of MiniLM lost 9 points of STS; with everyday sentences it gained 5. Everyday sentences also span
    directions that a text with fewer rows than dimensions does not.

    >>> add_everyday(np.zeros((1, 1)), np.ones((6, 1))).sum(), add_everyday(np.zeros((6, 1)), np.ones((1, 1))).sum()
    (np.float64(6.0), np.float64(4.0))
    """
    own, others = round(len(everyday) * (1 - EVERYDAY) / EVERYDAY), round(len(rows) * EVERYDAY / (1 - EVERYDAY))
    width = rows.shape[1:]
    if len(rows) < own:
        return np.concatenate([np.resize(rows, (own, *width)), everyday])
    return np.concatenate([rows, np.resize(everyday, (others, *width))])


def cut_into_halves(text: str) -> tuple[str, str] | None:
    """Cut a text at the end of a sentence near its middle, or in the middle; None for a text that is too short.

    >>> cut_into_halves("The cat sat on the mat. It slept until the evening came.")
    ('The cat sat on the mat.', 'It slept until the evening came.')
    """
    words = text.split()
    if len(words) < LEAST_WORDS:
        return None
    ends = [i + 1 for i, word in enumerate(words[:-3]) if i >= 2 and re.search(r"[.!?]$", word)]
    cut = min(ends, key=lambda end: abs(end - len(words) / 2), default=(len(words) + 1) // 2)
    return " ".join(words[:cut][-_MOST_WORDS:]), " ".join(words[cut:][:_MOST_WORDS])


def reciprocal_ranks(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Reciprocal rank of the other half for each half, among all by cosine, (n, d) twice -> (2n,).

    >>> reciprocal_ranks(np.eye(3), np.eye(3)).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    cosines = to_unit_rows(to_float64(first)) @ to_unit_rows(to_float64(second)).T
    own = np.diagonal(cosines)
    # Ties count against: a space in which all rows are the same finds nothing.
    ranks = [(cosines >= own[:, None]).sum(axis=1), (cosines >= own).sum(axis=0)]
    return np.asarray(1.0 / np.concatenate(ranks))


def cosines(first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.float64]:
    """Cosine of each row with the same row of the second array, (n, d) twice -> (n,)."""
    return np.asarray((to_unit_rows(to_float64(first)) * to_unit_rows(to_float64(second))).sum(axis=1))
