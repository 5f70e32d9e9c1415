"""Rows like those of a real layer: clusters of uneven size, a falling spectrum, a common mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def clustered(n: int, d: int, seed: int = 0) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    spread = 1 / np.sqrt(np.arange(1, d + 1))
    centres = rng.standard_normal((n // 20, d)) * spread
    shares = 1 / np.arange(1, len(centres) + 1)  # Zipf's law, as of token types
    cells = rng.choice(len(centres), n, p=shares / shares.sum())
    return (3 + centres[cells] + 0.5 * rng.standard_normal((n, d)) * spread).astype(np.float32)
