"""What the tests of studies share: texts, rows of a layer, files of pairs, and the figures of a study."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from isotrope.sources.input import Input
from isotrope.studies.result import Study
from testkit.models import WORDS, texts

TEXTS = texts(150)


def rows_and_types(model: str, layer: int) -> tuple[np.ndarray, np.ndarray]:
    source = Input(model=model, text=TEXTS, device="cpu").open()
    batches = list(source.batches())
    rows = np.concatenate([batch.layers[layer].numpy() for batch in batches]).astype(np.float64)
    return rows, np.concatenate([batch.rows.token for batch in batches])


def drawn(study: Study) -> set[str]:
    """The figures of a study, all of which could be drawn."""
    figures = [figure for part in study.parts for figure in part.figures]
    assert [figure.reason for figure in figures if figure.reason] == []
    return {figure.name for figure in figures}


def pair_files(folder: Path) -> Path:
    """STS-B and a year of two subsets, of the words that small models know."""
    rng = np.random.default_rng(0)
    (folder / "sts").mkdir()
    for name in ("sts-b", "sts12.one", "sts12.two"):
        lines = []
        for number in range(60):
            first, second = (" ".join(rng.choice(WORDS, size=6)) for _ in range(2))
            lines.append("\t".join(["g", "f", "y", str(number), f"{rng.uniform(0, 5):.2f}", first, second]))
        (folder / "sts" / f"{name}-test.csv").write_text("\n".join(lines) + "\n")
    return folder
