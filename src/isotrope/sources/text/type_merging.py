"""Token types of a vocabulary that differ only by the mark for the place of a token in a word."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Marks of tokens that continue a word (WordPiece), and of those that begin one (byte-level BPE, SentencePiece).
CONTINUES, BEGINS = "##", ("Ġ", "▁")


def find_mark(names: Collection[str]) -> str | None:
    """Find the mark that most tokens of a vocabulary carry, None where none does.

    Vocabularies of texts from the web hold tokens such as `####`, so that a few marked tokens decide nothing.

    >>> find_mark(["un", "##known", "##ing"]), find_mark(["Ġun", "Ġknown", "###"]), find_mark(["a", "b"])
    ('##', 'Ġ', None)
    """
    counts = {mark: sum(name.startswith(mark) and name != mark for name in names) for mark in (CONTINUES, *BEGINS)}
    mark = max(counts, key=lambda known: counts[known])
    return mark if counts[mark] else None


class TypeMerging(NamedTuple):
    """Token types that are counted as one: `##ing` and `ing`, or `Ġing` and `ing`.

    Special tokens stay types of their own.

    Attributes:
        ids: The merged type of each token id, the smallest id of those that are one, (vocabulary,).
        names: The names of the merged types, without marks.

    References:
        Yamagiwa and Shimodaira 2024, footnote 7.
    """

    ids: NDArray[np.int64]
    names: dict[int, str]

    @classmethod
    def of(cls, tokenizer: Any) -> TypeMerging:
        """The merging of a tokenizer's vocabulary."""
        vocabulary: dict[str, int] = tokenizer.get_vocab()
        mark, special = find_mark(vocabulary), set(tokenizer.all_special_ids)
        ids = np.arange(max(vocabulary.values()) + 1)
        names: dict[int, str] = {}
        first: dict[str, int] = {}
        for name, number in sorted(vocabulary.items(), key=lambda item: item[1]):
            if number in special or mark is None:
                names[number] = name
                continue
            bare = name.removeprefix(mark) or name
            ids[number] = first.setdefault(bare, number)
            names.setdefault(first[bare], bare)
        return cls(ids, names)
