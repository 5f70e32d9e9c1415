"""A part of a corpus: a random share of its texts, those of few words, those of one group, the first ones."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import Corpus, Text

#: The number of values of a hash of eight bytes.
_HASHES = 2.0**64


@dataclass(frozen=True)
class TextSelection:
    """Which texts of a corpus are read; each condition applies to what the one before it kept.

    Args:
        share: The random share of the texts. A text is kept by a hash of it and the seed, so that neither the order
            of the texts nor who reads them matters, and equal texts are kept or left out together.
        seed: Of the hash.
        max_words: The most words of a text, words being what white space separates; 0 for any number.
        group: The only group; None for all.
        most: The most texts, the first ones; None for all.
    """

    share: float = 1.0
    seed: int = 0
    max_words: int = 0
    group: str | None = None
    most: int | None = None

    def __post_init__(self) -> None:
        if not 0.0 < self.share <= 1.0:
            raise InputError(f"the share of the texts is {self.share}, expected more than 0 and at most 1.")
        if self.max_words < 0:
            raise InputError(f"the most words of a text are {self.max_words}, expected 1 or more, or 0 for any number.")

    def find_reason(self, text: Text) -> str | None:
        """The condition that a text fails, None where it fails none.

        >>> TextSelection(max_words=2).find_reason(Text(0, "one two three"))
        'max_words'
        """
        if self.share < 1.0 and hash_text(text.text, self.seed) >= self.share * _HASHES:
            return "share"
        if self.max_words and len(text.text.split()) > self.max_words:
            return "max_words"
        return "group" if self.group not in (None, text.group) else None


def hash_text(text: str, seed: int) -> int:
    """The hash of a text, uniform over 64 bits."""
    data = text.encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(data, digest_size=8, key=seed.to_bytes(8, "little")).digest()
    return int.from_bytes(digest, "little")


class SelectedCorpus(Corpus):
    """The selected texts of a corpus; a text of a selected group has no group of its own any more.

    Attributes:
        whole: The corpus.
        selection: Which of its texts.
        left_out: How many texts each condition left out in the last whole pass, None before there was one.
    """

    def __init__(self, whole: Corpus, selection: TextSelection) -> None:
        super().__init__(whole.name, whole.read, whole.facts, whole.stream)
        self.whole, self.selection = whole, selection
        self.left_out: dict[str, int] | None = None

    def __iter__(self) -> Iterator[Text]:
        number, left_out = 0, {"share": 0, "max_words": 0, "group": 0}
        for text in self.whole:
            if number == self.selection.most:
                break
            if (reason := self.selection.find_reason(text)) is not None:
                left_out[reason] += 1
                continue
            yield Text(number, text.text, text.group if self.selection.group is None else None)
            number += 1
        self.skipped, self._count, self.left_out = self.whole.skipped, number, left_out

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance: what the corpus says, the selection, and how many texts it left out."""
        count = self.count()
        left_out = None if count is None else self.left_out
        return super().describe() | {"selection": asdict(self.selection) | {"texts": count, "left_out": left_out}}


def select_texts(corpus: Corpus, selection: TextSelection) -> Corpus:
    """Select texts of a corpus, at least one.

    Args:
        corpus: The corpus.
        selection: Which of its texts.

    Returns:
        The corpus itself where all of its texts are selected.

    >>> from isotrope.sources.corpora.corpus import open_corpus
    >>> few = select_texts(open_corpus(["one", "one two", "one two three"]), TextSelection(max_words=2))
    >>> [text.text for text in few], few.describe()["selection"]["left_out"]["max_words"]
    (['one', 'one two'], 1)
    """
    if selection == TextSelection(seed=selection.seed):
        return corpus
    selected = SelectedCorpus(corpus, selection)
    if next(iter(selected), None) is None:
        raise InputError(f"no text of {corpus.name} is left; take a larger share, more words or another group.")
    return selected
