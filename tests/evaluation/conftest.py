"""Sets of sentence pairs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from testkit.models import WORDS


@pytest.fixture
def write_set(tmp_path: Path) -> Callable[..., Path]:
    """write_set("sts12.a", 40): random pairs, the more words in common the higher their score; gives the folder."""
    folder = tmp_path / "sets"
    folder.mkdir()

    def write(name: str, pairs: int, *, file: str = "PAD", score: str | None = None, append: bool = False) -> Path:
        rng = np.random.default_rng([*name.encode(), pairs, *file.encode()])
        lines = []
        for i in range(pairs):
            first = list(rng.choice(WORDS, 6))
            common = rng.integers(0, 7 if pairs > 1 else 4)
            second = first[:common] + list(rng.choice(WORDS, 6 - common))
            cells = ["PAD", file, "PAD", str(i), score or f"{common * 5 / 6:.3f}", " ".join(first), " ".join(second)]
            lines.append("\t".join(cells) + "\n")
        path = folder / f"{name}-test.csv"
        before = path.read_text() if append else ""
        path.write_text(before + "".join(lines))
        return folder

    return write
