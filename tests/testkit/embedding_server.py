"""An OpenAI-compatible server of embeddings on this machine, which fails as it is told to and records what it gets."""

from __future__ import annotations

import hashlib
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

WIDTH = 16

#: What a document becomes before it is sent.
Change = Callable[[dict[str, Any]], Any]


def embed(text: str, width: int = WIDTH) -> NDArray[np.float32]:
    """A vector that depends on the text alone, (width,)."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=width).astype(np.float32)


@dataclass(frozen=True)
class Fault:
    """What a request gets instead of its answer.

    Args:
        status: Of HTTP.
        body: Of the answer; None for the right one.
        headers: Of the answer.
        seconds: How long the answer takes.
        drop: Whether the connection is closed without an answer.
        change: What the right document becomes.
    """

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    drop: bool = False
    change: Change | None = None


class Received(NamedTuple):
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


class EmbeddingServer:
    """What a server got and answered.

    Attributes:
        received: All requests, in the order in which they came.
        answered: How often each text was in a request that was answered with status 200 and without a fault.
        faults: Gives the fault of a request from its number and its texts.
        vector_of: Gives the vector of a text.
        most_at_once: How many requests there were at a time.
    """

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answered: Counter[str] = Counter()
        self.faults: Callable[[int, list[str]], Fault | None] = lambda number, texts: None
        self.vector_of: Callable[[str], Sequence[float] | NDArray[Any]] = embed
        self.now = self.most_at_once = 0
        self._lock = threading.Lock()
        self._listening = ThreadingHTTPServer(("127.0.0.1", 0), self._make_handler())
        self._listening.daemon_threads = True
        self._thread = threading.Thread(target=self._listening.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listening.server_port}/v1"

    def fail_first(self, *faults: Fault) -> None:
        """Answer the next requests with faults, and those after them rightly."""
        start = len(self.received)
        self.faults = lambda number, texts: faults[number - start] if number - start < len(faults) else None

    def stop(self) -> None:
        self._listening.shutdown()
        self._listening.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        body = json.loads(handler.rfile.read(int(handler.headers.get("Content-Length") or 0)) or "{}")
        with self._lock:
            number = len(self.received)
            self.received.append(Received(handler.path, dict(handler.headers.items()), body))
            self.now += 1
            self.most_at_once = max(self.most_at_once, self.now)
        try:
            self._send(handler, body["input"], self.faults(number, body["input"]))
        finally:
            with self._lock:
                self.now -= 1

    def _send(self, handler: BaseHTTPRequestHandler, texts: list[str], fault: Fault | None) -> None:
        right = fault is None or fault == Fault(seconds=fault.seconds)
        fault = Fault() if fault is None else fault
        time.sleep(fault.seconds)
        if fault.drop:
            handler.close_connection = True
            with suppress(OSError):
                handler.connection.shutdown(socket.SHUT_RDWR)
            return
        items = [
            {"object": "embedding", "index": i, "embedding": _plain(self.vector_of(t))} for i, t in enumerate(texts)
        ]
        document: Any = {"object": "list", "data": items, "model": "small"}
        document = fault.change(document) if fault.change else document
        body = json.dumps(document).encode() if fault.body is None else fault.body
        with suppress(OSError):  # whoever asked may have gone
            handler.send_response(fault.status)
            for name, value in {"Content-Length": str(len(body)), **fault.headers}.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body)
        if right:
            with self._lock:
                self.answered.update(texts)

    def _make_handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                server._answer(self)

            def log_message(self, *_: Any) -> None:
                pass

        return Handler


def _plain(vector: Any) -> Any:
    return [float(value) for value in vector]


@contextmanager
def serve() -> Iterator[EmbeddingServer]:
    """A server that runs inside."""
    server = EmbeddingServer()
    try:
        yield server
    finally:
        server.stop()
