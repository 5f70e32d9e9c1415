"""The quantized measures by the number of codebooks and cells, which the paper leaves to others (Limitations)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrope.drawing.style import COLOURS, GREY, PAGE_WIDTH
from isotrope.errors import InputError
from isotrope.quantization import Kind, check_settings
from isotrope.studies.figures import StudyFigure, make_figure
from isotrope.studies.latent_geometry.measures import compute_published, train_cells
from isotrope.studies.latent_geometry.published import TABLE_2
from isotrope.studies.latent_geometry.regression import correlate
from isotrope.studies.result import Claim, Table, rank_correlation
from isotrope.studies.runner import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The measures of quantized cells, without the name of the quantizer.
QUANTIZED = tuple(name.removesuffix("_additive") for name in TABLE_2 if name.endswith("_additive"))

_KINDS: tuple[Kind, ...] = ("additive", "product")


def parse_settings(names: Sequence[str]) -> list[tuple[int, int]]:
    """Parse numbers of codebooks and cells.

    >>> parse_settings(["2x64", "4x256"])
    [(2, 64), (4, 256)]
    """
    settings = []
    for name in names:
        codebooks, _, size = name.partition("x")
        if not (codebooks.isdecimal() and size.isdecimal()):
            raise InputError(f"{name!r} is no number of codebooks and cells; write them as 4x256.")
        check_settings(int(codebooks), int(size))
        if int(size) & (int(size) - 1):
            raise InputError(f"the quantizer of the paper takes 2, 4, 8, ... cells, got {size}.")
        settings.append((int(codebooks), int(size)))
    return settings


def measure_settings(
    rows: NDArray[np.floating[Any]], settings: Sequence[tuple[int, int]], *, seed: int = 0
) -> list[dict[str, Any]]:
    """Measure rows, (n, d), by quantizers of each number of codebooks and cells; NaN where one cannot be trained."""
    found = []
    for codebooks, size in settings:
        for kind in _KINDS:
            cells = train_cells(rows, kind, codebooks, size, seed=seed)
            row: dict[str, Any] = {"quantizer": kind, "codebooks": codebooks, "cells": size}
            for name in QUANTIZED:
                row[name] = math.nan if cells is None else compute_published(f"{name}_{kind}", cells)
            found.append(row)
    return found


def compare_settings(model: str, measured: pd.DataFrame) -> Results:
    """How each measure goes with the score and with the share of noise, by the number of codebooks and cells.

    Args:
        model: the name of the model.
        measured: rows of `measure_settings` of all noisy models, with the columns `level` and, where they were scored,
            `glue`.
    """
    rows = []
    for (kind, codebooks, size), group in measured.groupby(["quantizer", "codebooks", "cells"], sort=False):
        for name in QUANTIZED:
            row: dict[str, Any] = {"measure": name, "quantizer": kind, "codebooks": codebooks, "cells": size}
            row |= correlate(group, name) if "glue" in group else {"r": math.nan, "low": math.nan, "high": math.nan}
            rows.append(row | {"with_level": rank_correlation(group["level"], group[name])})
    frame = pd.DataFrame(rows)
    tables = [
        Table("sweep", f"Each quantized measure of {model} by codebooks and cells: r with the score, and noise", frame),
        Table("measured", f"Quantized measures of the noisy models of {model} by codebooks and cells", measured),
    ]
    patchiness = frame[(frame["measure"] == QUANTIZED[0]) & (frame["quantizer"] == "additive")]
    column = "r" if frame["r"].notna().any() else "with_level"
    text = (
        f"{'r' if column == 'r' else 'rank correlation'} of the additive point patchiness of {model} with the "
        f"{'score' if column == 'r' else 'share of noise'} is {patchiness[column].min():.2f} to "
        f"{patchiness[column].max():.2f} over {len(patchiness)} numbers of codebooks and cells."
    )
    return Results(tables, [Claim("note", text, "Limitations", model=model)], [_make_figure(frame, column)])


def _make_figure(frame: pd.DataFrame, column: str) -> StudyFigure:
    what = "Pearson's r with the score" if column == "r" else "rank correlation with the share of noise"
    title = f"Quantized measures by codebooks and cells (codebooks x cells): {what}."
    return make_figure("sweep", title, partial(_draw, frame, column, what), width=PAGE_WIDTH, height=2.8)


def _draw(frame: pd.DataFrame, column: str, what: str, figure: Figure) -> None:
    for axes, kind in zip(figure.subplots(1, 2, sharey=True), _KINDS, strict=True):
        of_kind = frame[frame["quantizer"] == kind]
        settings = [f"{a}x{b}" for a, b in dict.fromkeys(zip(of_kind["codebooks"], of_kind["cells"], strict=True))]
        for number, (name, group) in enumerate(of_kind.groupby("measure", sort=False)):
            style = {"color": COLOURS[number % len(COLOURS)], "linestyle": "-" if number < len(COLOURS) else "--"}
            label = str(name).replace("_", " ") if kind == "additive" else None
            axes.plot(range(len(group)), group[column].astype(float), marker=".", label=label, **style)
        axes.axhline(0.0, color=GREY, linewidth=0.6)
        axes.set_xticks(range(len(settings)), settings, rotation=60)
        axes.set_title(f"{kind} quantizer")
    figure.axes[0].set_ylabel(what)
    figure.legend(loc="outside lower center", ncols=4)
