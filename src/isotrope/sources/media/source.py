"""Hidden states of any model of images or sounds: every layer from one forward pass, one batch at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.layers import Choice, Layer
from isotrope.sources.batch import Batch
from isotrope.sources.media import audio, images
from isotrope.sources.media.clips import Clip, group_by_shape
from isotrope.sources.media.corpus import Item, Media
from isotrope.sources.media.feature_maps import MAPS, Flat, find_places, flatten, name_places
from isotrope.sources.media.speech import MOST, Heard, listen
from isotrope.sources.models.hidden_states import find_final_norm, record_input, run_model
from isotrope.sources.models.load import Loaded
from isotrope.sources.models.modality import WORDS
from isotrope.sources.source import Cursor
from isotrope.sources.text.model_source import KnownTokens, ModelSource

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

#: The widest row of a whole map: statistics take memory that grows with the square of the width.
_WIDEST = 16_384

#: Tokens that a decoder hears while its layers are looked at.
_PROBE = 2


class MediaSource(ModelSource):
    """Rows from the hidden states of a model over images or sounds, or with a pooling one row for each.

    Layers may differ in width and in their number of rows: those with the same rows come in a batch together.

    Args:
        loaded: The model.
        media: The images or sounds.
        layers: As for `TextSource`.
        pooling: As for `TextSource`.
        maps: What the rows of a convolution's map are: its "places", or the "whole" map as one row for each image.
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
        maps: str = "places",
        special_tokens: str = "keep",
        batch_size: int = 8,
        in_order: bool = False,
    ) -> None:
        super().__init__(
            loaded, media, pooling=pooling, special_tokens=special_tokens, batch_size=batch_size, in_order=in_order
        )
        if maps not in MAPS or (maps == "whole" and loaded.modality != "image"):
            allowed = " or ".join(MAPS) if loaded.modality == "image" else "places"
            raise InputError(f"the rows of maps of a model of {WORDS[loaded.modality]} are {allowed}, not {maps!r}.")
        self.maps = maps
        self._cursor = Cursor(lambda: iter(media))
        self.unit = _UNITS[loaded.modality]
        self._listens = loaded.modality == "audio" and loaded.encoder_decoder and loaded.hooks is None
        first = next((clip for clips, _ in self._passes() for clip in clips), None)
        if first is None:
            what = WORDS[loaded.modality]
            raise InputError(f"none of the {what} in {media.name} can be used: broken, or silent; give others.")
        self._first_shape = first.shape
        encoder, decoder, _ = self._compute_states([first], most=_PROBE)
        states = [flatten(state, self._image(first), maps) for state in (*encoder, *decoder)]
        self._encoder = len(encoder)
        self._choose_layers(layers, len(encoder), len(decoder))
        if mixes := [choice for choice in self.choices if len(choice.states) > 1]:
            raise InputError(f"the mix of layers {mixes[0].label} is for text; name one layer at a time.")
        self._norm = None
        if any(choice.before_norm for choice in self.choices):
            self._norm = find_final_norm(loaded, lambda: self._compute_states([first], most=_PROBE)[:2])
        self.width = max(states[i].rows.shape[2] for choice in self.choices for i in choice.states)
        if maps == "whole" and self.width > _WIDEST:
            raise InputError(
                f"whole maps of {loaded.name} have up to {self.width:,} numbers, and rows have at most {_WIDEST:,}; "
                "name layers of smaller maps with --layers, or leave maps out."
            )
        shapes = [(i >= self._encoder, state.rows.shape[1], state.grid) for i, state in enumerate(states)]
        self._group_layers(lambda choice: shapes[choice.states[0]])

    def _passes(self) -> Iterator[tuple[list[Clip], Counter[str]]]:
        """Batches of clips that are ready, and what was counted since the last one."""
        counts: Counter[str] = Counter()
        items = iter(self.corpus)
        for first in items:
            yield from self._ready(chain([first], islice(items, self.shard_size - 1)), counts)
        if counts:
            yield [], counts

    def _ready(self, items: Iterable[Item], counts: Counter[str]) -> Iterator[tuple[list[Clip], Counter[str]]]:
        """Batches of the clips of a shard; what is counted after its last one stays in the counts."""
        ready = (clip for item in items for clip in _CLIPS[self.loaded.modality](self.loaded, item, counts))
        for batch in group_by_shape(ready, self.batch_size, in_order=self.in_order):
            yield batch, counts.copy()
            counts.clear()

    def shard(self, number: int) -> Iterator[Batch]:
        """The batches of one shard; images or sounds before it are passed over."""
        size, counts = self.shard_size, Counter[str]()
        for clips, counted in self._ready(self._cursor.between(number * size, (number + 1) * size), counts):
            yield from self._batches(clips, counted)
        if counts:
            yield from self._batches([], counts)

    def _compute_states(self, clips: list[Clip], most: int = MOST) -> Heard:
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
        return listen(self.loaded, tensors, decoder=wanted, most=most)

    def _image(self, clip: Clip) -> tuple[int, int] | None:
        """Height and width of an image as the model is given it."""
        if self.loaded.modality != "image":
            return None
        height, width = next(iter(clip.inputs.values())).shape[-2:]
        return int(height), int(width)

    def _run(self, items: list[Clip], counts: Mapping[str, int]) -> Iterator[Batch]:
        if self.maps == "whole" and items[0].shape != self._first_shape:
            raise InputError("whole maps can be compared for images of one size only; resize them, or leave maps out.")
        with record_input(self._norm) as before:
            encoder, decoder, heard = self._compute_states(items)
        states = dict(enumerate((*encoder, *decoder)))
        del encoder, decoder
        for choices in self._layouts:
            hidden: dict[Layer, Flat] = {}
            for choice in choices:
                state = before[-1] if choice.before_norm else states[choice.states[0]]
                hidden[choice.label] = flatten(state, self._image(items[0]), self.maps)
            tokens = self._describe_tokens(choices[0], next(iter(hidden.values())), items, heard)
            rows = {label: found.rows for label, found in hidden.items()}
            lengths = sorted({found.shape[1] for found in rows.values()})
            if len(lengths) > 1:
                raise InputError(
                    f"the layers {', '.join(map(str, rows))} of {self.loaded.name} have as many rows as each other for "
                    f"one input and not for another ({', '.join(map(str, lengths))}); name one of them with --layers."
                )
            yield self._make_batch(rows, items, tokens, counts)
            counts = {}

    def _describe_tokens(
        self, choice: Choice, found: Flat, clips: list[Clip], heard: KnownTokens | None
    ) -> KnownTokens:
        """What is known of the rows of a layer: their token types, which are special, and which are real."""
        shape = tuple(found.rows.shape[:2])
        if choice.states[0] >= self._encoder and heard is not None:
            return heard
        if (image := self._image(clips[0])) is not None:
            patch = getattr(self.loaded.config, "patch_size", None)
            ids, special = find_places(shape[1], found.grid, image, patch)
            whole = np.ones(shape, dtype=bool)
            return KnownTokens(np.broadcast_to(ids, shape), np.broadcast_to(special, shape), whole)
        real = np.array([np.ceil(round(shape[1] * clip.share, 6)) for clip in clips])
        return KnownTokens(None, np.zeros(shape, dtype=bool), np.arange(shape[1]) < real[:, None])

    def estimate_rows(self, *, rows: int, types: int, units: int) -> tuple[int, int]:
        """Estimate the rows and the token types of a layer from those that the first so many units gave."""
        return round(rows * max((self.total or units) / units, 1.0)), types

    def token_names(self, tokens: NDArray[np.int64]) -> list[str] | None:
        """Places in the grid, or what a decoder heard."""
        if self.pooling is None and self.loaded.modality == "image":
            return name_places(tokens)
        return super().token_names(tokens)

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        modality = self.loaded.modality
        rows_are = f"one for each {_ONE[modality]}" if self.pooling else _ROWS[modality]
        whole = {"maps": self.maps} if self.maps != "places" else {}
        return super().describe() | {"rows_are": rows_are} | whole
