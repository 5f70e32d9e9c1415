"""What a command reads: vectors, or a model over text, images or sounds, and how."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import Corpus, open_corpus
from isotrope.sources.media.corpus import among, kind_of, open_media
from isotrope.sources.media.source import MediaSource
from isotrope.sources.models.load import Loaded, can_read, load
from isotrope.sources.models.modality import WORDS
from isotrope.sources.source import Source
from isotrope.sources.text.sentence_model import ENCODED, EncodedSource, load_pipeline
from isotrope.sources.text.source import TextSource
from isotrope.sources.text.token_weights import TokenWeights
from isotrope.sources.vectors.source import ArraySource

#: What only a model over a text has.
_OF_TEXTS = (
    "pooling", "split", "unit", "special_tokens", "revision", "gguf_file", "trust_remote_code", "max_length", "device",
    "token_weights", "hooks",
)  # fmt: skip

#: What only text has, among these.
_OF_TEXT_ALONE = ("unit", "gguf_file", "max_length", "token_weights")


@dataclass(frozen=True, kw_only=True)
class Input:
    """All that there is to say about where rows come from; what each field means stands with `isotrope.scan`.

    token_weights: by which the pooling `mean` counts tokens, `TokenWeights` or a file of them.
    """

    model: Any = None
    text: Any = None
    vectors: Any = None
    layers: Any = "all"
    pooling: str | None = None
    token_weights: TokenWeights | str | Path | None = None
    column: str | None = None
    split: str | None = None
    unit: str = "line"
    group_by: str | None = None
    special_tokens: str = "keep"
    revision: str | None = None
    gguf_file: str | None = None
    hooks: str | None = None
    trust_remote_code: bool = False
    precision: str | None = None
    batch_size: int | None = None
    max_length: int | None = None
    device: str = "auto"
    in_order: bool = False
    bad_files: str = "stop"

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> Input:
        """The fields that are among the given arguments of a function or a command.

        >>> Input.among({"text": "a.txt", "seed": 3}).text
        'a.txt'
        """
        return cls(**{f.name: given[f.name] for f in fields(cls) if f.name in given})

    def open(self) -> Source:
        """The source of rows; what the model reads is opened before the model, which takes longer."""
        if self.precision not in (None, "fast", "exact"):
            raise InputError(f"there is no precision {self.precision!r}; say fast or exact.")
        if self.vectors is not None:
            return self._vectors()
        if self.bad_files != "stop":
            raise InputError("only files of vectors can be left out; leave bad-files out.")
        modality = self.modality()
        return self._texts() if modality == "text" else self._media(modality)

    def modality(self) -> str:
        """What the model reads: what its class says, or where it reads several things what is given."""
        can = can_read(
            self.model,
            revision=self.revision,
            gguf_file=self.gguf_file,
            trust_remote_code=self.trust_remote_code,
        )
        if len(can) == 1:
            return can[0]
        return among(can, self.text, column=self.column, split=self.split, group_by=self.group_by)

    def _vectors(self) -> Source:
        if self.model is not None or self.text is not None:
            given = "model" if self.model is not None else "text"
            raise InputError(f"vectors take no {given}; give the vectors alone, or a model and a text.")
        if self.layers not in ("all", 0, "0", -1, "-1"):
            raise InputError("vectors have no layers; leave them out.")
        for f in fields(self):
            if f.name in _OF_TEXTS and getattr(self, f.name) != f.default:
                name = f.name.replace("_", "-")
                raise InputError(f"vectors have no use for {name} ({getattr(self, f.name)!r}); leave it out.")
        return ArraySource(
            self.vectors,
            column=self.column,
            group_by=self.group_by,
            batch_rows=self.batch_size,
            exact=self.precision != "fast",
            bad_files=self.bad_files,
        )

    def _texts(self) -> Source:
        try:
            corpus = open_corpus(
                self.text, column=self.column, split=self.split, group_by=self.group_by, unit=self.unit
            )
        except InputError as error:
            if (held := kind_of(self.text)) is None:
                raise
            what, model = WORDS[held], "embedded model" if self.model is None else f"model {self.model}"
            raise InputError(f"the {model} reads text and got {what}; name a model of {what}.") from error
        return self.rows_over(corpus, self.load())

    def _media(self, modality: str) -> Source:
        for f in fields(self):
            if f.name in _OF_TEXT_ALONE and getattr(self, f.name) != f.default:
                raise InputError(f"{modality} has no use for {f.name.replace('_', '-')}; leave it out.")
        media = open_media(self.text, modality, column=self.column, split=self.split, group_by=self.group_by)
        return MediaSource(
            self.load(modality),
            media,
            layers=self.layers,
            pooling=self.pooling,
            special_tokens=self.special_tokens,
            batch_size=self.batch_size or 8,
            in_order=self.in_order,
        )

    def load(self, modality: str = "text") -> Loaded:
        """The model, to read text or something else; for the space "encoded" one of sentence-transformers."""
        if self.layers == ENCODED:
            return load_pipeline(
                self.model,
                revision=self.revision,
                device=self.device,
                exact=self.precision == "exact",
                trust_remote_code=self.trust_remote_code,
                max_length=self.max_length,
            )
        return load(
            self.model,
            revision=self.revision,
            gguf_file=self.gguf_file,
            device=self.device,
            exact=self.precision == "exact",
            trust_remote_code=self.trust_remote_code,
            modality=modality,
            hooks=self.hooks,
        )

    def rows_over(self, corpus: Corpus, loaded: Loaded) -> Source:
        """The rows of a corpus by a model that is loaded already: hidden states, or what it encodes texts to itself."""
        if self.layers != ENCODED:
            return self.over(corpus, loaded)
        for name in ("pooling", "token_weights", "hooks"):
            if getattr(self, name) is not None:
                raise InputError(f"the space {ENCODED!r} is what the model makes itself; leave {name} out.")
        return EncodedSource(loaded, corpus, batch_size=self.batch_size or 32)

    def over(self, corpus: Corpus, loaded: Loaded) -> TextSource:
        """The rows of a corpus by a model that is loaded already."""
        weights = self.token_weights
        return TextSource(
            loaded,
            corpus,
            layers=self.layers,
            pooling=self.pooling,
            token_weights=TokenWeights.load(weights) if isinstance(weights, (str, Path)) else weights,
            special_tokens=self.special_tokens,
            batch_size=self.batch_size or 32,
            max_length=self.max_length,
            in_order=self.in_order,
        )
