"""Cosines of labelled pairs: from a file of pairs, or from queries and relevance judgements."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.evaluation.judgements import group_by_query, read_judgements
from isotrope.evaluation.ranking import NOTHING, search
from isotrope.search.label_files import LabelledPair, decide_matches, find_rows
from isotrope.search.space_rows import SpaceRows
from isotrope.statistics.pair_cosines import PairCosines

Numbers = NDArray[np.int64]

#: Documents that are found for each query, whose pairs with it are labelled by the judgements.
FOUND = 10


class NumberedPairs(NamedTuple):
    """Pairs by the numbers of their rows, (p,), and whether they match, (p,)."""

    first: Numbers
    second: Numbers
    matches: NDArray[np.bool_]


def number_pairs(pairs: Sequence[LabelledPair], rows: SpaceRows, match_from: float | None) -> NumberedPairs:
    """The rows of labelled pairs."""
    names = [pair.first for pair in pairs], [pair.second for pair in pairs]
    sides = [find_rows(side, rows.ids, "the pairs name") for side in names]
    grades = np.array([pair.grade for pair in pairs])
    return NumberedPairs(sides[0], sides[1], decide_matches(grades, match_from))


def number_judgements(qrels: str | Path, queries: SpaceRows, documents: SpaceRows, match_from: float) -> NumberedPairs:
    """Each judged query with its ten best documents and its judged ones; without a judgement there is no match."""
    path = Path(qrels)
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; give relevance judgements with --qrels.")
    judged = group_by_query(path, list(read_judgements(path)))
    asked = find_rows(list(judged), queries.ids, "the judgements name as query")
    number = documents.ids
    relevance = [
        dict(zip(find_rows(list(each), number, "the judgements name as document").tolist(), each.values(), strict=True))
        for each in judged.values()
    ]
    rows, ids = queries.select(asked), list(number)
    with np.errstate(over="ignore", invalid="ignore"):
        best = search(rows, documents.blocks(), ids, min(FOUND, len(ids)), np.full(len(rows), NOTHING))
    first, second, matches = [], [], []
    for query, found, known in zip(asked.tolist(), best.documents.tolist(), relevance, strict=True):
        for document in dict.fromkeys([*(each for each in found if each != NOTHING), *known]):
            first.append(query)
            second.append(document)
            matches.append(known.get(document, 0) >= match_from)
    return NumberedPairs(np.array(first), np.array(second), np.array(matches))


def compute_pair_cosines(pairs: NumberedPairs, first: SpaceRows, second: SpaceRows | None = None) -> PairCosines:
    """Cosines of numbered pairs; second: the rows of the second side, by default the same as of the first."""
    sides = [first.select(pairs.first), (second or first).select(pairs.second)]
    if sides[0].shape[1] != sides[1].shape[1]:
        raise InputError(
            f"the queries have {sides[0].shape[1]} dimensions and the documents {sides[1].shape[1]}; "
            "give both from one model."
        )
    cosines = np.einsum("ij,ij->i", *sides)
    if bad := int(np.isnan(cosines).sum()):
        raise InputError(f"{bad:,} labelled pairs are of rows that are zero or not finite; remove these pairs.")
    behind = 0 if second is None else first.total
    numbers: Any = np.concatenate([pairs.first, pairs.second + behind])
    known, where = np.unique(numbers, return_inverse=True)
    ends = where.astype(np.int32).reshape(2, -1)
    return PairCosines(np.clip(cosines, -1.0, 1.0), ends[0], ends[1], len(known))


def leave_out_matches(
    found: PairCosines, pairs: NumberedPairs, first: Numbers, second: Numbers | None = None
) -> PairCosines:
    """Random pairs without those that are known to match.

    Args:
        found: cosines of pairs of sampled rows.
        pairs: labelled pairs.
        first: numbers of the sampled rows, or queries.
        second: numbers of the sampled documents, where the first are queries.
    """
    numbers = first if second is None else np.concatenate([first, second])
    most = int(max(numbers.max(), pairs.first.max(), pairs.second.max())) + 1
    one, two = numbers[found.first], numbers[found.second]
    matches = [pairs.first[pairs.matches], pairs.second[pairs.matches]]
    if second is None:
        one, two = np.minimum(one, two), np.maximum(one, two)
        matches = [np.minimum(*matches), np.maximum(*matches)]
    return found.only(~np.isin(one * most + two, matches[0] * most + matches[1]))
