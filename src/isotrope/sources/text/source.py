"""Hidden states of any Hugging Face text model: every layer from one forward pass, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import Choice, Layer
from isotrope.sources.batch import Batch, Rows
from isotrope.sources.corpora.corpus import Corpus, Text
from isotrope.sources.models.hidden_states import (
    compute_hidden_states,
    find_final_norm,
    name_states,
    record_input,
    shift_right,
)
from isotrope.sources.models.load import Loaded
from isotrope.sources.source import MOST, Cursor, Source, batches_per_shard
from isotrope.sources.text.layer_choice import check_mixes, check_options, name_layers, resolve_pooled_layers
from isotrope.sources.text.pooling import mean, parse
from isotrope.sources.text.rows import (
    average_layers,
    common_multiple,
    count_tokens_per_row,
    merge_mask,
    pool_rows,
    stack_layers,
    token_rows,
)
from isotrope.sources.text.token_weights import TokenWeights
from isotrope.sources.text.tokenize import EncodedText, encode, fill_rows, pad_texts, resolve_max_length, tokenize_first

#: Texts that are sorted by length together, in batches: less padding, and still constant memory. A shard is a part.
_BATCHES_SORTED_TOGETHER = MOST

#: Texts that are tokenized to estimate the length of the rest.
_COUNTED_TEXTS = 2_000


class TextSource(Source):
    """Rows from the hidden states of a model over a corpus: tokens, or with a pooling one row for each text.

    layers: which ones, see `isotrope.layers.resolve_layers`. pooling: see `isotrope.sources.text.pooling.parse`.
    token_weights: by which a mean counts its tokens.
    special_tokens: "keep" or "drop" the rows of tokens that the tokenizer added. batch_size: texts in a forward pass.
    max_length: tokens at which texts are cut, by default 512 or what the model takes. in_order: rows come in the
    order of their texts; otherwise texts of like length go together, which is faster.

    A layer may have a row for every few tokens, as in CANINE; such rows have no token type, and neither have tokens
    that are spelled in characters, as for CharacterBERT. Where a layer has rows that stand for no whole number of
    tokens, texts are run one at a time, so that none of its rows is padding.
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
    ) -> None:
        check_options(special_tokens, batch_size)
        self.loaded, self.corpus = loaded, corpus
        self._texts = Cursor(lambda: iter(corpus))
        self._window: tuple[int, int, list[EncodedText]] | None = None  # that of the last shard: the next may be in it
        self.special_tokens, self.batch_size, self.in_order = special_tokens, batch_size, in_order
        self.pooling = parse(pooling) if pooling else None
        self.token_weights = token_weights
        if token_weights is not None:
            if self.pooling is None or self.pooling.pool is not mean:
                raise InputError(f"token weights are for the pooling mean, got {pooling or 'none'}; leave one out.")
            token_weights.refuse_other(loaded)
        self.max_length = resolve_max_length(loaded, max_length)
        ids, mask = tokenize_first(loaded, corpus, self.max_length)
        self._spelled = ids.ndim > 2  # a token has several ids, those of its characters
        encoder, decoder = compute_hidden_states(loaded, ids, mask)
        states = [*encoder, *decoder]
        self._names = name_states(loaded, len(encoder), len(decoder))
        self.choices = resolve_pooled_layers(layers, self.pooling, self._names)
        check_mixes(self.choices, self.pooling, self._names)
        self._norm = find_final_norm(loaded, ids, mask) if any(c.before_norm for c in self.choices) else None
        self.layers: list[Layer] = [choice.label for choice in self.choices]
        self._tokens_per_row = {i: count_tokens_per_row(ids.shape[1], states[i].shape[1]) for i in self._asked}
        self._multiple = common_multiple(self._tokens_per_row.values())
        self.max_length = max(self.max_length - self.max_length % self._multiple, self._multiple)
        if None in self._tokens_per_row.values():
            self.batch_size = 1
        self._refuse_lengths()
        self.width = self._check_states({i: states[i] for i in self._asked}, ids.shape[1])

    @property
    def _asked(self) -> set[int]:
        """Numbers of the hidden states that are asked for; the others are not kept."""
        return {state for choice in self.choices for state in choice.states}

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

    def _refuse_lengths(self) -> None:
        """Refuse what needs a row for each token where a layer has another number."""
        for choice in self.choices:
            if len({self._tokens_per_row[i] for i in choice.states}) > 1:
                raise InputError(f"the layers {choice.label} of {self.loaded.name} have different lengths; name one.")
        odd = [self._names[i] for i, step in self._tokens_per_row.items() if step != 1]
        if odd and self.token_weights is not None:
            raise InputError(f"layer {odd[0]} of {self.loaded.name} has no row for each token; leave the weights out.")

    @property
    def total(self) -> int | None:
        return self.corpus.count()

    @property
    def layer_names(self) -> dict[Layer, str]:
        """What to call each layer, where there is more to say than its number."""
        return name_layers(self.choices, self._names)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; earlier texts are read and tokenized, but not run."""
        skip = start
        for encoded, without in self._tokenize():
            if skip >= self.parts:
                skip -= self.parts
                continue
            yield from islice(self._batch(encoded, without), skip, None)  # no name here that would keep a batch alive
            skip = 0

    @property
    def parts(self) -> int:
        """Batches made from one forward pass: layers whose rows differ come apart."""
        return len(self._layouts())

    def _layouts(self) -> dict[tuple[bool, int | None], list[Choice]]:
        """The layers with the same rows: those of the encoder, those of the decoder, and by tokens to a row."""
        found: dict[tuple[bool, int | None], list[Choice]] = {}
        for choice in sorted(self.choices, key=self.is_decoder):
            found.setdefault((self.is_decoder(choice), self._tokens_per_row[choice.states[0]]), []).append(choice)
        return found

    def is_decoder(self, choice: Choice) -> bool:
        """Whether a layer is of the decoder of a model that has an encoder too."""
        return self.loaded.encoder_decoder and "decoder" in self._names[choice.states[0]].split(".")

    def _tokenize(self) -> Iterator[tuple[list[EncodedText], int]]:
        """Batches of tokenized texts, by length within a window, and how many texts without tokens to report."""
        texts, without = iter(self.corpus), 0
        last: list[
            EncodedText
        ] = []  # held back, because texts without tokens may follow it that no other batch reports
        while window := list(islice(texts, self.batch_size * _BATCHES_SORTED_TOGETHER)):
            encoded = self._sort_by_length(window)
            without += len(window) - len(encoded)
            for i in range(0, len(encoded), self.batch_size):
                if last:
                    yield last, without
                    without = 0
                last = encoded[i : i + self.batch_size]
        if last:
            yield last, without

    def _sort_by_length(self, window: list[Text]) -> list[EncodedText]:
        """The texts of a window that have tokens, in the order in which they are run."""
        encoded = encode(self.loaded, window, self.max_length)
        if not self.in_order:
            encoded.sort(key=lambda e: (-len(e.tokens), e.id))
        return encoded

    @property
    def shard_size(self) -> int:
        return self.batch_size * batches_per_shard(None if self.total is None else -(-self.total // self.batch_size))

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
            yield Batch({}, Rows(np.empty(0, np.uint64)), {"texts": without, "texts_without_tokens": without})
        for i in range(part, min(part + size, len(encoded)), self.batch_size):
            yield from self._batch(encoded[i : i + self.batch_size], without)
            without = 0

    def _batch(self, encoded: list[EncodedText], without: int) -> Iterator[Batch]:
        ids, mask = pad_texts(encoded, self.loaded.pad, self._multiple)
        special = fill_rows([e.special for e in encoded], mask.shape, fill=False)
        with record_input(self._norm) as before:
            encoder, decoder = compute_hidden_states(self.loaded, ids, mask)
        states = {i: state for i, state in enumerate((*encoder, *decoder)) if i in self._asked}
        del encoder, decoder
        self._check_states(states, ids.shape[1])
        counts = {
            "texts": len(encoded) + without,
            "truncated_texts": sum(e.cut > 0 for e in encoded),
            "truncated_tokens": sum(e.cut for e in encoded),
        }
        if without:
            counts["texts_without_tokens"] = without
        for (side, step), choices in self._layouts().items():
            read, added = ids, special
            if side:  # the decoder reads the start token first, which belongs to no text
                read = shift_right(self.loaded, ids)
                added = np.concatenate([np.ones_like(special[:, :1]), special[:, :-1]], axis=1)
            counted = mask & ~added if self.special_tokens == "drop" else mask
            join = stack_layers if self.pooling and self.pooling.least else average_layers
            hidden = {c.label: before[-1] if c.before_norm else join(states, c.states) for c in choices}
            if step is None:  # one text at a time: nothing is padding
                counted = np.ones(states[choices[0].states[0]].shape[:2], dtype=bool)
                added = np.zeros_like(counted)
            elif step > 1:
                counted, added = merge_mask(counted, step), ~merge_mask(mask & ~added, step)
            named = read if step == 1 and not self._spelled else None
            if self.pooling is None:
                layers, rows = token_rows(hidden, encoded, named, added, counted)
            else:
                layers, rows = pool_rows(hidden, encoded, named, counted, self.pooling, self.token_weights)
            yield Batch(layers, rows, counts)
            counts = {}

    def estimate_rows(self, *, rows: int, types: int, units: int) -> tuple[int, int]:
        """Estimate the rows and the token types of a layer from the tokens of the first texts."""
        texts = list(islice(self.corpus, _COUNTED_TEXTS))
        count = self.total or len(texts)
        if self.pooling is not None:
            return count, 0
        encoded = encode(self.loaded, texts, self.max_length)
        kept = [e.tokens[~e.special] if self.special_tokens == "drop" else e.tokens for e in encoded]
        tokens, share = [int(t) for some in kept for t in some], count / max(len(texts), 1)
        # New types become rarer with the length of a text, about as its square root (Heaps' law).
        return round(len(tokens) * share), round(len(set(tokens)) * max(share, 1.0) ** 0.5)

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """The text of token types, None where rows are pooled."""
        if self.pooling is not None:
            return None
        return [str(name) for name in self.loaded.tokenizer.convert_ids_to_tokens(tokens.tolist())]

    def _rows_are(self) -> str:
        """What rows are, in words."""
        if self.pooling is not None:
            return f"one for each text ({self.pooling.name})"
        tokens = f"tokens of {type(self.loaded.tokenizer).__name__}"
        odd = [self._names[i] for i, step in sorted(self._tokens_per_row.items()) if step != 1]
        if self._spelled:
            return f"{tokens}, spelled in characters, so that they have no token types"
        return tokens + (f", and in layers {', '.join(odd)} several of them, without token types" if odd else "")

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        model = self.loaded.model
        return {
            **self.loaded.describe(),
            "rows_are": self._rows_are(),
            "hooks": self.loaded.hooks,
            "dtype": str(model.dtype).removeprefix("torch."),
            "states": len(self._names),
            "layers_are": getattr(model, "layers_are", None),
            "layers": list(self.layers),
            "width": self.width,
            "pooling": self.pooling.name if self.pooling else None,
            "token_weights": self.token_weights.describe() if self.token_weights else None,
            "special_tokens": self.special_tokens,
            "max_length": self.max_length,
            "batch_size": self.batch_size,
            "corpus": self.corpus.describe() | {"name": self.corpus.name},
        }
