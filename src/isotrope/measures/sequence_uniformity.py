"""How alike the tokens of one sequence are."""

from __future__ import annotations

from math import isfinite
from typing import Any

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.measures.self_similarity import mean_cosine_of
from isotrope.statistics import SequenceStatistics
from isotrope.statistics.sequences import NOT_KEPT

_LENGTH = "Depends on the length of the sequences: compare at equal length. Sequences of one token are left out."
_UNIFORMITY: dict[str, Any] = {
    "range": (-1.0, 1.0),
    "better": "lower",
    "null": lambda n, d: 0.0,
    "paper": "Yan et al. 2022 (SoftDecay), Fig. 2",
    "blind": _LENGTH,
}


def _average(s: SequenceStatistics, total: float) -> float:
    if s.count == 0:
        raise Undefined("no sequence has two tokens or more")
    return total / s.count


def _across(s: SequenceStatistics) -> float:
    if not isfinite(s.residual):
        raise Undefined(NOT_KEPT)
    return mean_cosine_of(float(s.firsts @ s.firsts), s.count)


def _inner(s: SequenceStatistics) -> float:
    if s.directed == 0:
        raise Undefined("no sequence has two tokens or more whose mean has a direction")
    return s.inner / s.directed


@measure(
    "sequences",
    title="Sequence uniformity",
    says="How alike two tokens of one sequence point: 1 all the same.",
    formula="mean over sequences of the mean cosine over distinct pairs of its tokens",
    headline=7,
    per_group=True,
    **_UNIFORMITY,
)
def sequence_uniformity(s: SequenceStatistics) -> float:
    """Mean cosine over distinct token pairs within a sequence, averaged over sequences."""
    return _average(s, s.uniformity)


@measure(
    "sequences",
    title="[CLS] uniformity",
    says="How alike the first token of a sequence is to the others.",
    formula="mean over sequences of the mean cosine of the first token to the others; published: to itself too; "
    "across: mean cosine over distinct pairs of the sequences' first tokens",
    variants={"published": lambda s: _average(s, s.first_with_itself), "across": _across},
    **_UNIFORMITY,
)
def cls_uniformity(s: SequenceStatistics) -> float:
    """Mean cosine of the first token to the other tokens of its sequence.

    The paper has it as the average cosine of [CLS] tokens. Its code compares [CLS] with the tokens of the same
    sequence, which is the definition here; the variant `across` compares the [CLS] tokens of different sequences.
    """
    return _average(s, s.first)


@measure(
    "sequences",
    title="Intra-sentence similarity",
    says="How alike the tokens of a sequence are to the sequence's mean.",
    range=(-1.0, 1.0),
    formula="mean over sequences of the mean cosine of its tokens to their mean",
    paper="Ethayarajh 2019",
    blind=_LENGTH,
)
def intra_sentence_similarity(s: SequenceStatistics) -> float:
    """Mean cosine between tokens and the mean of their sequence."""
    return _inner(s)


@measure(
    "sequences",
    title="Intra-sentence similarity, adjusted",
    says="How much more alike a sequence's tokens are to its mean than any two tokens are to each other.",
    range=(-2.0, 2.0),
    formula="intra_sentence_similarity − mean cosine of all tokens of the layer",
    paper="Ethayarajh 2019",
    blind=_LENGTH,
)
def intra_sentence_similarity_adjusted(s: SequenceStatistics) -> float:
    """Intra-sentence similarity minus the layer's mean cosine."""
    return _inner(s) - mean_cosine_of(float(s.units @ s.units), s.rows)
