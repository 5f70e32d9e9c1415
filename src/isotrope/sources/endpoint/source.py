"""Texts as rows by an embedding endpoint: one row for each text, and one layer."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.sources.batch import Batch, Groups, Rows
from isotrope.sources.corpora.corpus import Corpus, Text
from isotrope.sources.endpoint.client import EndpointClient
from isotrope.sources.endpoint.kept_vectors import KeptVectors, hash_text
from isotrope.sources.endpoint.vector_requests import VectorRequests
from isotrope.sources.source import Source
from isotrope.sources.text.sentence_model import ENCODED

#: Texts of a batch, whatever a request holds: a run can go on with requests of another size.
_BATCH_TEXTS = 256

#: Texts of a request, unless the user says otherwise.
BATCH_SIZE = 32


@dataclass(frozen=True)
class Endpoint:
    """A model behind a URL, the vectors that it has answered, and how many requests are made at a time."""

    client: EndpointClient
    kept: KeptVectors
    concurrency: int = 4

    def open_requests(self, batch_size: int) -> VectorRequests:
        """Open requests of so many texts."""
        return VectorRequests(self.client, self.kept, batch_size, self.concurrency)


def open_endpoint(
    url: str, model: str, concurrency: int, folder: str | Path | None, run_folder: Path | None
) -> Endpoint:
    """Open an endpoint; nothing is sent.

    Args:
        url: See `address.resolve_address`.
        model: The name of the model.
        concurrency: Requests at a time.
        folder: Where vectors are kept, None for the time of one command.
        run_folder: The run folder that this folder is in, if it is in one.
    """
    client = EndpointClient(url, model)
    kept = KeptVectors(folder, client.url, model, run_folder)
    kept.prepare()
    return Endpoint(client, kept, concurrency)


class EndpointSource(Source):
    """One row for each text, as an endpoint answers it; its only layer is called "encoded".

    Rows come in the order of the texts. They do not depend on the size of requests or on how many are made at a time.

    Args:
        endpoint: The endpoint.
        corpus: The texts.
        batch_size: Texts of a request.
        exact: Whether rows are float64.
    """

    unit = "texts"

    def __init__(self, endpoint: Endpoint, corpus: Corpus, *, batch_size: int, exact: bool = False) -> None:
        if batch_size < 1:
            raise InputError(f"the batch size is {batch_size}, expected at least 1.")
        self.endpoint, self.corpus, self.batch_size = endpoint, corpus, batch_size
        self.layers: list[Layer] = [ENCODED]
        self.dtype = np.dtype(np.float64 if exact else np.float32)
        if endpoint.kept.width is None:
            with endpoint.open_requests(batch_size) as requests:
                requests.ask([next(iter(corpus)).text])
                requests.collect_all()
        assert endpoint.kept.width is not None
        self.width = endpoint.kept.width

    @property
    def total(self) -> int | None:
        return self.corpus.count()

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """The batches from number `start` on; earlier texts are read, but not sent."""
        texts = islice(iter(self.corpus), start * _BATCH_TEXTS, None)
        ahead: deque[list[Text]] = deque()
        with self.endpoint.open_requests(self.batch_size) as requests:
            while part := list(islice(texts, _BATCH_TEXTS)):
                ahead.append(part)
                requests.ask(text.text for text in part)
                while requests.full:
                    requests.collect()
                while ahead and requests.has_all(text.text for text in ahead[0]):
                    yield self._make_batch(ahead.popleft())
            requests.send()
            while ahead:
                while not requests.has_all(text.text for text in ahead[0]):
                    requests.collect()
                yield self._make_batch(ahead.popleft())

    def _make_batch(self, texts: list[Text]) -> Batch:
        rows = self.endpoint.kept.read_rows([hash_text(text.text) for text in texts])
        groups = None if texts[0].group is None else Groups.of(text.group for text in texts)
        known = Rows(np.array([text.id for text in texts], np.uint64), group=groups)
        return Batch({ENCODED: rows.astype(self.dtype, copy=False)}, known, {"texts": len(texts)})

    def describe(self) -> dict[str, Any]:
        """Plain data for provenance; nothing in it depends on the size or number of requests."""
        return {
            "kind": "endpoint",
            "modality": "text",
            "class": type(self.endpoint).__name__,
            "endpoint": self.endpoint.client.name,
            "model": self.endpoint.client.model,
            "rows_are": f"one for each text, as {self.endpoint.client.name} answers it",
            "layers": list(self.layers),
            "width": self.width,
            "pooling": ENCODED,
            "corpus": self.corpus.describe() | {"name": self.corpus.name},
        }
