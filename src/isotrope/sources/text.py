"""Hidden states of any Hugging Face text model: every layer from one forward pass, one batch at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.batch import Batch, Layer, Rows
from isotrope.sources.corpora import Corpus
from isotrope.sources.encoding import Encoded, encode, filled, limit, padded
from isotrope.sources.layers import Choice, choose, state_names
from isotrope.sources.models import Loaded
from isotrope.sources.pooling import Pooling, parse

#: Texts that are sorted by length together, in batches: less padding, and still constant memory.
_BATCHES_SORTED_TOGETHER = 64

#: Where models keep the norm after their last block.
_FINAL_NORMS = ("norm", "ln_f", "final_layer_norm", "final_layernorm", "final_norm")


class TextSource:
    """Rows from the hidden states of a model over a corpus: tokens, or with a pooling one row for each text.

    layers: which ones, see `isotrope.sources.layers.choose`. pooling: see `isotrope.sources.pooling.parse`.
    special_tokens: "keep" or "drop" the rows of tokens that the tokenizer added. batch_size: texts in a forward pass.
    max_length: tokens at which texts are cut, by default 512 or what the model takes.
    """

    unit = "texts"

    def __init__(
        self,
        loaded: Loaded,
        corpus: Corpus,
        *,
        layers: str | int | Sequence[int | str] = "all",
        pooling: str | None = None,
        special_tokens: str = "keep",
        batch_size: int = 32,
        max_length: int | None = None,
    ) -> None:
        if special_tokens not in ("keep", "drop"):
            raise InputError(f"special tokens can be kept or dropped, got {special_tokens!r}: say keep or drop.")
        if batch_size < 1:
            raise InputError(f"the batch size is {batch_size}, expected at least 1.")
        self.loaded, self.corpus = loaded, corpus
        self.special_tokens, self.batch_size = special_tokens, batch_size
        self.pooling = parse(pooling) if pooling else None
        self.max_length = limit(loaded, max_length)
        self._names = self._state_names()
        self._choices = self._chosen(layers, self.pooling)
        self.layers: list[Layer] = [choice.label for choice in self._choices]
        self.width = self._probe_width

    def _state_names(self) -> list[str]:
        """Names of the hidden states, counted on a forward pass over one short text."""
        probe = encode(self.loaded, [next(iter(self.corpus))], self.max_length)
        if not probe:
            raise InputError("the first text has no tokens for this tokenizer; give a text it can read.")
        short = probe[0]._replace(tokens=probe[0].tokens[:8], special=probe[0].special[:8])
        states, decoder = self._forward(*padded([short], self.loaded.pad))
        self._probe_width = int(states[0].shape[2])
        widths = {int(s.shape[2]) for s in (*states, *decoder)}
        if len(widths) > 1:
            raise InputError(f"the layers of {self.loaded.name} have different widths ({sorted(widths)}).")
        return state_names(len(states), len(decoder))

    def _chosen(self, layers: Any, pooling: Pooling | None) -> list[Choice]:
        chosen = choose(pooling.layers if pooling and pooling.layers else layers, self._names)
        mixed = [c.label for c in chosen if len(c.states) > 1]
        if mixed and pooling is None:
            raise InputError(f"the mix of layers {mixed[0]} needs a pooling, such as --pooling mean.")
        for choice in chosen:
            sides = {self._names[s].partition(".")[0] for s in choice.states}
            if len(choice.states) > 1 and "encoder" in sides and "decoder" in sides:
                raise InputError(f"the mix {choice.label} joins encoder and decoder layers, whose rows differ.")
        if any(c.before_norm for c in chosen):
            self._final_norm()
        return chosen

    @property
    def total(self) -> int | None:
        return self.corpus.count()

    @property
    def layer_names(self) -> dict[Layer, str]:
        """What to call each layer, where there is more to say than its number."""
        return {c.label: self._names[c.label] if isinstance(c.label, int) else str(c.label) for c in self._choices}

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; earlier texts are read and tokenized, but not run."""
        number = 0
        for encoded in self._encoded():
            for batch in self._batch(encoded) if number >= start else [None] * self._parts:
                if batch is not None:
                    yield batch
                number += 1

    @property
    def _parts(self) -> int:
        """Batches made from one forward pass: encoder and decoder rows differ, so they come apart."""
        return len({self._is_decoder(c) for c in self._choices})

    def _is_decoder(self, choice: Choice) -> bool:
        return self._names[choice.states[0]].startswith("decoder")

    def _encoded(self) -> Iterator[list[Encoded]]:
        """Batches of tokenized texts, sorted by length within a window."""
        texts = iter(self.corpus)
        while window := list(islice(texts, self.batch_size * _BATCHES_SORTED_TOGETHER)):
            encoded = encode(self.loaded, window, self.max_length)
            encoded.sort(key=lambda e: (-len(e.tokens), e.id))
            for i in range(0, len(encoded), self.batch_size):
                yield encoded[i : i + self.batch_size]

    def _forward(self, ids: NDArray[np.int64], mask: NDArray[np.bool_]) -> tuple[Any, Any]:
        """Hidden states of encoder (or only) stack and of decoder, each a tuple of (b, t, d)."""
        import torch

        device = self.loaded.device
        inputs = {
            "input_ids": torch.from_numpy(ids).to(device),
            "attention_mask": torch.from_numpy(mask.astype(np.int64)).to(device),
        }
        if self.loaded.encoder_decoder:
            inputs["decoder_input_ids"] = torch.from_numpy(self._shifted(ids)).to(device)
            inputs["decoder_attention_mask"] = inputs["attention_mask"]
        else:
            inputs["use_cache"] = False
        with torch.inference_mode():
            out = self.loaded.model(**inputs, output_hidden_states=True, return_dict=True)
        if self.loaded.encoder_decoder:
            return out.encoder_hidden_states, out.decoder_hidden_states
        if getattr(out, "hidden_states", None) is None:
            raise InputError(
                f"the model {self.loaded.name} ({type(self.loaded.model).__name__}) gives no hidden states."
            )
        return out.hidden_states, ()

    def _shifted(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """What the decoder reads: the text one place to the right, after the model's start token."""
        config = self.loaded.model.config
        start = getattr(config, "decoder_start_token_id", None)
        first = np.full((len(ids), 1), self.loaded.pad if start is None else start)
        return np.concatenate([first, ids[:, :-1]], axis=1)

    def _batch(self, encoded: list[Encoded]) -> Iterator[Batch]:
        ids, mask = padded(encoded, self.loaded.pad)
        special = filled([e.special for e in encoded], mask.shape, fill=False)
        before: dict[str, Any] = {}
        hook = None
        if any(c.before_norm for c in self._choices):
            hook = self._final_norm().register_forward_pre_hook(lambda _, args: before.update(state=args[0]))
        states, decoder = self._forward(ids, mask)
        if hook is not None:
            hook.remove()
        if any(s.shape[1] != ids.shape[1] for s in (*states, *decoder)):
            raise InputError(
                f"a layer of {self.loaded.name} changes the length of the sequence, which text rows cannot."
            )
        counts = {
            "texts": len(encoded),
            "truncated_texts": sum(e.cut > 0 for e in encoded),
            "truncated_tokens": sum(e.cut for e in encoded),
        }
        everything = (*states, *decoder)
        for side in sorted({self._is_decoder(c) for c in self._choices}):
            choices = [c for c in self._choices if self._is_decoder(c) == side]
            if side:  # the decoder reads the start token first, which belongs to no text
                ids = self._shifted(ids)
                special = np.concatenate([np.ones_like(special[:, :1]), special[:, :-1]], axis=1)
            counted = mask & ~special if self.special_tokens == "drop" else mask
            hidden = {c.label: before["state"] if c.before_norm else _mixed(everything, c.states) for c in choices}
            make = self._token_rows if self.pooling is None else self._pooled_rows
            layers, rows = make(hidden, encoded, ids, special, counted)
            yield Batch(layers, rows, counts)
            counts = {}

    def _token_rows(
        self, hidden: dict[Layer, Any], encoded: list[Encoded], ids: Any, special: Any, counted: Any
    ) -> tuple[dict[Layer, Any], Rows]:
        """Rows (n, d) of all tokens that count, with their ids."""
        import torch

        flat = np.flatnonzero(counted)
        every = len(flat) == counted.size
        index = torch.from_numpy(flat).to(self.loaded.device)
        layers = {}
        for label, state in hidden.items():
            rows = state.reshape(-1, state.shape[2])
            layers[label] = _wide(rows if every else rows.index_select(0, index))
        lengths = counted.sum(axis=1)
        known = Rows(
            sequence=np.repeat(np.array([e.id for e in encoded], np.uint64), lengths),
            token=ids.reshape(-1)[flat],
            position=np.tile(np.arange(ids.shape[1]), len(encoded))[flat],
            special=special.reshape(-1)[flat],
            group=_groups(encoded, lengths),
        )
        return layers, known

    def _pooled_rows(
        self, hidden: dict[Layer, Any], encoded: list[Encoded], ids: Any, special: Any, counted: Any
    ) -> tuple[dict[Layer, Any], Rows]:
        """Rows (b, d), one for each text that has a token that counts."""
        import torch

        assert self.pooling is not None
        some = np.flatnonzero(counted.any(axis=1))
        mask = torch.from_numpy(counted[some]).to(self.loaded.device)
        index = torch.from_numpy(some).to(self.loaded.device)
        layers = {label: _wide(self.pooling.pool(state[index], mask)) for label, state in hidden.items()}
        kept = [encoded[i] for i in some]
        known = Rows(np.array([e.id for e in kept], np.uint64), group=_groups(kept, np.ones(len(kept), np.int64)))
        return layers, known

    def _final_norm(self) -> Any:
        model = self.loaded.model
        for name in _FINAL_NORMS:
            if hasattr(model, name):
                return getattr(model, name)
        raise InputError(
            f"the model {self.loaded.name} ({type(model).__name__}) has no norm after its last block, "
            "so there is no state before it; leave .before_norm out."
        )

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """The text of token types, None where rows are pooled."""
        if self.pooling is not None:
            return None
        return [str(name) for name in self.loaded.tokenizer.convert_ids_to_tokens(tokens.tolist())]

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        model = self.loaded.model
        return {
            "kind": "model",
            "model": self.loaded.name,
            "revision": self.loaded.revision,
            "class": type(model).__name__,
            "parameters": sum(p.numel() for p in model.parameters()),
            "dtype": str(model.dtype).removeprefix("torch."),
            "device": self.loaded.device,
            "states": len(self._names),
            "width": self.width,
            "files": self.loaded.files,
            "pooling": self.pooling.name if self.pooling else None,
            "special_tokens": self.special_tokens,
            "max_length": self.max_length,
            "batch_size": self.batch_size,
            "corpus": self.corpus.describe() | {"name": self.corpus.name},
        }


def _mixed(states: Sequence[Any], wanted: tuple[int, ...]) -> Any:
    """One state, or the average of several."""
    total = states[wanted[0]]
    for i in wanted[1:]:
        total = total + states[i]
    return total if len(wanted) == 1 else total / len(wanted)


def _wide(rows: Any) -> Any:
    """Half precision as float32; float32 and float64 as they are."""
    return rows if rows.element_size() >= 4 else rows.float()


def _groups(encoded: list[Encoded], lengths: NDArray[Any]) -> NDArray[np.str_] | None:
    if encoded[0].group is None:
        return None
    return np.repeat(np.array([str(e.group) for e in encoded]), lengths)
