"""Words as the means of their tokens, against a plain loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from isotrope.sources.batch import Batch, Rows
from isotrope.sources.text.words import WordSource, continuing

NAMES = ["[CLS]", "[SEP]", "un", "##know", "##n", "cat", "."]


class Tokenizer:
    def __len__(self) -> int:
        return len(NAMES)

    def convert_ids_to_tokens(self, ids: Any) -> list[str]:
        return [NAMES[i] for i in ids]


class Source:
    """Two texts: "unknown cat." and "cat un"."""

    layers, width, unit, total = (0, 1), 3, "texts", 2

    def describe(self) -> dict[str, Any]:
        return {"rows_are": "tokens of Tokenizer"}

    loaded = type("Loaded", (), {"tokenizer": Tokenizer()})
    token = np.array([0, 2, 3, 4, 5, 6, 1, 0, 5, 2, 1])
    values = torch.from_numpy(np.random.default_rng(0).normal(size=(2, 11, 3)))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        known = Rows(
            sequence=np.repeat(np.array([4, 9], np.uint64), [7, 4]),
            token=self.token,
            position=np.append(np.arange(7), np.arange(4)),
            special=self.token < 2,
        )
        yield Batch({0: self.values[0], 1: self.values[1]}, known, {"texts": 2})


def test_words_are_the_means_of_their_tokens() -> None:
    source = WordSource(Source())  # type: ignore[arg-type]
    (batch,) = source.batches()
    for layer in (0, 1):
        rows = Source.values[layer].numpy()
        expected = [rows[1:4].mean(0), rows[4], rows[5], rows[8], rows[9]]
        assert np.allclose(batch.layers[layer], expected)
    assert batch.rows.sequence.tolist() == [4, 4, 4, 9, 9]
    types = batch.rows.token
    assert types is not None
    assert types[1] == types[3]
    assert len(set(types.tolist())) == 4
    assert source.token_names(types) == ["un ##know ##n", "cat", ".", "cat", "un"]
    assert source.describe() == {"rows_are": "words, means of tokens of Tokenizer"}


def test_a_few_tokens_with_other_marks_decide_nothing() -> None:
    """Vocabularies of web texts hold `####` beside `Ġ`."""
    names = ["Ġun", "known", "####", ".", "Ġcat", "Ġdog"]
    assert continuing(names).tolist() == [False, True, False, False, False, False]
    assert continuing(["un", "##known", ".", "##", "Ġ"]).tolist() == [False, True, False, False, False]
