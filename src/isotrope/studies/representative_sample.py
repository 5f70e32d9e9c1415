"""A sample of sequences whose words, pairs of words and lengths are as frequent as in the whole corpus."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np

from isotrope.errors import InputError
from isotrope.studies.options import Tokens, Unit

#: Tokens of a sequence (Marbut, Chandler and Wheeler, Section 3.2), samples that are drawn, and sequences of each.
SHORTEST, LONGEST, SAMPLES, SEQUENCES = 3, 50, 10, 5_000

T = TypeVar("T")

_HEADING = re.compile(r"\s*=.*=\s*")
_END = re.compile(r"(?<=[.!?]) +(?=\S)")
_SCIKIT_LEARN = re.compile(r"(?u)\b\w\w+\b")

#: Points of a rank-frequency curve.
_POINTS = 60


class Frequencies(NamedTuple):
    """How often words, pairs of words and lengths occur in a text."""

    words: Counter[str]
    pairs: Counter[tuple[str, str]]
    lengths: Counter[int]


@dataclass(frozen=True)
class TextSample:
    """Sequences, and the total variation distance of their words, pairs of words and lengths to the corpus's."""

    texts: list[str]
    words: float
    pairs: float
    lengths: float
    frequencies: Frequencies

    @property
    def distance(self) -> float:
        return self.words + self.pairs + self.lengths


def split_tokens(text: str, tokens: Tokens = "words") -> list[str]:
    """Split a text into tokens: as scikit-learn's CountVectorizer does by default, or at spaces.

    >>> split_tokens("A U.S. firm 's 10 plans", "scikit-learn"), split_tokens("A U.S. firm")
    (['firm', '10', 'plans'], ['A', 'U.S.', 'firm'])
    """
    return _SCIKIT_LEARN.findall(text.lower()) if tokens == "scikit-learn" else text.split()


def split_sequences(lines: Iterable[str], unit: Unit = "sentences", tokens: Tokens = "words") -> list[str]:
    """The unique sequences of 3 to 50 tokens of a text.

    Args:
        lines: the lines of the text.
        unit: "lines", each a sequence as it is, or "sentences" of lines that are no heading between = signs.
        tokens: what is counted.

    >>> split_sequences(["= Title =", "One two three . Four five six seven ! No ."])
    ['One two three .', 'Four five six seven !']
    >>> split_sequences(["= A new title =", "One two . Three four ."], "lines", "scikit-learn")
    ['One two . Three four .']
    """
    found: dict[str, None] = {}
    for line in lines:
        heading = unit == "sentences" and _HEADING.fullmatch(line)
        parts = [line.strip()] if unit == "lines" else [] if heading else _END.split(line.strip())
        for part in parts:
            if SHORTEST <= len(split_tokens(part, tokens)) <= LONGEST:
                found[part] = None
    return list(found)


def draw_samples(
    texts: Sequence[str], count: int = SEQUENCES, *, seed: int = 0, tokens: Tokens = "words"
) -> list[TextSample]:
    """Draw ten random samples of so many of the texts, the one nearest to all of them first (Fig. 2)."""
    if len(texts) < count:
        raise InputError(f"the text has {len(texts):,} different sequences of 3 to 50 words, expected {count:,}.")
    whole = count_frequencies(texts, tokens)
    samples = []
    for number in range(SAMPLES):
        chosen = np.sort(np.random.default_rng([seed, number]).choice(len(texts), size=count, replace=False))
        sample = [texts[i] for i in chosen]
        seen = count_frequencies(sample, tokens)
        words, pairs = _total_variation(seen.words, whole.words), _total_variation(seen.pairs, whole.pairs)
        samples.append(TextSample(sample, words, pairs, _total_variation(seen.lengths, whole.lengths), seen))
    return sorted(samples, key=lambda sample: sample.distance)


def count_frequencies(texts: Iterable[str], tokens: Tokens = "words") -> Frequencies:
    """Count the words, pairs of words and lengths of texts."""
    found = Frequencies(Counter(), Counter(), Counter())
    for text in texts:
        split = split_tokens(text, tokens)
        found.words.update(split)
        found.pairs.update(itertools.pairwise(split))
        found.lengths[len(split)] += 1
    return found


def list_curves(frequencies: Frequencies) -> list[dict[str, Any]]:
    """The curves of Fig. 2: shares of words and of pairs by rank, at logarithmic steps, and of lengths.

    >>> [row["share"] for row in list_curves(count_frequencies(["a b a"])) if row["what"] == "words"]
    [0.6666666666666666, 0.3333333333333333]
    """
    rows: list[dict[str, Any]] = []
    for what, counter in (("words", frequencies.words), ("pairs", frequencies.pairs)):
        counts, total = sorted(counter.values(), reverse=True), counter.total()
        ranks = np.unique(np.geomspace(1, max(len(counts), 1), _POINTS).round().astype(int))
        rows += [{"what": what, "at": int(rank), "share": counts[rank - 1] / total} for rank in ranks if counts]
    total = frequencies.lengths.total()
    lengths = sorted(frequencies.lengths.items())
    return rows + [{"what": "lengths", "at": length, "share": count / total} for length, count in lengths]


def _total_variation(one: Counter[T], other: Counter[T]) -> float:
    """Total variation: half the sum of the differences of the shares."""
    here, there = one.total(), other.total()
    return sum(abs(one[key] / here - other[key] / there) for key in one.keys() | other.keys()) / 2
