"""Words as rows: the mean of the tokens that a word was split into."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from isotrope.sources.batch import Batch, Rows
from isotrope.sources.source import Source
from isotrope.sources.text.source import TextSource
from isotrope.sources.text.type_merging import CONTINUES, find_mark

#: An odd constant whose multiples spread over 64 bits (Knuth 1997, 6.4).
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


class WordSource(Source):
    """The rows of a text source averaged over the tokens of each word (Yamagiwa and Shimodaira 2024, Eq. 33).

    A word's type is its tokens. Tokens that the tokenizer added are left out. A token continues the word before it if
    it says so (`##`), or, in vocabularies that mark beginnings (`Ġ`, `▁`), if it has no mark and begins with a letter
    or a digit.
    """

    def __init__(self, source: TextSource) -> None:
        self.source = source
        self.layers, self.width, self.unit = source.layers, source.width, source.unit
        names = source.loaded.tokenizer.convert_ids_to_tokens(range(len(source.loaded.tokenizer)))
        self.continues = continuing([str(name) for name in names])
        self._spelled: dict[int, str] = {}

    @property
    def total(self) -> int | None:
        return self.source.total

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on."""
        for batch in self.source.batches(start):
            rows = batch.rows
            assert rows.token is not None
            assert rows.special is not None
            keep = np.flatnonzero(~rows.special)
            known = rows.take(keep)
            assert known.token is not None
            begin = self._begins(known)
            count = np.diff(np.append(begin, len(keep)))
            mean = sparse.csr_array(
                (np.repeat(1.0 / count, count), np.arange(len(keep)), np.append(begin, len(keep))),
                shape=(len(begin), len(keep)),
            )
            types = self._types(known.token, begin, count)
            words = Rows(known.sequence[begin], token=types, position=np.arange(len(begin)))
            layers = {layer: mean @ np.asarray(values.cpu())[keep] for layer, values in batch.layers.items()}
            yield Batch(layers, words, batch.counts)

    def _begins(self, known: Rows) -> NDArray[np.int64]:
        """Where each word begins."""
        assert known.token is not None
        new = ~self.continues[known.token]
        new[known.starts()] = True
        return np.flatnonzero(new)

    def _types(self, token: Any, begin: NDArray[np.int64], count: NDArray[np.int64]) -> NDArray[np.int64]:
        """A number for each word that its tokens decide, so that runs that were resumed agree."""
        place = np.arange(len(token)) - np.repeat(begin, count)
        with np.errstate(over="ignore"):
            mixed = (token.astype(np.uint64) + np.uint64(1)) * _MULTIPLIER ** (place.astype(np.uint64) + np.uint64(1))
            hashed = np.add.reduceat(mixed, begin) >> np.uint64(1) if len(begin) else np.empty(0, np.uint64)
        types = hashed.astype(np.int64)
        for at in np.unique(types, return_index=True)[1]:
            number = int(types[at])
            if number not in self._spelled:
                pieces = token[begin[at] : begin[at] + count[at]]
                names = self.source.loaded.tokenizer.convert_ids_to_tokens(pieces.tolist())
                self._spelled[number] = " ".join(map(str, names))
        return types

    def token_names(self, tokens: NDArray[np.int64]) -> list[str]:
        """The tokens of word types, with spaces between them."""
        return [self._spelled.get(int(t), str(t)) for t in tokens]

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        facts = self.source.describe()
        return facts | {"rows_are": f"words, means of {facts['rows_are']}"}


def continuing(names: list[str]) -> NDArray[np.bool_]:
    """Which tokens of a vocabulary continue the word before them.

    >>> continuing(["un", "##known", "."]).tolist()
    [False, True, False]
    >>> continuing(["Ġun", "known", "."]).tolist()
    [False, True, False]
    """
    mark = find_mark(names)
    if mark is None:
        return np.zeros(len(names), dtype=bool)
    if mark == CONTINUES:
        return np.array([name.startswith(mark) and name != mark for name in names])
    return np.array([not name.startswith(mark) and name[:1].isalnum() for name in names])
