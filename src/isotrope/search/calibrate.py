"""Calibrate cosines: thresholds for a rate of false accepts, a precision or a recall, and from one space to another."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.repairs import load_repair
from isotrope.search.background import FEWEST_ABOVE, Background
from isotrope.search.calibration import Calibration
from isotrope.search.label_files import read_pairs
from isotrope.search.labelled_pairs import (
    NumberedPairs,
    compute_pair_cosines,
    leave_out_matches,
    number_judgements,
    number_pairs,
)
from isotrope.search.labelled_scores import LabelledScores
from isotrope.search.separation import MOST_ROWS, Separation, compare_best
from isotrope.search.space_rows import (
    Progress,
    SpaceRows,
    UnitSample,
    encode_corpus,
    encode_entries,
    encode_texts,
    open_side,
)
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from isotrope.sources.vectors.row_ids import Ids
from isotrope.statistics import Image
from isotrope.statistics.cutoff_transfer import Cutoff, translate
from isotrope.statistics.pair_cosines import PAIRS, PairCosines
from isotrope.storage.redaction import mask_facts
from isotrope.version import __version__

#: The false-accept rate of a calibration, where the rows support it.
FALSE_ACCEPT = 1e-4

#: Rows that random pairs are made of, where there are more.
SAMPLE = 10_000

#: Fewest rows whose pairs say anything.
_FEWEST = 50


@dataclass(frozen=True)
class _Sides:
    """Documents, queries where there are some, and labelled pairs where there are some."""

    documents: SpaceRows
    queries: SpaceRows | None = None
    pairs: NumberedPairs | None = None


def calibrate(
    *,
    vectors: Any = None,
    model: Any = None,
    text: Any = None,
    queries: Any = None,
    pairs: Any = None,
    qrels: str | Path | None = None,
    false_accept: float | None = None,
    precision_at: float | None = None,
    recall_at: float | None = None,
    documents: int | None = None,
    to: Any = None,
    repair: str | Path | None = None,
    cutoff: float | None = None,
    id_column: Ids = None,
    query_id_column: Ids = None,
    match_from: float | None = None,
    sample: int = SAMPLE,
    seed: int = 0,
    progress: Progress | None = None,
    **reading: Any,
) -> Calibration:
    """Calibrate the cosines of vectors, or of texts by a model.

    Without labels, the background is the cosines of random pairs: of rows, or of queries with documents. Pairs that are
    labelled as matches are left out of it.

    Args:
        vectors: documents as an array, a file or a store, as for `isotrope.scan`.
        model: a model in place of vectors, with a text or with pairs of texts.
        text: the documents of the model; with qrels a file of JSON lines with _id and text.
        queries: vectors of queries; with a model, their texts.
        pairs: labelled pairs, a table with id1, id2 and label, or with sentence1, sentence2 and score for a model; or a
            list of such threes.
        qrels: relevance judgements of queries and documents, as of BEIR or TREC.
        false_accept: share of random pairs that a threshold accepts, for one comparison; by default 1e-4, or the
            smallest power of ten that the rows support.
        precision_at: precision that a threshold must have on labelled pairs.
        recall_at: recall that a threshold must have on labelled pairs.
        documents: how many documents one query is compared with, by default all.
        to: the same rows in another space, for a cut-off that is carried over.
        repair: folder of a repair, in place of another space.
        cutoff: the cosine cut-off in this space that is carried over.
        id_column: ids of the vectors: a column beside them, a file (`FILE`, or `FILE:COLUMN` of a table) or a list;
            by default the column `_id` or `id`; without ids, row numbers from 0.
        query_id_column: the same for queries; by default a column of the same name.
        match_from: grade from which on a pair is a match; needed where labels are not 0 and 1.
        sample: rows that random pairs are made of, where there are more.
        seed: of the sample, the pairs and the split of labelled pairs.
        progress: called with a stage, what is done and the total.
        reading: more arguments of `isotrope.scan`, such as column, pooling or device.

    Returns:
        The calibration.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(300, 32))
        >>> found = calibrate(vectors=rows, false_accept=0.01)
        >>> bool(found.asked.low < found.asked < found.asked.high), found.separation.answer
        (True, 'no')
    """
    tell = progress or (lambda *_: None)
    _check_asked(pairs, qrels, queries, (precision_at, recall_at), (to, repair, cutoff))
    read = Input(vectors=vectors, model=model, text=text, **reading)
    labels = pairs, qrels, match_from
    if vectors is not None:
        sides = _open_vectors(read, queries, labels, (id_column, query_id_column), tell)
    else:
        sides = _encode_texts(read, queries, labels, tell)
    if documents is not None and documents < 1:
        raise InputError(f"got {documents} documents, expected at least one.")
    tell("comparing random pairs", 0, None)
    sampled = sides.documents.sample(sample, seed)
    asking = None if sides.queries is None else sides.queries.sample(sample, seed)
    if len(sampled.unit) < _FEWEST:
        raise InputError(f"got {len(sampled.unit):,} usable rows, expected at least {_FEWEST}; give more rows.")
    found = PairCosines.of(sampled.unit, seed=seed) if asking is None else _compare_queries(asking, sampled, seed)
    if sides.pairs is not None:
        found = leave_out_matches(found, sides.pairs, *_list_numbers(asking, sampled))
    background = Background.of(found, seed)
    labelled = None if sides.pairs is None else _label(sides, seed)
    goals = {"precision": precision_at, "recall": recall_at}
    return Calibration(
        background=background,
        asked=background.find_threshold(_choose_rate(background) if false_accept is None else false_accept),
        documents=documents or sides.documents.total,
        separation=_separate(sampled, asking, seed),
        certified=tuple(
            labelled.find_threshold(goal, wanted)  # type: ignore[arg-type]
            for goal, wanted in goals.items()
            if labelled is not None and wanted is not None
        ),
        labelled=None if labelled is None else labelled.to_dict(),
        transfer=None if cutoff is None else _carry_over(sides.documents, to, repair, cutoff, sample, seed, background),
        made_from=_describe(sides, len(sampled.unit), seed),
    )


def _check_asked(pairs: Any, qrels: Any, queries: Any, goals: Sequence[Any], transfer: Sequence[Any]) -> None:
    if pairs is not None and qrels is not None:
        raise InputError("got pairs and qrels; give one of them.")
    if qrels is not None and queries is None:
        raise InputError("qrels need the queries that they judge; give them with --queries.")
    if pairs is None and qrels is None and any(goal is not None for goal in goals):
        raise InputError("a precision or a recall needs labels; give --pairs, or --queries and --qrels.")
    to, repair, cutoff = transfer
    if to is not None and repair is not None:
        raise InputError("got other vectors and a repair to carry a cut-off to; give one of them.")
    if (cutoff is None) != (to is None and repair is None):
        raise InputError("a cut-off is carried over to another space: give --cutoff together with --to or --repair.")


def _open_vectors(
    read: Input, queries: Any, labels: tuple[Any, Any, float | None], ids: tuple[Ids, Ids], tell: Progress
) -> _Sides:
    documents = open_side(read, "documents", ids[0], tell)
    asking = None
    if queries is not None:
        asking = open_side(Input(vectors=queries, column=read.column), "queries", ids[1], tell, like=ids[0])
        if asking.source.width != documents.source.width:
            raise InputError(
                f"the queries have {asking.source.width} dimensions and the documents {documents.source.width}; "
                "give both from one model."
            )
    return _Sides(documents, asking, _number(documents, asking, labels))


def _encode_texts(read: Input, queries: Any, labels: tuple[Any, Any, float | None], tell: Progress) -> _Sides:
    pairs, qrels, _ = labels
    if pairs is not None:
        if read.text is not None or queries is not None:
            raise InputError("pairs of texts bring their own texts; leave out the text and the queries.")
        labels = (read_pairs(pairs), *labels[1:])
        texts = list(dict.fromkeys(text for pair in labels[0] for text in pair[:2]))
        documents = encode_texts(Encoder(read), texts, texts, "texts", tell)
        return _Sides(documents, None, _number(documents, None, labels))
    if read.text is None:
        raise InputError("got no rows; name a file of vectors, or --model and --text.")
    encoder, encode = Encoder(read), encode_corpus if qrels is None else encode_entries
    asking = None if queries is None else encode(encoder, queries, "queries", tell)
    documents = encode(encoder, read.text, "documents", tell)
    return _Sides(documents, asking, _number(documents, asking, labels))


def _number(
    documents: SpaceRows, queries: SpaceRows | None, labels: tuple[Any, Any, float | None]
) -> NumberedPairs | None:
    pairs, qrels, match_from = labels
    if qrels is not None and queries is not None:
        return number_judgements(qrels, queries, documents, 1.0 if match_from is None else match_from)
    return None if pairs is None else number_pairs(read_pairs(pairs), documents, match_from)


def _compare_queries(asking: UnitSample, sampled: UnitSample, seed: int) -> PairCosines:
    return PairCosines.between(asking.unit, sampled.unit, seed=seed)


def _list_numbers(asking: UnitSample | None, sampled: UnitSample) -> list[Any]:
    return [sampled.numbers] if asking is None else [asking.numbers, sampled.numbers]


def _separate(sampled: UnitSample, asking: UnitSample | None, seed: int) -> Separation | None:
    """The best scores of some rows among all other sampled rows, or of queries among documents."""
    rows = (sampled if asking is None else asking).unit[:MOST_ROWS]
    cosines = rows @ sampled.unit.T
    if asking is None:
        np.fill_diagonal(cosines, -np.inf)
    return compare_best(cosines, seed)


def _choose_rate(background: Background) -> float:
    """The usual rate, or the smallest power of ten that the pairs support."""
    smallest = background.smallest_rate
    return FALSE_ACCEPT if smallest <= FALSE_ACCEPT else min(0.5, 10.0 ** math.ceil(math.log10(smallest)))


def _label(sides: _Sides, seed: int) -> LabelledScores:
    assert sides.pairs is not None
    first, second = (sides.documents, None) if sides.queries is None else (sides.queries, sides.documents)
    return LabelledScores.of(compute_pair_cosines(sides.pairs, first, second), sides.pairs.matches, seed)


def _carry_over(
    here: SpaceRows, to: Any, folder: Any, cutoff: float, sample: int, seed: int, background: Background
) -> Cutoff:
    """The cut-off of another space, or of the rows after a repair, that as many random pairs pass."""
    if folder is not None:
        fitted = load_repair(folder)
        fitted.check_width(here.source.width)
        rows = here.sample(sample, seed)
        image = Image.of(rows.values, fitted.transform(rows.values))
    else:
        other = open_side(Input(vectors=to), "other vectors", None, lambda *_: None)
        if other.total != here.total:
            raise InputError(
                f"got {here.total:,} rows here and {other.total:,} in the other space; "
                "give the same texts in both, in the same order."
            )
        one, two = here.sample(sample, seed), other.sample(sample, seed)
        image = Image.of(*(side.unit[np.isin(side.numbers, far.numbers)] for side, far in ((one, two), (two, one))))
    (found,) = translate(image, [cutoff], pairs=PAIRS, seed=seed)
    if found.share * found.pairs < FEWEST_ABOVE:
        raise InputError(
            f"{round(found.share * found.pairs):,} of {found.pairs:,} random pairs reach the cut-off {cutoff:g}, "
            f"expected at least {FEWEST_ABOVE}; give more rows, or a cut-off up to "
            f"{math.floor(background.highest_seen * 1000) / 1000:g}."
        )
    return found


def _describe(sides: _Sides, sampled: int, seed: int) -> dict[str, Any]:
    facts: dict[str, Any] = mask_facts(
        {
            "documents": sides.documents.facts,
            "queries": None if sides.queries is None else sides.queries.facts,
            "rows": sides.documents.total,
            "sampled": sampled,
            "labelled_pairs": None if sides.pairs is None else len(sides.pairs.matches),
            "seed": seed,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "isotrope": __version__,
        }
    )
    return facts
