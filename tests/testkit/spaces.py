"""A run of tokens without a model: four layers that drift further and further, and token names that mean harm."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.layers import Layer
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Source

HOSTILE = [
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 2'>",
    "\"quoted\" & 'quoted'",
    "\u202eright to left\u202c",
    "🧨👩‍👩‍👧",
    "x" * 10_000,
    "bell\x07 and \u2028 line",
    "=HYPERLINK(1)",
    "\u0120spaced",
]

WIDTH, LAYERS = 12, 4


class Tokens(Source):
    """60 sequences of 20 tokens; layer k has a common mean of length 2k."""

    unit = "texts"
    total = 60
    width = WIDTH

    def __init__(self) -> None:
        self.layers: list[Layer] = list(range(LAYERS))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        rng = np.random.default_rng(4)
        token = np.minimum(rng.geometric(0.12, size=1200) - 1, 39)
        rows = rng.normal(size=(1200, WIDTH)) * np.arange(1, WIDTH + 1) ** -0.5
        mean = np.ones(WIDTH) / np.sqrt(WIDTH)
        known = Rows(
            np.repeat(np.arange(60, dtype=np.uint64), 20), token, np.tile(np.arange(20), 60), np.zeros(1200, dtype=bool)
        )
        layers = {k: rows + 2.0 * k * mean for k in range(LAYERS)}
        if start == 0:
            yield Batch(layers, known, {"texts": 60})

    def describe(self) -> dict[str, Any]:
        corpus = {"name": "<b>corpus</b>", "kind": "test"}
        return {"kind": "model", "model": "<i>model</i>", "revision": None, "width": WIDTH, "corpus": corpus}

    def token_names(self, tokens: NDArray[np.int64]) -> list[str]:
        return [HOSTILE[i] if i < len(HOSTILE) else f"word{i}" for i in tokens]
