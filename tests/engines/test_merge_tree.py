"""The order of sums: by the number of shards alone, and the same for whoever goes on from a whole."""

from __future__ import annotations

import pytest

from isotrope.engines.ray.merge_tree import FAN, Tree, count_levels


def _joined(*those: str) -> str:
    return f"({''.join(those)})"


@pytest.mark.parametrize("shards", [1, 4, 17, 63, 64, 65, 200, 1_024])
@pytest.mark.parametrize("depth", [2, 3])
def test_going_on_from_a_whole_gives_the_same(shards: int, depth: int) -> None:
    parts = [f"{number}," for number in range(shards)]
    tree = Tree(_joined, depth)
    kept = [(number + 1, tree.whole) for number, part in enumerate(parts) if tree.add(part)]
    result = tree.finish()
    assert result is not None
    assert [part for part in result.replace("(", "").replace(")", "").split(",") if part] == list(
        map(str, range(shards))
    )
    for done, whole in kept:
        assert done % FAN**depth == 0
        again = Tree(_joined, depth, whole)
        for part in parts[done:]:
            again.add(part)
        assert again.finish() == result


@pytest.mark.parametrize("shards", [1_024, 1_025, 5_000, 20_000, 400_000])
def test_the_whole_is_added_to_a_bounded_number_of_times(shards: int) -> None:
    tree = Tree(lambda *those: 0, count_levels(shards))
    grown = sum([tree.add(1) for _ in range(shards)])
    assert 12 <= grown <= 64
    assert tree.finish() == 0
