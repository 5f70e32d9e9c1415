"""The ids of all rows of vectors, read at once: for judgements and labels that name rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from isotrope.sources.vectors.name_columns import ID_NAMES, open_vector_names
from isotrope.sources.vectors.source import ArraySource

#: Ids of vectors: a column beside them, a file (`FILE`, or `FILE:COLUMN` of a table), or a list.
Ids: TypeAlias = str | Path | Sequence[object] | None


def read_row_ids(source: ArraySource, ids: Ids = None) -> list[str] | None:
    """Read the ids of all rows, and check that each row has one of its own.

    Args:
        source: The vectors.
        ids: Where the ids are; by default in a column `_id` or `id` beside the vectors.

    Returns:
        The ids, None where none are named and there is no such column.

    Examples:
        >>> import numpy as np
        >>> read_row_ids(ArraySource(np.ones((2, 3))), ["a", 7])
        ['a', '7']
    """
    names = open_vector_names(source, _find_usual(source) if ids is None else ids, None)
    if names is None:
        return None
    names.check()
    return names.read_ids()


def choose_query_ids(queries: ArraySource, of_documents: Ids, of_queries: Ids) -> Ids:
    """Choose where the ids of queries are: where the user says, else in a column of the name that documents have."""
    if of_queries is not None:
        return of_queries
    beside = queries.columns
    return of_documents if beside is not None and of_documents in beside.names else None


def _find_usual(source: ArraySource) -> str | None:
    """The column beside vectors that holds ids by its name."""
    beside = source.columns
    return None if beside is None else next((name for name in ID_NAMES if name in beside.names), None)
