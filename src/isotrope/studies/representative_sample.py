"""A sample of sequences whose words, pairs of words and lengths are as frequent as in the whole corpus."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from isotrope.errors import InputError

#: Words of a sequence (Marbut, Chandler and Wheeler, Section 3.2), samples that are drawn, and sequences of each.
SHORTEST, LONGEST, SAMPLES, SEQUENCES = 3, 50, 10, 5_000

T = TypeVar("T")

_HEADING = re.compile(r"\s*=.*=\s*")
_END = re.compile(r"(?<=[.!?]) +(?=\S)")


@dataclass(frozen=True)
class TextSample:
    """Sequences, and the total variation distance of their words, pairs of words and lengths to the corpus's."""

    texts: list[str]
    words: float
    pairs: float
    lengths: float

    @property
    def distance(self) -> float:
        return self.words + self.pairs + self.lengths


def split_sequences(lines: Iterable[str]) -> list[str]:
    """The unique sentences of 3 to 50 words of lines of text; headings between = signs are left out.

    >>> split_sequences(["= Title =", "One two three . Four five six seven ! No ."])
    ['One two three .', 'Four five six seven !']
    """
    found: dict[str, None] = {}
    for line in lines:
        if _HEADING.fullmatch(line):
            continue
        for sentence in _END.split(line.strip()):
            if SHORTEST <= len(sentence.split()) <= LONGEST:
                found[sentence] = None
    return list(found)


def draw_samples(texts: Sequence[str], count: int = SEQUENCES, *, seed: int = 0) -> list[TextSample]:
    """Ten random samples of so many of the texts, the one nearest to all of them first (Fig. 2)."""
    if len(texts) < count:
        raise InputError(f"the text has {len(texts):,} different sequences of 3 to 50 words, expected {count:,}.")
    whole = _count_frequencies(texts)
    samples = []
    for number in range(SAMPLES):
        chosen = np.sort(np.random.default_rng([seed, number]).choice(len(texts), size=count, replace=False))
        sample = [texts[i] for i in chosen]
        words, pairs, lengths = _count_frequencies(sample)
        near = _total_variation(words, whole[0]), _total_variation(pairs, whole[1]), _total_variation(lengths, whole[2])
        samples.append(TextSample(sample, *near))
    return sorted(samples, key=lambda sample: sample.distance)


def _count_frequencies(texts: Sequence[str]) -> tuple[Counter[str], Counter[tuple[str, str]], Counter[int]]:
    words: Counter[str] = Counter()
    pairs: Counter[tuple[str, str]] = Counter()
    lengths: Counter[int] = Counter()
    for text in texts:
        split = text.split()
        words.update(split)
        pairs.update(itertools.pairwise(split))
        lengths[len(split)] += 1
    return words, pairs, lengths


def _total_variation(one: Counter[T], other: Counter[T]) -> float:
    """Total variation: half the sum of the differences of the shares."""
    here, there = sum(one.values()), sum(other.values())
    return sum(abs(one[key] / here - other[key] / there) for key in one.keys() | other.keys()) / 2
