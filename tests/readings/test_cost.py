"""How long readings take is told in words and grows as it should; its truth is checked by `benchmarks/catalogue.py`."""

from __future__ import annotations

import pytest

from isotrope.measures import select
from isotrope.readings.cost import count_parallel_layers, estimate_seconds, estimate_seconds_after

EVERYTHING = [m for m in select("all") if m.needs != "layers"]


def test_every_kind_of_statistic_has_a_time() -> None:
    found = estimate_seconds(EVERYTHING, 20_000, 384)
    assert set(found) == {m.statistic for m in EVERYTHING}
    assert all(cost > 0 for cost in found.values())


@pytest.mark.parametrize(("n", "d"), [(40_000, 384), (20_000, 768)])
def test_more_rows_and_more_dimensions_take_longer(n: int, d: int) -> None:
    small, large = estimate_seconds(EVERYTHING, 20_000, 384), estimate_seconds(EVERYTHING, n, d)
    assert all(large[kind] > small[kind] for kind in small)


def test_settings_of_a_quantizer_are_kinds_of_their_own() -> None:
    assert len(estimate_seconds(select("quantized,quantized_8x64"), 20_000, 384)) == 4


def test_layers_share_the_cores() -> None:
    one, four = (estimate_seconds_after(select("moments"), 20_000, 384, layers) for layers in (1, 4))
    assert one < four <= 4 * one
    assert count_parallel_layers(10**6) == 1
