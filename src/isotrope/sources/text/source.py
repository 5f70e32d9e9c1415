"""Hidden states of any Hugging Face text model: every layer from one forward pass, one batch at a time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import Choice
from isotrope.sources.batch import Batch
from isotrope.sources.corpora.corpus import Corpus, Text
from isotrope.sources.models.hidden_states import compute_hidden_states, find_final_norm, record_input, shift_right
from isotrope.sources.models.load import Loaded
from isotrope.sources.source import MOST, Cursor
from isotrope.sources.text.model_source import KnownTokens, ModelSource, average_states, stack_states
from isotrope.sources.text.pooling import mean
from isotrope.sources.text.token_weights import TokenWeights
from isotrope.sources.text.tokenize import (
    EncodedText,
    count_tokens_per_row,
    encode,
    fill_rows,
    merge_mask,
    pad_texts,
    resolve_max_length,
    tokenize_first,
)
from isotrope.sources.text.type_merging import TypeMerging

#: Texts that are sorted by length together, in batches: less padding, and still constant memory. A shard is a part.
_BATCHES_SORTED_TOGETHER = MOST

#: Texts that are tokenized to estimate the length of the rest.
_COUNTED_TEXTS = 2_000


class TextSource(ModelSource):
    """Rows from the hidden states of a model over a corpus: tokens, or with a pooling one row for each text.

    A layer may have a row for every few tokens, as in CANINE; such rows have no token type, and neither have tokens
    that are spelled in characters, as for CharacterBERT. Where a layer has rows that stand for no whole number of
    tokens, texts are run one at a time, so that none of its rows is padding.

    Args:
        loaded: The model.
        corpus: The texts.
        layers: Which ones, see `isotrope.layers.resolve_layers`.
        pooling: See `isotrope.sources.text.pooling.parse`.
        token_weights: Weights of token types for the pooling `mean`.
        special_tokens: "keep" or "drop" the rows of tokens that the tokenizer added.
        batch_size: Texts in a forward pass.
        max_length: Tokens at which texts are cut, by default 512 or what the model takes.
        in_order: Rows come in the order of their texts; otherwise texts of like length go together, which is faster.
        merge_types: Whether parts of words and whole words are one type, see `type_merging.TypeMerging`.
    """

    unit = "texts"

    def __init__(
        self,
        loaded: Loaded,
        corpus: Corpus,
        *,
        layers: str | int | Sequence[int | str] = "all",
        pooling: str | None = None,
        token_weights: TokenWeights | None = None,
        special_tokens: str = "keep",
        batch_size: int = 32,
        max_length: int | None = None,
        in_order: bool = False,
        merge_types: bool = False,
    ) -> None:
        super().__init__(
            loaded,
            corpus,
            pooling=pooling,
            token_weights=token_weights,
            special_tokens=special_tokens,
            batch_size=batch_size,
            in_order=in_order,
        )
        self._texts = Cursor(lambda: iter(corpus))
        self._window: tuple[int, int, list[EncodedText]] | None = None  # that of the last shard: the next may be in it
        if token_weights is not None:
            if self.pooling is None or self.pooling.pool is not mean:
                raise InputError(f"token weights are for the pooling mean, got {pooling or 'none'}; leave one out.")
            token_weights.check_vocabulary(loaded)
        self.max_length = resolve_max_length(loaded, max_length)
        ids, mask = tokenize_first(loaded, corpus, self.max_length)
        self._spelled = ids.ndim > 2  # a token has several ids, those of its characters
        if merge_types and self.pooling is not None:
            raise InputError("rows of whole texts have no token types to merge; leave merge-types or the pooling out.")
        self._merging = TypeMerging.of(loaded.tokenizer) if merge_types and not self._spelled else None
        encoder, decoder = compute_hidden_states(loaded, ids, mask)
        states = [*encoder, *decoder]
        self._choose_layers(layers, len(encoder), len(decoder))
        self._check_mixes()
        self._norm = None
        if any(choice.before_norm for choice in self.choices):
            self._norm = find_final_norm(loaded, lambda: compute_hidden_states(loaded, ids, mask))
        length = ids.shape[1]
        self._tokens_per_row = {i: count_tokens_per_row(length, states[i].shape[1]) for i in self._asked}
        self._multiple = math.lcm(*(step for step in self._tokens_per_row.values() if step is not None))
        self.max_length = max(self.max_length - self.max_length % self._multiple, self._multiple)
        if None in self._tokens_per_row.values():
            self.batch_size = 1
        self._check_lengths()
        self._group_layers(lambda choice: (self.is_decoder(choice), self._tokens_per_row[choice.states[0]]))
        self._layouts.sort(key=lambda choices: self.is_decoder(choices[0]))
        self.width = self._check_states({i: states[i] for i in self._asked}, length)

    @property
    def _asked(self) -> set[int]:
        """Numbers of the hidden states that are asked for; the others are not kept."""
        return {state for choice in self.choices for state in choice.states}

    def _check_mixes(self) -> None:
        """Raise for mixes of layers that cannot be averaged, or that the pooling cannot use."""
        pooling = self.pooling
        for choice in self.choices:
            sides = {self._names[state].partition(".")[0] for state in choice.states}
            if pooling and len(choice.states) < pooling.least:
                raise InputError(
                    f"the pooling {pooling.name} needs at least {pooling.least} layers, got {choice.label}."
                )
            if len(choice.states) > 1 and pooling is None:
                raise InputError(f"the mix of layers {choice.label} needs a pooling, such as --pooling mean.")
            if {"encoder", "decoder"} <= sides:
                raise InputError(f"the mix {choice.label} joins encoder and decoder layers, whose rows differ.")

    def _check_states(self, states: dict[int, Any], length: int) -> int:
        """The width that the states asked for have in common, once they are known to hold a row for each token."""
        odd = [
            i for i, state in states.items() if (step := self._tokens_per_row[i]) and state.shape[1] * step != length
        ]
        if odd:
            step, name = self._tokens_per_row[odd[0]], self._names[odd[0]]
            raise InputError(
                f"layer {name} of {self.loaded.name} had a row for every {step} tokens of the first text and has "
                f"{states[odd[0]].shape[1]} for {length} of another; leave it out."
            )
        widths = sorted({int(state.shape[2]) for state in states.values()})
        if len(widths) > 1:
            raise InputError(
                f"the layers of {self.loaded.name} have different widths ({', '.join(map(str, widths))}); "
                "ask for layers of one width."
            )
        return widths[0]

    def _check_lengths(self) -> None:
        """Raise for mixes and weights that need a row for each token, where a layer has another number."""
        for choice in self.choices:
            if len({self._tokens_per_row[i] for i in choice.states}) > 1:
                raise InputError(f"the layers {choice.label} of {self.loaded.name} have different lengths; name one.")
        odd = [self._names[i] for i, step in self._tokens_per_row.items() if step != 1]
        if odd and self.token_weights is not None:
            raise InputError(f"layer {odd[0]} of {self.loaded.name} has no row for each token; leave the weights out.")

    def is_decoder(self, choice: Choice) -> bool:
        """Whether a layer is of the decoder of a model that has an encoder too."""
        return self.loaded.encoder_decoder and "decoder" in self._names[choice.states[0]].split(".")

    def _passes(self) -> Iterator[tuple[list[EncodedText], dict[str, int]]]:
        """Batches of tokenized texts, by length within a window, and what is to be counted with each."""
        texts, without = iter(self.corpus), 0
        last: list[EncodedText] = []  # the next window may have texts without tokens that only this batch can report
        while window := list(islice(texts, self.batch_size * _BATCHES_SORTED_TOGETHER)):
            encoded = self._sort_by_length(window)
            without += len(window) - len(encoded)
            for i in range(0, len(encoded), self.batch_size):
                if last:
                    yield last, _count(last, without)
                    without = 0
                last = encoded[i : i + self.batch_size]
        if last:
            yield last, _count(last, without)

    def _sort_by_length(self, window: list[Text]) -> list[EncodedText]:
        """The texts of a window that have tokens, in the order in which they are run."""
        encoded = encode(self.loaded, window, self.max_length)
        if not self.in_order:
            encoded.sort(key=lambda e: (-len(e.tokens), e.id))
        return encoded

    def shard(self, number: int) -> Iterator[Batch]:
        """The batches of one shard; texts before its window are read, but not tokenized."""
        together, size = self.batch_size * _BATCHES_SORTED_TOGETHER, self.shard_size
        start, part = divmod(number * size, together)
        if self._window is None or self._window[0] != start:
            texts = self._texts.between(start * together, (start + 1) * together)
            self._window = start, len(texts), self._sort_by_length(texts)
        _, count, encoded = self._window
        without = 0 if part else count - len(encoded)
        if without and not encoded:
            yield from self._batches([], _count([], without))
        for i in range(part, min(part + size, len(encoded)), self.batch_size):
            texts_run = encoded[i : i + self.batch_size]
            yield from self._batches(texts_run, _count(texts_run, without))
            without = 0

    def _run(self, items: list[EncodedText], counts: Mapping[str, int]) -> Iterator[Batch]:
        ids, mask = pad_texts(items, self.loaded.pad, self._multiple)
        special = fill_rows([e.special for e in items], mask.shape, fill=False)
        with record_input(self._norm) as before:
            encoder, decoder = compute_hidden_states(self.loaded, ids, mask)
        states = {i: state for i, state in enumerate((*encoder, *decoder)) if i in self._asked}
        del encoder, decoder
        self._check_states(states, ids.shape[1])
        join = stack_states if self.pooling and self.pooling.least else average_states
        for choices in self._layouts:
            hidden = {c.label: before[-1] if c.before_norm else join(states, c.states) for c in choices}
            tokens = self._describe_tokens(choices[0], states, ids, special, mask)
            yield self._make_batch(hidden, items, tokens, counts)
            counts = {}

    def _describe_tokens(
        self,
        choice: Choice,
        states: Mapping[int, Any],
        ids: NDArray[np.int64],
        special: NDArray[np.bool_],
        mask: NDArray[np.bool_],
    ) -> KnownTokens:
        """What is known of the rows of a layer, from the ids, the special tokens and the mask of the texts, (b, t)."""
        first = choice.states[0]
        if self.is_decoder(choice):  # the decoder reads the start token first, which belongs to no text
            ids = shift_right(self.loaded, ids)
            special = np.concatenate([np.ones_like(special[:, :1]), special[:, :-1]], axis=1)
        step = self._tokens_per_row[first]
        if step is None:  # one text at a time: nothing is padding
            whole = np.ones(states[first].shape[:2], dtype=bool)
            return KnownTokens(None, ~whole, whole)
        if step > 1:
            return KnownTokens(None, ~merge_mask(mask & ~special, step), merge_mask(mask, step))
        if self._merging is not None:
            ids = self._merging.ids[ids]
        return KnownTokens(None if self._spelled else ids, special, mask)

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """The text of token types, without marks where types are merged; None where rows are pooled."""
        if self._merging is None:
            return super().token_names(tokens)
        return [self._merging.names.get(int(token), str(token)) for token in tokens]

    def estimate_rows(self, *, rows: int, types: int, units: int) -> tuple[int, int]:
        """Estimate the rows and the token types of a layer from the tokens of the first texts."""
        texts = list(islice(self.corpus, _COUNTED_TEXTS))
        count = self.total or len(texts)
        if self.pooling is not None:
            return count, 0
        encoded = encode(self.loaded, texts, self.max_length)
        kept = [e.tokens[~e.special] if self.special_tokens == "drop" else e.tokens for e in encoded]
        tokens, share = [int(t) for text in kept for t in text], count / max(len(texts), 1)
        # New types become rarer with the length of a text, about as its square root (Heaps' law).
        return round(len(tokens) * share), round(len(set(tokens)) * max(share, 1.0) ** 0.5)

    def _rows_are(self) -> str:
        """What rows are, in words."""
        if self.pooling is not None:
            return f"one for each text ({self.pooling.name})"
        tokens = f"tokens of {type(self.loaded.tokenizer).__name__}"
        tokens += ", parts of words and whole words as one type" if self._merging is not None else ""
        odd = [self._names[i] for i, step in sorted(self._tokens_per_row.items()) if step != 1]
        if self._spelled:
            return f"{tokens}, spelled in characters, so that they have no token types"
        return tokens + (f", and in layers {', '.join(odd)} several of them, without token types" if odd else "")

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return super().describe() | {
            "rows_are": self._rows_are(),
            "layers_are": getattr(self.loaded.model, "layers_are", None),
            "token_weights": self.token_weights.describe() if self.token_weights else None,
            "max_length": self.max_length,
        }


def _count(encoded: list[EncodedText], without: int) -> dict[str, int]:
    """What a batch has to report: its texts, and those without tokens that were left out before it."""
    counts = {"texts": len(encoded) + without}
    if encoded:
        counts["truncated_texts"] = sum(e.cut > 0 for e in encoded)
        counts["truncated_tokens"] = sum(e.cut for e in encoded)
    return counts | ({"texts_without_tokens": without} if without else {})
