"""A weight for each token type, by which a mean over tokens counts them: rare ones more than frequent ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import Corpus
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.tokenize import encode, resolve_max_length
from isotrope.storage.files import read_arrays, write_arrays

#: Arora et al.'s a, beside which frequencies count.
SMOOTHING = 1e-3

#: Texts that are tokenized together.
_TEXTS = 1024

#: The names of the arrays in a saved file; the facts are JSON.
_WEIGHTS, _FACTS = "weights", "facts"


@dataclass(frozen=True, eq=False)
class TokenWeights:
    """Weights above zero by token id, (vocabulary,), and plain data on what they come from.

    >>> TokenWeights([1.0, 0.5]).values
    array([1. , 0.5], dtype=float32)
    """

    values: NDArray[np.float32]
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        values = np.asarray(self.values, dtype=np.float32)
        if values.ndim != 1 or not (np.isfinite(values) & (values > 0)).all():
            raise InputError("token weights are numbers above zero, one for each token id; these are not.")
        object.__setattr__(self, "values", values)

    def check_vocabulary(self, loaded: Loaded) -> None:
        """Raise where the weights are not those of the token ids of a model."""
        expected = vocabulary(loaded)
        if len(self.values) != expected:
            raise InputError(
                f"got weights of {len(self.values):,} token ids, and {loaded.name} has {expected:,}; "
                "count them by its own tokenizer."
            )

    def __str__(self) -> str:
        """What they are, in a few words."""
        if self.facts.get("kind") != "sif":
            return "given"
        smoothing, tokens, corpus = (self.facts[name] for name in ("smoothing", "tokens", "corpus"))
        return f"smooth inverse frequency, a = {smoothing:g}, of {tokens:,} tokens in {corpus['name']}"

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return {**self.facts, "sha256": hashlib.sha256(self.values.tobytes()).hexdigest()}

    def save(self, path: str | Path) -> None:
        """Write them as one safetensors file."""
        facts = np.frombuffer(json.dumps(dict(self.facts)).encode(), np.uint8)
        write_arrays(Path(path).absolute(), {_WEIGHTS: self.values, _FACTS: facts})

    @classmethod
    def load(cls, path: str | Path) -> TokenWeights:
        """The weights that `save` wrote."""
        arrays = read_arrays(Path(path))
        try:
            found = cls(arrays[_WEIGHTS], dict(json.loads(arrays[_FACTS].tobytes())))
            str(found)  # which says whether the facts are those of weights
            return found
        except (KeyError, ValueError, TypeError, RecursionError) as error:
            raise InputError(f"{str(path)!r} does not hold token weights; save them with TokenWeights.save.") from error


def sif(counts: NDArray[np.int64], smoothing: float = SMOOTHING) -> NDArray[np.float32]:
    """Smooth inverse frequency a / (a + p) of token types from how often each was seen, (vocabulary,).

    Arora, Liang and Ma 2017, A simple but tough-to-beat baseline for sentence embeddings. What was never seen weighs 1.

    >>> sif(np.array([3, 1, 0]), smoothing=0.25).tolist()
    [0.25, 0.5, 1.0]
    """
    total = int(counts.sum())
    if total == 0:
        raise InputError("no token was counted, so there are no frequencies; give a text with tokens.")
    if not 0 < smoothing < np.inf:
        raise InputError(f"the smoothing is {smoothing:g}, expected a number above zero, such as {SMOOTHING:g}.")
    return (smoothing / (smoothing + counts / total)).astype(np.float32)


def sif_weights(
    loaded: Loaded, corpus: Corpus, *, smoothing: float = SMOOTHING, max_length: int | None = None
) -> TokenWeights:
    """Compute the SIF weights of a model's tokens, special tokens included, from their frequencies in a corpus.

    Args:
        loaded: The model, whose tokenizer is used.
        corpus: The texts in which tokens are counted.
        smoothing: The a of the weight a / (a + p).
        max_length: Number of tokens at which texts are truncated.

    References:
        Arora, Liang and Ma 2017
    """
    counts = np.zeros(vocabulary(loaded), np.int64)
    longest, texts = resolve_max_length(loaded, max_length), iter(corpus)
    while window := list(islice(texts, _TEXTS)):
        for encoded in encode(loaded, window, longest):
            np.add.at(counts, encoded.tokens, 1)
    facts = {
        "kind": "sif",
        "smoothing": smoothing,
        "tokens": int(counts.sum()),
        "model": loaded.name,
        "corpus": corpus.describe() | {"name": corpus.name},
    }
    return TokenWeights(sif(counts, smoothing), facts)


def vocabulary(loaded: Loaded) -> int:
    """The number of token ids that a model's tokenizer can give: its largest one, and one."""
    return 1 + int(max(loaded.tokenizer.get_vocab().values()))
