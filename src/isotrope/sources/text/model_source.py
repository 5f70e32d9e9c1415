"""Rows from the hidden states of a model: what sources of texts, images and sounds have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import Choice, Layer, resolve_layers
from isotrope.sources.batch import Batch, Groups, Rows
from isotrope.sources.models.hidden_states import name_states
from isotrope.sources.models.load import Loaded
from isotrope.sources.source import Source, batches_per_shard
from isotrope.sources.text.pooling import ACROSS_LAYERS, compute_weighted_mean, parse
from isotrope.sources.text.token_weights import TokenWeights


class KnownTokens(NamedTuple):
    """What is known of the rows (b, t) of some layers.

    Attributes:
        ids: Token types, None where rows have none.
        special: Which rows are of special tokens.
        mask: Which rows are not padding.
    """

    ids: NDArray[np.int64] | None
    special: NDArray[np.bool_]
    mask: NDArray[np.bool_]


class ModelSource(Source):
    """A source that runs a model on items: some rows for each of them, or with a pooling one row.

    A subclass calls `_choose_layers` once it knows the hidden states of the model, and defines `_passes` and `_run`.

    Args:
        loaded: The model.
        corpus: The texts, images or sounds; each has an `id` and a `group`.
        pooling: See `isotrope.sources.text.pooling.parse`; None for all rows.
        token_weights: Weights of token types for the pooling `mean`.
        special_tokens: "keep" or "drop" the rows of special tokens.
        batch_size: Items in a forward pass.
        in_order: Whether rows come in the order of the items.
    """

    def __init__(
        self,
        loaded: Loaded,
        corpus: Any,
        *,
        pooling: str | None,
        token_weights: TokenWeights | None = None,
        special_tokens: str,
        batch_size: int,
        in_order: bool,
    ) -> None:
        if special_tokens not in ("keep", "drop"):
            raise InputError(f"special tokens can be kept or dropped, got {special_tokens!r}: say keep or drop.")
        if batch_size < 1:
            raise InputError(f"the batch size is {batch_size}, expected at least 1.")
        self.loaded, self.corpus = loaded, corpus
        self.pooling = parse(pooling) if pooling else None
        self.token_weights = token_weights
        self.special_tokens, self.batch_size, self.in_order = special_tokens, batch_size, in_order

    def _choose_layers(self, layers: str | int | Sequence[int | str], encoder: int, decoder: int) -> None:
        """Find the layers that are asked for, or those that the pooling names itself.

        Args:
            layers: See `isotrope.layers.resolve_layers`.
            encoder: Number of hidden states of the encoder, or of a model without a decoder.
            decoder: Number of hidden states of the decoder.
        """
        self._names = name_states(self.loaded, encoder, decoder)
        pooling = self.pooling
        if pooling and pooling.layers and layers != "all":
            raise InputError(f"the pooling {pooling.name} names its layers itself; leave the layers {layers!r} out.")
        try:
            self.choices = resolve_layers(pooling.layers if pooling and pooling.layers else layers, self._names)
        except InputError as error:
            if pooling is None or pooling.name not in ACROSS_LAYERS:
                raise
            raise InputError(f"{error} Name the layers of the pooling, such as {pooling.name}:0..-1.") from error
        self.layers: list[Layer] = [choice.label for choice in self.choices]

    def _group_layers(self, key: Callable[[Choice], Hashable]) -> None:
        """Group the layers that have the same rows: each group is a batch of its own."""
        groups: dict[Hashable, list[Choice]] = {}
        for choice in self.choices:
            groups.setdefault(key(choice), []).append(choice)
        self._layouts = list(groups.values())

    @property
    def parts(self) -> int:
        """Batches made from one forward pass: layers whose rows differ come apart."""
        return len(self._layouts)

    @property
    def total(self) -> int | None:
        count: int | None = self.corpus.count()
        return count

    @property
    def layer_names(self) -> dict[Layer, str]:
        """What to call each layer, where there is more to say than its number."""
        return {c.label: self._names[c.label] if isinstance(c.label, int) else str(c.label) for c in self.choices}

    @property
    def shard_size(self) -> int:
        return self.batch_size * batches_per_shard(None if self.total is None else -(-self.total // self.batch_size))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; earlier items are read, but the model is not run on them."""
        skip = start
        for items, counts in self._passes():
            if skip >= self.parts:
                skip -= self.parts
                continue
            yield from islice(self._batches(items, counts), skip, None)  # no name here that would keep a batch alive
            skip = 0

    def _batches(self, items: list[Any], counts: Mapping[str, int]) -> Iterator[Batch]:
        """The batches of one forward pass; without items only what was counted."""
        return self._run(items, counts) if items else iter([Batch({}, Rows(np.empty(0, np.uint64)), counts)])

    @abstractmethod
    def _passes(self) -> Iterator[tuple[list[Any], Mapping[str, int]]]:
        """The items of each forward pass, and what was counted since the last one."""

    @abstractmethod
    def _run(self, items: list[Any], counts: Mapping[str, int]) -> Iterator[Batch]:
        """Run the model on items, at least one."""

    def _make_batch(
        self, hidden: Mapping[Layer, Any], items: list[Any], tokens: KnownTokens, counts: Mapping[str, int]
    ) -> Batch:
        """The batch of some layers, (b, t, d) each, or (b, layers, t, d) for a pooling across layers."""
        counted = tokens.mask & ~tokens.special if self.special_tokens == "drop" else tokens.mask
        select = self._select_rows if self.pooling is None else self._pool_rows
        return Batch(*select(hidden, items, tokens, counted), counts)

    def _select_rows(
        self, hidden: Mapping[Layer, Any], items: list[Any], tokens: KnownTokens, counted: NDArray[np.bool_]
    ) -> tuple[dict[Layer, Any], Rows]:
        """Rows (n, d) of all tokens that count."""
        import torch

        flat = np.flatnonzero(counted)
        index = torch.from_numpy(flat)
        layers = {}
        for label, state in hidden.items():
            rows = state.reshape(-1, state.shape[2])
            layers[label] = widen(rows if len(flat) == len(rows) else rows.index_select(0, index.to(rows.device)))
        lengths = counted.sum(axis=1)
        known = Rows(
            sequence=np.array([item.id for item in items], np.uint64).repeat(lengths),
            token=None if tokens.ids is None else tokens.ids.reshape(-1)[flat],
            position=np.tile(np.arange(counted.shape[1]), len(items))[flat],
            special=tokens.special.reshape(-1)[flat],
            group=_number_groups(items, lengths),
        )
        return layers, known

    def _pool_rows(
        self, hidden: Mapping[Layer, Any], items: list[Any], tokens: KnownTokens, counted: NDArray[np.bool_]
    ) -> tuple[dict[Layer, Any], Rows]:
        """Rows (b, d), one for each item that has a token that counts."""
        import torch

        assert self.pooling is not None
        used = np.flatnonzero(counted.any(axis=1))
        pool = self.pooling.pool
        weights: NDArray[Any] = counted[used]
        if self.token_weights is not None:
            assert tokens.ids is not None
            weights = self.token_weights.values[np.where(weights, tokens.ids[used], 0)] * weights
            pool = compute_weighted_mean
        layers = {}
        for label, state in hidden.items():
            index, mask = (torch.from_numpy(part).to(state.device) for part in (used, weights))
            layers[label] = pool(widen(state[index]), mask)
        kept = [items[i] for i in used]
        ids = np.array([item.id for item in kept], np.uint64)
        return layers, Rows(ids, group=_number_groups(kept, np.ones(len(kept), np.int64)))

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """The text of token types, None where rows are pooled or the model has no tokenizer."""
        if self.pooling is not None or self.loaded.tokenizer is None:
            return None
        return [str(name) for name in self.loaded.tokenizer.convert_ids_to_tokens(tokens.tolist())]

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        model = self.loaded.model
        dtype = getattr(model, "dtype", None) or next(model.parameters()).dtype
        return {
            **self.loaded.describe(),
            "hooks": self.loaded.hooks,
            "dtype": str(dtype).removeprefix("torch."),
            "states": len(self._names),
            "layers": list(self.layers),
            "width": self.width,
            "pooling": self.pooling.name if self.pooling else None,
            "special_tokens": self.special_tokens,
            "batch_size": self.batch_size,
            "corpus": self.corpus.describe() | {"name": self.corpus.name},
        }


def widen(rows: Any) -> Any:
    """Half precision as float32; float32 and float64 as they are."""
    return rows if rows.element_size() >= 4 else rows.float()


def average_states(states: Mapping[int, Any], wanted: tuple[int, ...]) -> Any:
    """One state, or the average of several."""
    if len(wanted) == 1:
        return states[wanted[0]]
    return sum(widen(states[i]) for i in wanted) / len(wanted)


def stack_states(states: Mapping[int, Any], wanted: tuple[int, ...]) -> Any:
    """Several states side by side, (b, layers, t, d)."""
    import torch

    return torch.stack([states[i] for i in wanted], dim=1)


def _number_groups(items: list[Any], lengths: NDArray[Any]) -> Groups | None:
    """The groups of the rows of items, of which each has so many rows; None where they have no groups."""
    if not items or items[0].group is None:
        return None
    return Groups.of(item.group for item in items).repeat(lengths)
