"""Samples of sequences, and how near they are to the corpus."""

from __future__ import annotations

import pytest

from isotrope.errors import InputError
from isotrope.studies.representative_sample import draw_samples, split_sequences


def test_sentences_of_3_to_50_words_once() -> None:
    long = " ".join(["word"] * 51)
    found = split_sequences([" = = A heading = = ", "a b c . d e f ? a b c . x y .", long, "d e f ?"])
    assert found == ["a b c .", "d e f ?", "x y ."]


def test_distance_by_hand() -> None:
    texts = ["a b c", "a b c d"]
    drawn = draw_samples(texts, 1)
    assert {tuple(s.texts) for s in drawn} <= {("a b c",), ("a b c d",)}
    short = next(s for s in drawn if s.texts == ["a b c"])
    # Shares of words 1/3 each beside 2/7, 2/7, 2/7, 1/7; of pairs 1/2 each beside 2/5, 2/5, 1/5; of lengths 1 and 1/2.
    assert short.words == pytest.approx(1 / 7)
    assert short.pairs == pytest.approx(1 / 5)
    assert short.lengths == pytest.approx(1 / 2)
    assert [s.distance for s in drawn] == sorted(s.distance for s in drawn)


def test_the_whole_corpus_is_at_no_distance() -> None:
    texts = [f"word{i} and other{i}" for i in range(9)]
    assert draw_samples(texts, 9)[0].distance == 0
    with pytest.raises(InputError, match="9 different sequences"):
        draw_samples(texts, 10)
