"""Quantizers: rows as sums of few codewords, and how well and how evenly that goes.

>>> import numpy as np
>>> q = quantize(np.random.default_rng(0).normal(size=(500, 8)), "product", codebooks=4, size=16)
>>> q.codes.shape, q.codebooks.shape
((500, 4), (4, 16, 8))
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_matrix
from isotrope.errors import InputError, Undefined
from isotrope.quantization.quantized import Engine, Kind, Quantized

__all__ = ["Engine", "Kind", "Quantized", "check_settings", "quantize"]

#: Cells of all codebooks together, at most: their counts by pairs are a table that is held and solved.
_MOST = 16_384

#: What float64 and float32 rows may hold at most, so that squares and differences stay within their type.
_LARGEST, _LARGEST_FLOAT32 = 1e140, 1e30


def quantize(
    rows: NDArray[Any],
    kind: Kind = "additive",
    *,
    codebooks: int = 4,
    size: int = 256,
    seed: int = 0,
    engine: Engine = "own",
) -> Quantized:
    """Train a quantizer on rows and encode each row by one codeword of each codebook.

    Args:
        rows: (n, d).
        kind: "additive" (sums of codewords of full width) or "product" (one codeword for each d / M coordinates).
        codebooks: Number M of codebooks.
        size: Number of cells of each codebook.
        seed: Seed of the training.
        engine: "own", or "faiss" as the reference.

    Raises:
        Undefined: If there are fewer distinct rows than cells, or the width cannot be divided among the codebooks.

    References:
        Martinez, Zakhmi, Hoos and Little 2018 (LSQ++); Jégou, Douze and Schmid 2011 (product)
    """
    if kind not in get_args(Kind) or engine not in get_args(Engine):
        known = ", ".join(f"{e} {k}" for e in get_args(Engine) for k in get_args(Kind))
        raise InputError(f"there is no quantizer {engine!r} {kind!r}; there are: {known}.")
    check_settings(codebooks, size)
    if seed < 0:
        raise InputError(f"expected a seed from 0, got {seed}.")
    rows = _check_rows(np.asarray(rows))
    _check_distinct(rows, size)
    if kind == "product" and rows.shape[1] % codebooks:
        raise Undefined(f"the width {rows.shape[1]} cannot be divided among {codebooks} codebooks")
    if engine == "faiss":
        from isotrope.quantization.faiss_reference import quantize_by_faiss

        return quantize_by_faiss(rows, codebooks, size, seed, kind=kind)
    if kind == "additive":
        from isotrope.quantization.additive import quantize_additive

        return quantize_additive(rows, codebooks, size, seed)
    from isotrope.quantization.kmeans import quantize_product

    return quantize_product(rows, codebooks, size, seed)


def check_settings(codebooks: int, size: int) -> None:
    """Refuse what no quantizer can be."""
    if not (1 <= codebooks <= _MOST and 2 <= size <= _MOST and codebooks * size <= _MOST):
        raise InputError(
            f"got {codebooks} codebooks of {size} cells; expected at least 1 codebook of at least 2 cells, "
            f"and no more than {_MOST:,} cells in all."
        )


def _check_rows(rows: NDArray[Any]) -> NDArray[np.floating[Any]]:
    """Rows as float32 or float64, none so large that its square or a sum leaves that type."""
    rows = to_matrix(rows)
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float32 if rows.dtype == np.float16 else np.float64)
    largest = max(float(rows.max(initial=0)), -float(rows.min(initial=0)))
    if not largest < _LARGEST:
        raise InputError(
            f"the rows to quantize hold NaN, infinity or numbers beyond {_LARGEST:g}; leave them out first."
        )
    return rows.astype(np.float64) if largest > _LARGEST_FLOAT32 else rows


def _check_distinct(rows: NDArray[np.floating[Any]], size: int) -> None:
    """Refuse fewer different rows than cells: each could have a cell of its own, and chance would say which."""
    seen: set[bytes] = set()
    for row in rows:
        seen.add((row + 0.0).tobytes())  # so that -0 and 0 are the same
        if len(seen) == size:
            return
    what = f"{len(rows):,} rows" if len(seen) == len(rows) else f"{len(seen):,} different rows among {len(rows):,}"
    raise Undefined(f"{what} are fewer than the {size} cells of a codebook, so nothing is left to measure")
