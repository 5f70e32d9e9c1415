"""Hidden states of any model of images or sounds: every layer from one forward pass, one batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import Choice, Layer
from isotrope.sources.batch import Batch, Groups, Rows
from isotrope.sources.media import audio, images
from isotrope.sources.media.clips import Clip, alike
from isotrope.sources.media.corpus import Item, Media
from isotrope.sources.media.feature_maps import Flat, flat, place_names, places
from isotrope.sources.media.speech import MOST, Heard, listen
from isotrope.sources.models.hidden_states import find_norm_after, name_states, record_input, run_model
from isotrope.sources.models.load import Loaded
from isotrope.sources.models.modality import WORDS
from isotrope.sources.source import Cursor, Source, batches_per_shard
from isotrope.sources.text.layer_choice import check_options, name_layers, resolve_pooled_layers
from isotrope.sources.text.pooling import parse
from isotrope.sources.text.rows import widen

_CLIPS: dict[str, Callable[[Loaded, Item, Counter[str]], Iterator[Clip]]] = {
    "image": images.clips,
    "audio": audio.clips,
}

_UNITS = {"image": images.UNIT, "audio": audio.UNIT}

#: What rows are, and what their token types.
_ROWS = {
    "image": "patches or places of a map; their token types are positions in the grid",
    "audio": "frames, which have no token types, and of a decoder the tokens that it hears",
}

_ONE = {"image": "image", "audio": "window of sound"}

#: Tokens that a decoder hears while its layers are looked at.
_PROBE = 2


class _Known(NamedTuple):
    """What is known of the rows (b, t) of some layers."""

    mask: NDArray[np.bool_]
    token: NDArray[np.int64] | None
    special: NDArray[np.bool_]


class MediaSource(Source):
    """Rows from the hidden states of a model over images or sounds, or with a pooling one row for each.

    Layers may differ in width and in their number of rows: those with the same rows come in a batch together.

    Args:
        loaded: The model.
        media: The images or sounds.
        layers: As for `TextSource`.
        pooling: As for `TextSource`.
        special_tokens: "keep" or "drop" rows that are no patch, such as [CLS], and the start of what a decoder hears.
        batch_size: Images, or windows of sound, in a forward pass.
        in_order: Rows come in the order of what they are of; otherwise those of one shape go together: faster.
    """

    def __init__(
        self,
        loaded: Loaded,
        media: Media,
        *,
        layers: str | int | Sequence[int | str] = "all",
        pooling: str | None = None,
        special_tokens: str = "keep",
        batch_size: int = 8,
        in_order: bool = False,
    ) -> None:
        check_options(special_tokens, batch_size)
        self.loaded, self.media = loaded, media
        self._items = Cursor(lambda: iter(media))
        self.special_tokens, self.batch_size, self.in_order = special_tokens, batch_size, in_order
        self.unit = _UNITS[loaded.modality]
        self.pooling = parse(pooling) if pooling else None
        self._listens = loaded.modality == "audio" and loaded.encoder_decoder and loaded.hooks is None
        first = next((clip for clips, _ in self._clips() for clip in clips), None)
        if first is None:
            what = WORDS[loaded.modality]
            raise InputError(f"none of the {what} in {media.name} can be used: broken, or silent; give others.")
        encoder, decoder = self._run([first], most=_PROBE)[:2]
        states = [flat(state, self._image(first)) for state in (*encoder, *decoder)]
        self._encoder = len(encoder)
        self._names = name_states(loaded, len(encoder), len(decoder))
        self.choices = resolve_pooled_layers(layers, self.pooling, self._names)
        if mixes := [choice for choice in self.choices if len(choice.states) > 1]:
            raise InputError(f"the mix of layers {mixes[0].label} is for text; name one layer at a time.")
        self._norm = None
        if any(choice.before_norm for choice in self.choices):
            self._norm = find_norm_after(loaded, lambda: self._run([first], most=_PROBE)[:2])
        self.layers: list[Layer] = [choice.label for choice in self.choices]
        self.width = max(states[i].rows.shape[2] for choice in self.choices for i in choice.states)
        self._layouts = self._group_layers(states)

    def _group_layers(self, states: list[Flat]) -> list[list[Choice]]:
        """The layers that have the same rows, together."""
        groups: dict[tuple[Any, ...], list[Choice]] = {}
        for choice in self.choices:
            (number,) = choice.states
            key = (number >= self._encoder, states[number].rows.shape[1], states[number].grid)
            groups.setdefault(key, []).append(choice)
        return list(groups.values())

    @property
    def parts(self) -> int:
        """Batches made from one forward pass: layers whose rows differ come apart."""
        return len(self._layouts)

    @property
    def total(self) -> int | None:
        return self.media.total

    @property
    def layer_names(self) -> dict[Layer, str]:
        """What to call each layer, where there is more to say than its number."""
        return name_layers(self.choices, self._names)

    def _clips(self) -> Iterator[tuple[list[Clip], Counter[str]]]:
        """Batches of clips that are ready, and what was counted since the last one."""
        counts: Counter[str] = Counter()
        items = iter(self.media)
        for first in items:
            yield from self._ready(chain([first], islice(items, self.shard_size - 1)), counts)
        if counts:
            yield [], counts.copy()

    def _ready(self, items: Iterable[Item], counts: Counter[str]) -> Iterator[tuple[list[Clip], Counter[str]]]:
        """Batches of the clips of a shard; what is counted after its last one stays in the counts."""
        ready = (clip for item in items for clip in _CLIPS[self.loaded.modality](self.loaded, item, counts))
        for batch in alike(ready, self.batch_size, in_order=self.in_order):
            yield batch, counts.copy()
            counts.clear()

    @property
    def shard_size(self) -> int:
        return self.batch_size * batches_per_shard(None if self.total is None else -(-self.total // self.batch_size))

    def shard(self, number: int) -> Iterator[Batch]:
        """The batches of one shard; images or sounds before it are passed over."""
        size, counts = self.shard_size, Counter[str]()
        for clips, counted in self._ready(self._items.between(number * size, (number + 1) * size), counts):
            yield from self._batches(clips, counted)
        if counts:
            yield Batch({}, Rows(np.empty(0, np.uint64)), counts)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; earlier images or sounds are read, but not run."""
        skip, parts = start, self.parts
        for clips, counts in self._clips():
            if skip >= parts and clips:
                skip -= parts
                continue
            if clips:
                yield from islice(self._batches(clips, counts), skip, None)
                skip = 0
            elif not skip:  # the last ones could not be used
                yield Batch({}, Rows(np.empty(0, np.uint64)), counts)

    def _run(self, clips: list[Clip], most: int = MOST) -> tuple[list[Any], list[Any], Heard | None]:
        """States of encoder and decoder, and what the decoder heard."""
        import torch

        dtype = next(self.loaded.model.parameters()).dtype
        tensors = {
            name: torch.cat([clip.inputs[name] for clip in clips]).to(self.loaded.device, dtype)
            for name in clips[0].inputs
        }
        if not self._listens:
            return *run_model(self.loaded, tensors), None
        wanted = not hasattr(self, "choices") or any(c.states[0] >= self._encoder for c in self.choices)
        heard = listen(self.loaded, tensors, decoder=wanted, most=most)
        return heard.encoder, heard.decoder, heard

    def _image(self, clip: Clip) -> tuple[int, int] | None:
        """Height and width of an image as the model is given it."""
        if self.loaded.modality != "image":
            return None
        height, width = next(iter(clip.inputs.values())).shape[-2:]
        return int(height), int(width)

    def _batches(self, clips: list[Clip], counts: Counter[str]) -> Iterator[Batch]:
        with record_input(self._norm) as before:
            encoder, decoder, heard = self._run(clips)
        states = dict(enumerate((*encoder, *decoder)))
        del encoder, decoder
        for choices in self._layouts:
            hidden: dict[Layer, Flat] = {}
            for choice in choices:
                state = before[-1] if choice.before_norm else states[choice.states[0]]
                hidden[choice.label] = flat(state, self._image(clips[0]))
            known = self._describe_rows(choices[0], next(iter(hidden.values())), clips, heard)
            rows = {label: widen(found.rows) for label, found in hidden.items()}
            lengths = sorted({found.shape[1] for found in rows.values()})
            if len(lengths) > 1:
                raise InputError(
                    f"the layers {', '.join(map(str, rows))} of {self.loaded.name} have as many rows as each other for "
                    f"one input and not for another ({', '.join(map(str, lengths))}); name one of them with --layers."
                )
            make = self._rows if self.pooling is None else self._pool
            yield Batch(*make(rows, known, clips), counts)
            counts = Counter()

    def _describe_rows(self, choice: Choice, found: Flat, clips: list[Clip], heard: Heard | None) -> _Known:
        """What is known of the rows of a layer: which are real, their token types, and which are special."""
        shape = tuple(found.rows.shape[:2])
        if choice.states[0] >= self._encoder and heard is not None:
            return _Known(heard.mask, heard.ids, heard.special)
        if (image := self._image(clips[0])) is not None:
            where = places(shape[1], found.grid, image, getattr(self.loaded.config, "patch_size", None))
            token, special = np.broadcast_to(where.token, shape), np.broadcast_to(where.special, shape)
            return _Known(np.ones(shape, dtype=bool), token, special)
        real = np.array([np.ceil(round(shape[1] * clip.share, 6)) for clip in clips])
        return _Known(np.arange(shape[1]) < real[:, None], None, np.zeros(shape, dtype=bool))

    def _count_mask(self, known: _Known) -> NDArray[np.bool_]:
        return known.mask & ~known.special if self.special_tokens == "drop" else known.mask

    def _rows(self, states: dict[Layer, Any], known: _Known, clips: list[Clip]) -> tuple[dict[Layer, Any], Rows]:
        import torch

        counted = self._count_mask(known)
        kept = np.flatnonzero(counted)
        layers = {label: state.reshape(-1, state.shape[2]) for label, state in states.items()}
        if len(kept) < counted.size:
            index = torch.from_numpy(kept).to(self.loaded.device)
            layers = {label: rows.index_select(0, index) for label, rows in layers.items()}
        lengths = counted.sum(axis=1)
        rows = Rows(
            sequence=np.repeat(np.array([clip.id for clip in clips], np.uint64), lengths),
            token=None if known.token is None else known.token.reshape(-1)[kept],
            position=np.tile(np.arange(counted.shape[1]), len(clips))[kept],
            special=known.special.reshape(-1)[kept],
            group=_groups(clips, lengths),
        )
        return layers, rows

    def _pool(self, states: dict[Layer, Any], known: _Known, clips: list[Clip]) -> tuple[dict[Layer, Any], Rows]:
        import torch

        assert self.pooling is not None
        counted = self._count_mask(known)
        mask = torch.from_numpy(counted.copy()).to(self.loaded.device)
        layers = {label: self.pooling.pool(state, mask) for label, state in states.items()}
        ids = np.array([clip.id for clip in clips], np.uint64)
        return layers, Rows(ids, group=_groups(clips, np.ones(len(clips), np.int64)))

    def estimate_rows(self, *, rows: int, types: int, units: int) -> tuple[int, int]:
        """Estimate the rows and the token types of a layer from those that the first so many units gave."""
        return round(rows * max((self.total or units) / units, 1.0)), types

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """Places in the grid, or what a decoder heard."""
        if self.pooling is not None:
            return None
        if self.loaded.modality == "image":
            return place_names(tokens)
        if self.loaded.tokenizer is None:
            return None
        return [str(name) for name in self.loaded.tokenizer.convert_ids_to_tokens(tokens.tolist())]

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        return {
            **self.loaded.describe(),
            "rows_are": f"one for each {_ONE[self.loaded.modality]}" if self.pooling else _ROWS[self.loaded.modality],
            "hooks": self.loaded.hooks,
            "dtype": str(next(self.loaded.model.parameters()).dtype).removeprefix("torch."),
            "states": len(self._names),
            "layers": list(self.layers),
            "width": self.width,
            "pooling": self.pooling.name if self.pooling else None,
            "special_tokens": self.special_tokens,
            "batch_size": self.batch_size,
            "corpus": self.media.facts() | {"name": self.media.name},
        }


def _groups(clips: list[Clip], lengths: NDArray[Any]) -> Groups | None:
    if clips[0].group is None:
        return None
    return Groups.of(clip.group for clip in clips).repeat(lengths)
