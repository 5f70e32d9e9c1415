"""The same quantizers by faiss: the reference, and what the latent-geometry paper used."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, MissingExtra
from isotrope.quantization.quantized import Codes, Kind, Quantized, find_power_of_two


def quantize_additive(rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int) -> Quantized:
    """Rows, (n, d), by `faiss.LocalSearchQuantizer`, with its own settings, trained and encoded on all rows."""
    quantizer = _import_faiss().LocalSearchQuantizer(rows.shape[1], codebooks, _count_bits(size))
    quantizer.random_seed = seed
    quantizer.nperts = min(quantizer.nperts, codebooks)
    return _train_and_encode(quantizer, rows, "additive", codebooks, size, seed)


def quantize_product(rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int) -> Quantized:
    """Rows, (n, d), by `faiss.ProductQuantizer`, with its own settings, trained and encoded on all rows."""
    quantizer = _import_faiss().ProductQuantizer(rows.shape[1], codebooks, _count_bits(size))
    quantizer.cp.seed = seed
    quantizer.cp.min_points_per_centroid = 1  # fewer than its 39 it takes all the same, with a warning on every call
    return _train_and_encode(quantizer, rows, "product", codebooks, size, seed)


def _train_and_encode(
    quantizer: Any, rows: NDArray[np.floating[Any]], kind: Kind, codebooks: int, size: int, seed: int
) -> Quantized:
    """Train, encode, and put what faiss holds into our shapes."""
    faiss = _import_faiss()
    d = rows.shape[1]
    # A power of two changes no digit, and keeps the squares within float32.
    scale = find_power_of_two(rows)
    values = np.ascontiguousarray(rows / scale, dtype=np.float32)
    quantizer.train(values)
    codes: Codes = faiss.unpack_bitstrings(quantizer.compute_codes(values), codebooks, _count_bits(size)).astype(
        np.int64
    )
    if kind == "additive":
        words = faiss.vector_to_array(quantizer.codebooks).reshape(codebooks, size, d)
    else:
        width = d // codebooks
        centroids = faiss.vector_to_array(quantizer.centroids).reshape(codebooks, size, width)
        words = np.zeros((codebooks, size, d))
        for m in range(codebooks):
            words[m, :, m * width : (m + 1) * width] = centroids[m]
    settings = {"codebooks": codebooks, "size": size, "faiss": faiss.__version__}
    return Quantized(codes, words.astype(np.float64) * scale, np.zeros(d), kind, "faiss", seed, settings)


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("faiss-cpu", "quantize", "quantizing by faiss") from None
    return faiss


def _count_bits(size: int) -> int:
    bits = size.bit_length() - 1
    if 2**bits != size or bits > 16:
        raise InputError(f"faiss takes codebooks of 2, 4, 8, ... 65536 cells, got {size}; take the own engine.")
    return bits
