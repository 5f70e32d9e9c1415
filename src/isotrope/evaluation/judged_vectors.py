"""Retrieval sets of vectors: documents and queries that are encoded already, their ids, and judgements."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.evaluation.judged_rows import JudgedRows
from isotrope.evaluation.judgements import check_known, describe_judgements, group_by_query, open_judgements
from isotrope.sources.vectors.row_ids import read_row_ids
from isotrope.sources.vectors.source import ArraySource

#: Ids of documents or queries: a file, or a list.
Ids = str | Path | Sequence[object] | None


@dataclass(frozen=True)
class VectorSystem:
    """Vectors as an evaluated system: they have a name, and neither layers nor a pooling."""

    name: str
    layers: None = None
    pooling: None = None


def open_judged_vectors(
    documents: ArraySource,
    queries: ArraySource,
    qrels: str | Path | Mapping[str, Mapping[str, int]],
    *,
    id_column: str | None = None,
    document_ids: Ids = None,
    query_ids: Ids = None,
) -> JudgedRows:
    """Read vectors of queries, ids and judgements, and check that they belong together.

    Args:
        documents: Vectors of the documents.
        queries: Vectors of the queries. Those without judgements are left out.
        qrels: File of BEIR or TREC, or a mapping from queries to documents to relevance.
        id_column: Column of ids in both tables; by default `_id` or `id`. Without ids, judgements name rows by
            their numbers, counted from 0.
        document_ids, query_ids: Files or lists of ids, in place of columns.
    """
    if queries.width != documents.width:
        raise InputError(
            f"the queries have {queries.width} columns and the documents {documents.width}, expected the same width: "
            "encode both with one model."
        )
    judged = open_judgements(qrels)
    source = "the mapping" if isinstance(qrels, Mapping) else str(qrels)
    columns = [None if ids is not None else id_column for ids in (document_ids, query_ids)]
    found_documents = read_row_ids(documents, "documents", column=columns[0], ids=document_ids)
    found_queries = read_row_ids(queries, "queries", column=columns[1], ids=query_ids)
    names = list(map(str, range(documents.total))) if found_documents is None else found_documents
    asked = list(map(str, range(queries.total))) if found_queries is None else found_queries
    where = {"documents": name_vectors(documents), "queries": name_vectors(queries)}
    check_known(source, [(j.line, j.document) for j in judged], "documents", where["documents"], set(names))
    check_known(source, [(j.line, j.query) for j in judged], "queries", where["queries"], set(asked))
    by_query = group_by_query(source, judged)
    kept = [row for row, name in enumerate(asked) if name in by_query]
    judgements = {asked[row]: by_query[asked[row]] for row in kept}
    same_ids = found_documents is not None and found_queries is not None
    return JudgedRows(
        Path(where["documents"]).stem,
        names,
        judgements,
        describe_judgements(judgements, same_ids=same_ids),
        documents,
        read_all_rows(queries)[kept],
        same_ids,
    )


def read_all_rows(source: ArraySource) -> Any:
    """Read all rows into memory, (n, d)."""
    return np.concatenate([batch.layers[0] for batch in source.batches()])


def name_vectors(source: ArraySource) -> str:
    """The file of vectors, or what they are in memory."""
    return "the array" if source.paths is None else os.path.basename(source.paths[0].rstrip("/")) or source.paths[0]
