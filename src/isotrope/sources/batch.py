"""What a source yields: rows of one or more layers, with what is known of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.compute.arrays import to_numpy
from isotrope.layers import Layer
from isotrope.sources.groups import Groups


class Types(NamedTuple):
    """Token types, ascending (k,); where each begins (k + 1,) in the rows in the order (n,) of their types."""

    ids: NDArray[np.int64]
    begin: NDArray[np.int64]
    order: NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """What is known of each row of a batch, shared by all its layers.

    Attributes:
        sequence: (n,) uint64, the stable id of the row's sequence: the same number however the input is
            split, ordered or batched. Rows of one sequence are adjacent and come in one batch. Rows that
            belong to no sequence (plain vectors) are each a sequence of their own.
        token: (n,) int64, the row's token type.
        position: (n,) int64, its place in the sequence.
        special: (n,) bool, true for tokens that the tokenizer added.
        group: (n,), value of the `group_by` column; one label for each row is taken too.
    """

    sequence: NDArray[np.uint64]
    token: NDArray[np.int64] | None = None
    position: NDArray[np.int64] | None = None
    special: NDArray[np.bool_] | None = None
    group: Groups | None = None

    def __post_init__(self) -> None:
        if self.group is not None and not isinstance(self.group, Groups):
            object.__setattr__(self, "group", Groups.of(self.group))

    def __len__(self) -> int:
        return len(self.sequence)

    def take(self, keep: NDArray[Any]) -> Rows:
        """The rows selected by a mask or an index array."""
        known: tuple[Any, ...] = (self.token, self.position, self.special, self.group)
        return Rows(self.sequence[keep], *(None if column is None else column[keep] for column in known))

    def starts(self) -> NDArray[np.int64]:
        """Index of the first row of each sequence, shape (number of sequences,)."""
        return self._starts

    # Worked out once for all layers of a batch.
    @cached_property
    def _starts(self) -> NDArray[np.int64]:
        if not len(self.sequence):
            return np.empty(0, np.int64)
        new = np.flatnonzero(self.sequence[1:] != self.sequence[:-1]) + 1
        return np.concatenate(([0], new)).astype(np.int64)

    @cached_property
    def types(self) -> Types:
        """The token types of the rows; there must be tokens."""
        assert self.token is not None
        order = np.argsort(self.token, kind="stable")
        ordered = self.token[order]
        first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(order) else order
        return Types(ordered[first], np.append(first, len(order)), order)

    @cached_property
    def by_type(self) -> sparse.csr_array:
        """Which rows are of which token type, (k, n): a product with it sums rows up by type."""
        types, n = self.types, len(self)
        return sparse.csr_array((np.ones(n), types.order, types.begin), shape=(len(types.ids), n))


@dataclass(frozen=True, slots=True)
class Batch:
    """The rows of some layers, each (n, d), numpy arrays or torch tensors of floats.

    Attributes:
        layers: The rows of each layer.
        rows: What is known of each row, shared by all layers.
        counts: What the source has to report of this batch, added up over the run, such as
            {"sequences": 32, "truncated_sequences": 1, "truncated_tokens": 40}.
    """

    layers: Mapping[Layer, Any]
    rows: Rows
    counts: Mapping[str, int] = field(default_factory=dict)

    def to_numpy(self) -> Batch:
        """Return the same batch as numpy arrays, which can go anywhere."""
        return Batch({layer: to_numpy(rows) for layer, rows in self.layers.items()}, self.rows, self.counts)
