"""What an endpoint answers, right and wrong."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.endpoint.answer import parse_answer

ROWS = np.random.default_rng(3).normal(size=(3, 5)).astype(np.float32)


def items(*numbers: int, rows: Any = ROWS) -> list[dict[str, Any]]:
    return [{"index": number, "embedding": [float(value) for value in rows[number]]} for number in numbers]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_the_index_decides_and_not_the_order(order: tuple[int, ...]) -> None:
    found = parse_answer({"data": items(*order)}, 3)
    assert np.array_equal(np.stack([found[i] for i in range(3)]), ROWS)


def test_without_an_index_the_order_decides_where_the_count_is_right() -> None:
    plain = [{"embedding": item["embedding"]} for item in items(0, 1, 2)]
    assert np.array_equal(parse_answer({"data": plain}, 3)[2], ROWS[2])
    assert parse_answer({"data": plain[:2]}, 3) == {}
    with pytest.raises(InputError, match="3 embeddings for 2 texts"):
        parse_answer({"data": plain}, 2)


def test_base64_is_float32_in_little_endian() -> None:
    coded = [{"index": 0, "embedding": base64.b64encode(ROWS[0].astype("<f4").tobytes()).decode()}]
    assert np.array_equal(parse_answer({"data": coded}, 1)[0], ROWS[0])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1e300, None])
def test_vectors_that_are_not_finite_are_left_out(bad: float | None) -> None:
    data = items(0, 1)
    data[1]["embedding"][2] = bad
    assert list(parse_answer({"data": data}, 2)) == [0]


def test_missing_items_are_left_out() -> None:
    assert list(parse_answer({"data": items(2)}, 3)) == [2]
    assert parse_answer({"data": []}, 3) == {}


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ({"data": items(0, 1, 1)}, "index 1 more than once"),
        ({"data": [{"index": 7, "embedding": [1.0]}]}, "index 7, expected 0 to 2"),
        ({"data": [{"index": "0", "embedding": [1.0]}]}, "index '0'"),
        ({"data": [{"index": 0, "embedding": [1.0]}, {"index": 1, "embedding": [1.0, 2.0]}]}, "1 and 2 dimensions"),
        ({"data": [{"index": 0, "embedding": [[1.0], [2.0]]}]}, "several vectors for one text"),
        ({"data": [{"index": 0, "embedding": []}]}, "without numbers"),
        ({"data": [{"index": 0}]}, "without numbers|not a list of numbers"),
        ({"data": [{"index": 0, "embedding": "?"}]}, "not a list of numbers"),
        ({"data": [{"index": 0, "embedding": ["a"]}]}, "not a list of numbers"),
        ({"embedding": [1.0]}, "no list 'data'"),
        ([1.0], "no list 'data'"),
        ({"data": [1.0]}, "no list 'data'"),
    ],
)
def test_what_cannot_be_right_is_said(document: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_answer(document, 3)
