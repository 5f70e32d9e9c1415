"""Writes docs/finite_samples.md: how every measure of rows moves with their number. python docs/finite_samples.py"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.measures import MEASURES, Measure
from isotrope.quantization.cells import Cells
from isotrope.statistics import Image, Moments, Points, prepare_rows

NUMBERS = (250, 1_000, 4_000, 16_000)
D, SEEDS = 64, 5
CODEBOOKS, SIZE = 4, 64

HEAD = f"""# How measures move with the number of rows

Two spaces of {D} dimensions, drawn {SEEDS} times at each number of rows n: mean over draws ± their standard deviation.
Isotropic rows are N(0, I/{D}). The falling spectrum has variances proportional to 1/j, the same total, and a mean as
long as its spread. A measure whose numbers differ from column to column by more than the ± depends on n: compare it at
equal n. `lsds` compares the rows with themselves after whitening. Cells are those of {CODEBOOKS} codebooks of {SIZE}.
Written by `docs/finite_samples.py`.
"""


def isotropic(n: int, rng: np.random.Generator) -> np.ndarray:
    return rng.standard_normal((n, D)) / np.sqrt(D)


def falling(n: int, rng: np.random.Generator) -> np.ndarray:
    spectrum = 1.0 / np.arange(1, D + 1)
    mean = np.random.default_rng(0).standard_normal(D)
    return rng.standard_normal((n, D)) * np.sqrt(spectrum / spectrum.sum()) + mean / np.linalg.norm(mean)


SPACES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "Isotropic rows": isotropic,
    "A falling spectrum and a mean": falling,
}


def whitened(rows: np.ndarray) -> np.ndarray:
    centred = rows - rows.mean(axis=0)
    u, _, v = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(u @ v)


def values(measures: list[Measure], rows: np.ndarray) -> list[float]:
    """Each measure of one draw; what several of them need is worked out once."""
    points = Points.of(prepare_rows(rows))
    image = Image(points, Points.of(prepare_rows(whitened(rows))))
    statistics: dict[str, Any] = {"moments": Moments.of(prepare_rows(rows)), "sample": points, "image": image}
    statistics |= {kind: Cells.of(points, kind, CODEBOOKS, SIZE) for kind in ("additive", "product")}
    return [m(statistics[m.parameters["kind"] if m.needs == "cells" else m.needs]) for m in measures]


def table(measures: list[Measure], space: Callable[[int, np.random.Generator], np.ndarray]) -> list[str]:
    """The lines of one table."""
    drawn = [[values(measures, space(n, np.random.default_rng([n, seed]))) for seed in range(SEEDS)] for n in NUMBERS]
    found = np.array(drawn)
    lines = [f"| measure | {' | '.join(f'n = {n:,}' for n in NUMBERS)} |", f"|---|{'---|' * len(NUMBERS)}"]
    for k, m in enumerate(measures):
        cells = (f"{x.mean():.4g} ± {x.std(ddof=1):.1g}" for x in found[:, :, k])
        lines.append(f"| `{m.name}` | {' | '.join(cells)} |")
    return lines


def main() -> None:
    measures = [m for m in MEASURES if m.needs in ("moments", "sample", "image", "cells")]
    lines = [HEAD]
    for title, space in SPACES.items():
        lines += [f"## {title}", "", *table(measures, space), ""]
    Path(__file__).with_suffix(".md").write_text("\n".join(lines), encoding="utf-8")


if __name__ == "__main__":
    main()
