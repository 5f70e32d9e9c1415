"""How far the tokens of one sequence are from being all the same row."""

from __future__ import annotations

from math import isfinite

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import SequenceStatistics
from isotrope.statistics.sequences import NOT_KEPT


@measure(
    "sequences",
    title="Rank-one residual of sequences",
    says="How far the tokens of one sequence are from being all the same row: 0 all the same.",
    range=(0.0, 1.0),
    better="higher",
    formula="mean over sequences of ‖X − 1μᵀ‖_F/‖X‖_F, X the T × d matrix of a sequence and μ the mean of its rows",
    paper="Dong et al. 2021; Yan et al. 2022 (SoftDecay), section 1",
    blind="Depends on the length of the sequences: compare at equal length. Sequences of one token are left out. Rows "
    "of float32 resolve about 1e-7.",
    wrong="The same number of all rows of a corpus as one matrix stays large where every sequence has collapsed to a "
    "row of its own.",
)
def sequence_rank_one_residual(s: SequenceStatistics) -> float:
    """Distance of a sequence's token matrix from one with equal rows, as a share of its norm, averaged.

    Dong et al. take the operator norms ‖·‖₁ and ‖·‖∞ and the nearest row; the Frobenius norm, whose nearest row is the
    mean, can be computed in one pass and is zero for the same matrices.
    """
    if s.count == 0:
        raise Undefined("no sequence has two tokens or more")
    if not isfinite(s.residual):
        raise Undefined(NOT_KEPT)
    return max(0.0, s.residual / s.count)
