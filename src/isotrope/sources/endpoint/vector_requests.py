"""Several requests to an endpoint at a time, whose answers are kept as they arrive."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from isotrope.errors import InputError, IsotropeError
from isotrope.sources.endpoint.client import EndpointClient
from isotrope.sources.endpoint.kept_vectors import KeptVectors, hash_text

if TYPE_CHECKING:
    from typing_extensions import Self

#: Requests that are made ready for each one that is under way.
_AHEAD = 2


class VectorRequests:
    """Requests for the vectors of texts that are not kept yet; each text is sent once, in full requests.

    The thread that gets an answer also keeps it: it is on the disk whatever happens to the others. When this is left,
    for whatever reason, requests under way are waited for, because they are paid for.

    Args:
        client: Makes the requests.
        kept: Gets the vectors.
        batch_size: Texts of a request.
        concurrency: Requests at a time.
    """

    def __init__(self, client: EndpointClient, kept: KeptVectors, batch_size: int, concurrency: int) -> None:
        self._client, self._kept = client, kept
        self._batch_size, self._most = batch_size, _AHEAD * concurrency
        self._pool = ThreadPoolExecutor(concurrency, thread_name_prefix="isotrope-endpoint")
        self._stop = threading.Event()
        self._waiting: dict[bytes, str] = {}
        self._sent: dict[Future[IsotropeError | None], list[bytes]] = {}
        self._asked: set[bytes] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._finish()

    @property
    def full(self) -> bool:
        """Whether enough requests are under way or ready."""
        return len(self._sent) >= self._most

    def has_all(self, texts: Iterable[str]) -> bool:
        """Whether the vectors of all texts are kept."""
        return all(hash_text(text) in self._kept for text in texts)

    def ask(self, texts: Iterable[str]) -> None:
        """Ask for the vectors of texts that are neither kept nor asked for; a request goes out when it is full."""
        for text in texts:
            key = hash_text(text)
            if key in self._kept or key in self._asked:
                continue
            self._asked.add(key)
            self._waiting[key] = text
            if len(self._waiting) == self._batch_size:
                self.send()

    def send(self) -> None:
        """Send the texts that wait for a full request."""
        if self._waiting:
            waiting, self._waiting = self._waiting, {}
            self._sent[self._pool.submit(self._fetch, waiting)] = list(waiting)

    def collect(self) -> None:
        """Wait until another answer is kept; raise an error where vectors are missing."""
        done, _ = wait(self._sent, return_when=FIRST_COMPLETED)
        for future in done:
            self._asked.difference_update(self._sent.pop(future))
        errors = [error for future in done if (error := future.result()) is not None]
        if errors:
            self._finish()  # what is under way counts as done
            progress = self._kept.describe_progress()
            raise InputError(f"{str(errors[0]).rstrip('.')}{f'; {progress}' if progress else ''}.") from errors[0]

    def collect_all(self) -> None:
        """Send what waits, and wait for all answers."""
        self.send()
        while self._sent:
            self.collect()

    def _finish(self) -> None:
        """Send nothing more, and wait for the answers to what is under way."""
        self._stop.set()
        self._pool.shutdown(cancel_futures=True)

    def _fetch(self, texts: dict[bytes, str]) -> IsotropeError | None:
        """Fetch and keep the vectors of texts, by their hashes; return why some are missing."""
        keys = list(texts)
        vectors, error = self._client.fetch(list(texts.values()), self._stop)
        if vectors:
            numbers = sorted(vectors)
            self._kept.add([keys[number] for number in numbers], np.stack([vectors[number] for number in numbers]))
        return error
