"""The rows that a sentence-transformers model gives itself: with its pooling, dense layers and normalisation."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError, describe_error
from isotrope.layers import Layer
from isotrope.sources.batch import Batch, Groups, Rows
from isotrope.sources.corpora.corpus import Corpus, Text
from isotrope.sources.models.environment import check_packages, resolve_device, silence_transformers
from isotrope.sources.models.load import Loaded, list_weight_files
from isotrope.sources.models.location import check_local_folder, find_commit
from isotrope.sources.source import Cursor, Source, batches_per_shard
from isotrope.sources.text.model_source import widen

#: The name of this space, where layers are named.
ENCODED = "encoded"

#: Forward passes that make a batch.
_PASSES = 8


def has_pipeline(model: Any, revision: str | None = None) -> bool:
    """Whether a model is one of sentence-transformers, told from its files."""
    if not isinstance(model, (str, Path)):
        return False
    folder = Path(model).expanduser()
    if folder.exists():
        return (folder / "modules.json").is_file()
    return find_commit(str(model), "modules.json", revision) is not None


def load_pipeline(
    model: Any, *, revision: str | None, device: str, exact: bool, trust_remote_code: bool, max_length: int | None
) -> Loaded:
    """A sentence-transformers model, whole, in float64 where `exact`."""
    if not has_pipeline(model, revision) and (model is None or Path(str(model)).exists()):
        raise InputError(f"the space {ENCODED!r} is that of a sentence-transformers model, got {model}; name a layer.")
    check_packages("sentence-transformers", "a sentence-transformers model", "sentence_transformers")
    import torch
    from sentence_transformers import SentenceTransformer

    used = resolve_device(torch, device, exact)
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    local = Path(str(model)).expanduser().exists()
    if local:
        check_local_folder(Path(str(model)).expanduser())
    with silence_transformers():
        try:
            place = str(Path(str(model)).expanduser()) if local else str(model)
            pipeline = SentenceTransformer(
                place, device=used, local_files_only=local, model_kwargs={"weights_only": True}, **options
            )
        except Exception as error:  # whatever the libraries, the hub and the files raise
            reason = describe_error(error)
            raise InputError(
                f"{str(model)!r} cannot be loaded by sentence-transformers ({reason}); check the name or folder."
            ) from error
    from isotrope.softdecay.restore import restore_saved

    restore_saved(pipeline, revision=revision, local_files_only=local)
    if max_length is not None:
        pipeline.max_seq_length = max_length
    pipeline = pipeline.double() if exact else pipeline
    files = list_weight_files(Path(place)) if local else []
    return Loaded(pipeline.eval(), pipeline.tokenizer, str(model), None if local else revision, used, files)


class EncodedSource(Source):
    """One row for each text, as the model's own `encode` gives it; its only layer is called "encoded".

    Args:
        loaded: A model of sentence-transformers.
        corpus: The texts.
        batch_size: Texts in a forward pass.
    """

    unit = "texts"

    def __init__(self, loaded: Loaded, corpus: Corpus, *, batch_size: int = 32) -> None:
        if batch_size < 1:
            raise InputError(f"the batch size is {batch_size}, expected at least 1.")
        self.loaded, self.corpus, self.batch_size = loaded, corpus, batch_size
        self.layers: list[Layer] = [ENCODED]
        self._texts = Cursor(lambda: iter(corpus))
        first = next(iter(corpus))
        self.width = int(self._encode([first.text]).shape[1])

    def _encode(self, texts: list[str]) -> Any:
        """Rows (n, d) in the order of the texts."""
        return self.loaded.model.encode(
            texts, batch_size=self.batch_size, convert_to_tensor=True, show_progress_bar=False
        )

    @property
    def total(self) -> int | None:
        return self.corpus.count()

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; earlier texts are read, but not run."""
        texts = iter(self.corpus)
        for _ in islice(texts, start * self._texts_of_a_batch):
            pass
        yield from self._batches(texts)

    def _batches(self, texts: Iterator[Text]) -> Iterator[Batch]:
        while part := list(islice(texts, self._texts_of_a_batch)):
            rows = self._encode([text.text for text in part])
            groups = None if part[0].group is None else Groups.of(text.group for text in part)
            known = Rows(np.array([text.id for text in part], np.uint64), group=groups)
            yield Batch({ENCODED: widen(rows)}, known, {"texts": len(part)})

    @property
    def _texts_of_a_batch(self) -> int:
        return self.batch_size * _PASSES

    @property
    def shard_size(self) -> int:
        size = self._texts_of_a_batch
        return size * batches_per_shard(None if self.total is None else -(-self.total // size))

    def shard(self, number: int) -> Iterator[Batch]:
        """The batches of one shard; earlier texts are read, but not run."""
        size = self.shard_size
        return self._batches(iter(self._texts.between(number * size, (number + 1) * size)))

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance."""
        model = self.loaded.model
        return {
            **self.loaded.describe(),
            "rows_are": "one for each text, as its own encode gives it",
            "modules": [type(module).__name__ for module in model],
            "layers": list(self.layers),
            "width": self.width,
            "pooling": ENCODED,
            "max_length": model.max_seq_length,
            "batch_size": self.batch_size,
            "corpus": self.corpus.describe() | {"name": self.corpus.name},
        }
