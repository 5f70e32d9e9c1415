"""The sweep over codebooks and cells: each value is that of the measure of that name."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from isotrope.errors import InputError
from isotrope.measures import get
from isotrope.quantization.cells import Cells
from isotrope.statistics import Points, prepare_rows
from isotrope.studies.latent_geometry.sweep import QUANTIZED, compare_settings, measure_settings, parse_settings
from testkit.clustered import clustered


def test_values_are_those_of_the_measures_of_that_name() -> None:
    rows = clustered(400, 8)
    found = measure_settings(rows, [(2, 16), (4, 32)], seed=1)
    assert [(row["quantizer"], row["codebooks"], row["cells"]) for row in found] == [
        ("additive", 2, 16), ("product", 2, 16), ("additive", 4, 32), ("product", 4, 32)
    ]  # fmt: skip
    for row in found:
        cells = Cells.of(
            Points.of(prepare_rows(rows)), row["quantizer"], row["codebooks"], row["cells"], 1, engine="faiss"
        )
        for name in ("point_patchiness", "reconstruction_error"):
            measure = get(f"{name}_{row['quantizer']}_{row['codebooks']}x{row['cells']}")
            variant = "published" if "published" in measure.variants else "definition"
            assert row[name] == pytest.approx(measure(cells, variant=variant))


def test_what_cannot_be_trained_has_no_value() -> None:
    found = measure_settings(clustered(400, 8), [(3, 16)])
    assert math.isfinite(found[0]["point_patchiness"])
    assert math.isnan(found[1]["point_patchiness"])  # a width of 8 cannot be divided among 3 codebooks


@pytest.mark.parametrize("name", ["4", "4x", "x256", "4x100", "0x16", "4x1"])
def test_settings_that_no_quantizer_can_have_are_refused(name: str) -> None:
    with pytest.raises(InputError):
        parse_settings([name])


def test_correlations_by_setting_are_those_of_numpy() -> None:
    rng, rows = np.random.default_rng(0), []
    for level in range(6):
        for codebooks in (2, 4):
            row = {
                "quantizer": "additive",
                "codebooks": codebooks,
                "cells": 16,
                "level": level / 10,
                "glue": 1 - level / 7,
            }
            rows.append(row | {"glue": 1 - level / 7} | {name: rng.normal() for name in QUANTIZED})
    measured = pd.DataFrame(rows)
    tables, claims, figures = compare_settings("one", measured)
    of_two = measured[measured["codebooks"] == 2]
    found = tables[0].frame.set_index(["measure", "codebooks"])
    expected = np.corrcoef(of_two["point_patchiness"], of_two["glue"])[0, 1]
    assert found.loc[("point_patchiness", 2), "r"] == pytest.approx(expected)
    assert [claim.outcome for claim in claims] == ["note"]
    assert figures[0].draw().axes
    without = compare_settings("one", measured.drop(columns="glue")).tables[0].frame
    assert without["r"].isna().all()
    assert without["with_level"].notna().all()
