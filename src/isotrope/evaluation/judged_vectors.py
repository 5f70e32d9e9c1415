"""Sets of vectors: documents and queries that are encoded already, their ids, and judgements."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from isotrope.errors import InputError
from isotrope.evaluation.judged_rows import JudgedRows
from isotrope.evaluation.judgements import check_known, describe_judgements, group_by_query, open_judgements
from isotrope.sources.input import Input
from isotrope.sources.vectors.row_ids import Ids, choose_query_ids, read_row_ids
from isotrope.sources.vectors.source import ArraySource

#: Judgements: a file, or the relevance of documents by the ids of queries and documents.
Qrels: TypeAlias = str | Path | Mapping[str, Mapping[str, int]] | None


@dataclass(frozen=True)
class VectorSystem:
    """Vectors as an evaluated system: they have a name, and neither layers nor a pooling."""

    name: str
    layers: None = None
    pooling: None = None


@dataclass(frozen=True, eq=False)
class VectorSet:
    """Vectors of documents, and of queries where there are any, with what says which belong together.

    Attributes:
        documents: Vectors of the documents.
        queries: Vectors of the queries, None without any.
        qrels: File of BEIR or TREC, or a mapping from queries to documents to relevance; None without judgements.
        id_column: Ids of the documents: a column beside them, a file or a list; by default `_id` or `id`. Without ids,
            judgements name rows by their numbers, counted from 0.
        query_id_column: The same for queries; by default a column of the same name as that of the documents.
    """

    documents: ArraySource
    queries: ArraySource | None = None
    qrels: Qrels = None
    id_column: Ids = None
    query_id_column: Ids = None

    def __post_init__(self) -> None:
        if self.queries is not None and self.queries.width != self.documents.width:
            raise InputError(
                f"the queries have {self.queries.width} columns and the documents {self.documents.width}, expected the "
                "same width: encode both with one model."
            )

    @property
    def name(self) -> str:
        """The file of the documents, or what they are in memory."""
        return _name_vectors(self.documents)

    def read_judged(self) -> JudgedRows:
        """Read queries, ids and judgements, and check that they belong together; queries without any are left out."""
        if self.queries is None or self.qrels is None:
            raise InputError("got --qrels without --queries; give the vectors of the judged queries.")
        judged = open_judgements(self.qrels)
        source = "the mapping" if isinstance(self.qrels, Mapping) else str(self.qrels)
        documents = read_row_ids(self.documents, self.id_column)
        queries = read_row_ids(self.queries, choose_query_ids(self.queries, self.id_column, self.query_id_column))
        names = list(map(str, range(self.documents.total))) if documents is None else documents
        asked = list(map(str, range(self.queries.total))) if queries is None else queries
        check_known(source, [(j.line, j.document) for j in judged], "documents", self.name, set(names))
        check_known(source, [(j.line, j.query) for j in judged], "queries", _name_vectors(self.queries), set(asked))
        by_query = group_by_query(source, judged)
        kept = [row for row, name in enumerate(asked) if name in by_query]
        judgements = {asked[row]: by_query[asked[row]] for row in kept}
        same_ids = documents is not None and queries is not None
        return JudgedRows(
            Path(self.name).stem,
            names,
            judgements,
            describe_judgements(judgements, same_ids=same_ids),
            self.documents,
            read_all_rows(self.queries)[kept],
            same_ids,
        )

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        sources = [source for source in (self.documents, self.queries) if source is not None]
        qrels = None if self.qrels is None or isinstance(self.qrels, Mapping) else str(self.qrels)
        return {"vectors": [source.describe() for source in sources], "qrels": qrels}


def open_vectors(reading: Input, vectors: Any) -> ArraySource:
    """Open vectors, as a source that can be read several times; reading: how they are read."""
    source = replace(reading, vectors=vectors, precision="fast").open()
    assert isinstance(source, ArraySource)
    return source


def read_all_rows(source: ArraySource) -> Any:
    """Read all rows into memory, (n, d)."""
    return np.concatenate([batch.layers[0] for batch in source.batches()])


def _name_vectors(source: ArraySource) -> str:
    """The file of vectors, or what they are in memory."""
    return "the array" if source.paths is None else os.path.basename(source.paths[0].rstrip("/")) or source.paths[0]
