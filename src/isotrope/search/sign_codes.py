"""Sign codes: one bit for each dimension, searched by Hamming distance, with and without rescoring."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.search.faiss_index import Found, UnitRows, import_faiss


@dataclass(frozen=True)
class SignCodes:
    """Sign codes of rows in a binary index of faiss, and the rows themselves, which rescoring reads."""

    index: Any
    rows: UnitRows

    @property
    def bytes_per_vector(self) -> float:
        """Bytes of a code; the rows that rescoring reads need not be in memory."""
        return float(self.index.code_size)

    def search(self, queries: UnitRows, k: int, parameters: Mapping[str, int]) -> Found:
        """Find k rows for each query.

        Args:
            queries: Unit rows, (q, d).
            k: How many rows.
            parameters: `rescored`, how many times k candidates by Hamming distance are ordered by inner product with
                their own rows; without it, the order is by Hamming distance.
        """
        candidates = min(k * parameters.get("rescored", 1), len(self.rows))
        _, found = self.index.search(encode_signs(queries), candidates)
        if "rescored" not in parameters:
            return np.asarray(found)
        scores = np.einsum("qcd,qd->qc", self.rows[found], queries)
        best = np.argsort(-scores, axis=1, kind="stable")[:, :k]
        return np.asarray(np.take_along_axis(found, best, axis=1))


def encode_signs(rows: NDArray[Any]) -> NDArray[np.uint8]:
    """The signs of rows as bits, 1 for above 0, (n, d) -> (n, ⌈d/8⌉); missing bits of the last byte are 0.

    >>> encode_signs(np.array([[1.0, -1.0, 0.5]])).tolist()
    [[160]]
    """
    return np.packbits(rows > 0, axis=1)


def build_sign_codes(rows: UnitRows, value: Any, seed: int) -> SignCodes:
    """Sign codes of rows."""
    codes = encode_signs(rows)
    index = import_faiss().IndexBinaryFlat(8 * codes.shape[1])
    index.add(codes)
    return SignCodes(index, rows)
