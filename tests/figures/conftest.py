"""Runs whose rows the tests know, so that figures can be held against them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.readings.selected_measures import resolve_measures
from isotrope.runs.run import Run
from isotrope.scanner import scan_source
from isotrope.sources.batch import Rows
from testkit.known_run import HOSTILE, KnownRun, KnownSource


@pytest.fixture(scope="session")
def known(tmp_path_factory: pytest.TempPathFactory) -> KnownRun:
    """A run with everything that figures need."""
    rng = np.random.default_rng(3)
    lengths = rng.integers(5, 15, size=250)
    n = int(lengths.sum())
    sequence = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    position = np.concatenate([np.arange(length) for length in lengths])
    token = np.minimum(rng.geometric(0.06, size=n), 40) - 1
    special = np.zeros(n, dtype=bool)
    spread = np.array([4.0, 2.0, 1.5, 1.0, 0.5, 0.25])
    words = rng.normal(size=(40, 6)) * spread
    rows = {
        layer: words[token] + rng.normal(size=(n, 6)) * (0.3 + 0.3 * layer) + np.array([2.0 * layer, *[0.0] * 5])
        for layer in range(4)
    }
    names = [*HOSTILE, *(f"##word{i}" for i in range(40 - len(HOSTILE)))]
    source = KnownSource(rows, Rows(sequence, token.astype(np.int64), position, special), names)
    folder = tmp_path_factory.mktemp("known") / "run"
    scan_source(source, resolve_measures("moments,tokens,sequences", sample=20_000), run=Run(folder))
    return KnownRun(folder, source)


@pytest.fixture(scope="session")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of plain vectors: one layer, no tokens, no sequences."""
    import isotrope

    folder = tmp_path_factory.mktemp("vectors") / "run"
    isotrope.scan(vectors=np.random.default_rng(0).normal(size=(300, 5)) + 1.0, output=folder)
    return folder
