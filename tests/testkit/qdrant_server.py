"""The few requests of Qdrant's HTTP interface that are used, answered from a collection in memory."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

#: The key without which the server answers nothing, and the bytes that a request may have.
KEY, MOST = "k3y-of-the-server", 1 << 20


@contextmanager
def server() -> Iterator[tuple[str, Any]]:
    """The URL of a server, and the client in memory that it answers from (which normalises as Qdrant does)."""
    from qdrant_client import QdrantClient, models

    memory = QdrantClient(":memory:")

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            sent = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(sent) or "{}")
            if self.headers.get("api-key") != KEY:
                return self._send(401, {"status": {"error": "Must provide an API key"}})
            if sent > MOST:
                words = f"Payload error: JSON payload ({sent} bytes) is larger than allowed (limit: {MOST} bytes)."
                return self._send(400, {"status": {"error": words}})
            try:
                result = self._result(self.path.partition("?")[0].strip("/").split("/")[1:], body)
            except ValueError as error:
                return self._send(404, {"status": {"error": str(error)}})
            return self._send(200, {"result": result, "status": "ok", "time": 0.0})

        do_GET = do_POST = do_PUT = do_DELETE = _answer

        def _result(self, path: list[str], body: Any) -> Any:
            match self.command, path:
                case "GET", []:
                    return memory.get_collections().model_dump(mode="json")
                case "GET", [name, "exists"]:
                    return {"exists": memory.collection_exists(name)}
                case "GET", [name]:
                    return memory.get_collection(name).model_dump(mode="json")
                case "PUT", [name]:
                    return memory.create_collection(name, models.CreateCollection(**body).vectors)
                case "DELETE", [name]:
                    return memory.delete_collection(name)
                case "POST", [name, "points", "count"]:
                    asked = models.CountRequest(**body)
                    return memory.count(name, asked.filter).model_dump(mode="json")
                case "POST", [name, "points", "scroll"]:
                    want = models.ScrollRequest(**body)
                    points, after = memory.scroll(
                        name, want.filter, want.limit or 10, offset=want.offset,
                        with_payload=want.with_payload or False, with_vectors=want.with_vector or False,
                    )  # fmt: skip
                    return {"points": [p.model_dump(mode="json") for p in points], "next_page_offset": after}
                case "PUT", [name, "points"]:
                    memory.upsert(name, models.PointsList(**body).points)
                    return {"operation_id": 0, "status": "completed"}
            raise ValueError(f"unknown request {self.command} {self.path}")

        def _send(self, code: int, document: Any) -> None:
            data = json.dumps(document).encode()
            self.send_response(code)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    listening = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=listening.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}", memory
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()
