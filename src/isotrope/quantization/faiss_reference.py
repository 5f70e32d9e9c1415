"""The same quantizers by faiss: the reference, and what the latent-geometry paper used."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, MissingExtra
from isotrope.quantization.quantized import Codes, Engine, Kind, Quantized, find_power_of_two, widen_codewords
from isotrope.version import __version__


def choose_engine() -> tuple[Engine, str]:
    """The engine of the latent-geometry paper where it is installed, else our own, and its name with its version."""
    if find_spec("faiss") is None:
        return "own", f"isotrope {__version__}"
    import faiss

    return "faiss", f"faiss {faiss.__version__}"


def quantize_by_faiss(
    rows: NDArray[np.floating[Any]], codebooks: int, size: int, seed: int, *, kind: Kind
) -> Quantized:
    """Rows, (n, d), by `LocalSearchQuantizer` or `ProductQuantizer` with its own settings, trained on all rows."""
    try:
        import faiss
    except ImportError:
        raise MissingExtra("faiss-cpu", "quantize", "quantizing by faiss") from None
    bits = size.bit_length() - 1
    if 2**bits != size or bits > 16:
        raise InputError(f"faiss takes codebooks of 2, 4, 8, ... 65536 cells, got {size}; take the own engine.")
    d = rows.shape[1]
    quantizer: Any
    if kind == "additive":
        quantizer = faiss.LocalSearchQuantizer(d, codebooks, bits)
        quantizer.random_seed = seed
        quantizer.nperts = min(quantizer.nperts, codebooks)
    else:
        quantizer = faiss.ProductQuantizer(d, codebooks, bits)
        quantizer.cp.seed = seed
        quantizer.cp.min_points_per_centroid = 1  # fewer than its 39 it takes all the same, with a warning on each call
    # A power of two changes no digit, and keeps the squares within float32.
    scale = find_power_of_two(rows)
    values = np.ascontiguousarray(rows / scale, dtype=np.float32)
    quantizer.train(values)
    codes: Codes = faiss.unpack_bitstrings(quantizer.compute_codes(values), codebooks, bits).astype(np.int64)
    learnt = faiss.vector_to_array(quantizer.codebooks if kind == "additive" else quantizer.centroids)
    words = learnt.reshape(codebooks, size, -1).astype(np.float64)
    if kind == "product":
        words = widen_codewords(words)
    settings = {"codebooks": codebooks, "size": size, "faiss": faiss.__version__}
    return Quantized(codes, words * scale, np.zeros(d), kind, "faiss", seed, settings)
