"""The page on limits computes what it says: bytes of real statistics, and the tree against its closed form."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from isotrope.sources.batch import Rows
from isotrope.statistics import TokenStatistics, block


@pytest.fixture(scope="module")
def scale() -> ModuleType:
    spec = spec_from_file_location("scale", Path(__file__).parents[1] / "docs/scale.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("d", [16, 100])
def test_bytes_are_those_of_real_statistics(d: int, scale: ModuleType) -> None:
    real = scale.summary(d, 500, sample=300)
    tokens = TokenStatistics.of(
        block(np.ones((60, d), np.float32), Rows(np.arange(60, dtype=np.uint64), np.arange(60) % 20))
    )
    said = scale.bytes_of(d, sample=300)
    assert said["moments"] == scale.size(real.moments)
    assert said["sample"] == scale.size(real.sample) - real.sample.arrays()["facts"].nbytes
    assert scale.bytes_of(d, types=20)["tokens"] == scale.size(tokens)


@pytest.mark.parametrize("fan", [2, 8, 32])
def test_without_chance_the_simulation_is_the_closed_form(fan: int, scale: ModuleType) -> None:
    rates = scale.Rates(1e-9, 1e-12, 3e-10, 2e-10)
    found = scale.simulated(1_000, 20_000, 0.5, 10**8, rates, fan=fan, slow=0.0, fail=0.0)
    assert found.retried == 0
    assert found.sent == 999 * 10**8
    assert found.after == pytest.approx(scale.tree_seconds(1_000, fan, 10**8, rates))
    assert found.seconds == pytest.approx(20 * 0.5 + found.after)


def test_what_is_lost_is_done_again(scale: ModuleType) -> None:
    rates = scale.Rates(1e-9, 1e-12, 3e-10, 2e-10)
    plain = scale.simulated(100, 5_000, 1.0, 10**6, rates, slow=0.0, fail=0.0)
    some = scale.simulated(100, 5_000, 1.0, 10**6, rates, slow=0.0, fail=0.05)
    assert 150 < some.retried < 400
    assert plain.seconds < some.seconds < plain.seconds + 0.05 * 50 + 3


def test_the_tree_gives_what_a_line_gives(scale: ModuleType) -> None:
    difference, same = scale.merged_really(workers=200)
    assert difference < 1e-12
    assert same


def test_the_page_says_what_is_measured(scale: ModuleType) -> None:
    text = scale.page(scale.Rates(4e-9, 2e-11, 7e-10, 7e-10))
    for words in ("Measured on one core", "computed", "Simulated", "A billion vectors of 768", "80 layers of 8,192"):
        assert words in text
    assert "1,000" in text
