"""Several requests to an endpoint at a time, whose answers are kept as they arrive."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

import numpy as np

from isotrope.errors import InputError, IsotropeError
from isotrope.sources.endpoint.client import EndpointClient, Fetched
from isotrope.sources.endpoint.kept_vectors import KeptVectors, hash_text

if TYPE_CHECKING:
    from typing_extensions import Self

#: Requests that are made ready for each one that is under way.
_AHEAD = 2


class VectorRequests:
    """Requests for the vectors of texts that are not kept yet; each text is sent once, in full requests.

    Threads only wait for answers. Whoever collects the answers writes them. When it is left, for whatever reason, what
    is under way is waited for and kept, because it is paid for.

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
        self._sent: dict[Future[Fetched], list[bytes]] = {}
        self._pending: set[bytes] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        try:
            for future in [future for future in self._sent if future.cancel()]:
                del self._sent[future]
            for future in list(self._sent):
                with suppress(IsotropeError):  # the error that is on its way already says what is wrong
                    self._keep(future)
        finally:
            self._pool.shutdown(cancel_futures=True)

    @property
    def full(self) -> bool:
        """Whether enough requests are under way or ready."""
        return len(self._sent) >= self._most

    def has(self, texts: Iterable[str]) -> bool:
        """Whether the vectors of all texts are kept."""
        return all(hash_text(text) in self._kept for text in texts)

    def ask(self, texts: Iterable[str]) -> None:
        """Ask for the vectors of texts that are neither kept nor asked for; a request goes out when it is full."""
        for text in texts:
            key = hash_text(text)
            if key in self._kept or key in self._pending:
                continue
            self._pending.add(key)
            self._waiting[key] = text
            if len(self._waiting) == self._batch_size:
                self.send()

    def send(self) -> None:
        """Send the texts that wait for a full request."""
        if self._waiting:
            future = self._pool.submit(self._client.fetch, list(self._waiting.values()), self._stop)
            self._sent[future] = list(self._waiting)
            self._waiting = {}

    def collect(self) -> None:
        """Wait for the next answer, and keep its vectors; raise an error where vectors are missing."""
        done, _ = wait(self._sent, return_when=FIRST_COMPLETED)
        errors = [error for error in map(self._keep, done) if error is not None]
        if errors:
            raise self._say_how_to_go_on(errors[0]) from errors[0]

    def collect_all(self) -> None:
        """Wait for all answers."""
        self.send()
        while self._sent:
            self.collect()

    def _keep(self, future: Future[Fetched]) -> IsotropeError | None:
        """Keep the vectors of an answer, and return why some are missing."""
        keys = self._sent.pop(future)
        vectors, error = future.result()
        if vectors:
            numbers = sorted(vectors)
            self._kept.add([keys[number] for number in numbers], np.stack([vectors[number] for number in numbers]))
        self._pending.difference_update(keys)
        return error

    def _say_how_to_go_on(self, error: IsotropeError) -> IsotropeError:
        """The error, and where some texts are done how to go on."""
        progress = self._kept.describe_progress()
        return InputError(f"{str(error).rstrip('.')}{f'; {progress}' if progress else ''}.")
