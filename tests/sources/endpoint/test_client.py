"""Requests to a server that is busy, slow, broken or gone."""

from __future__ import annotations

import json
import threading
import time
from email.message import Message
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest

from isotrope.errors import IsotropeError
from isotrope.sources.endpoint import client
from isotrope.sources.endpoint.client import ASKS, TRIES, EndpointClient, Fetched, compute_wait, parse_retry_after
from testkit.embedding_server import EmbeddingServer, Fault, embed, serve

KEY = "sk-not-to-be-seen-1234"
TEXTS = ["a cat", "a dog", "the sea"]


@pytest.fixture
def waits(embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that were waited between tries."""
    found: list[float] = []
    monkeypatch.setattr(client, "pause", lambda stop, seconds: found.append(seconds))
    return found


def fetch(server: EmbeddingServer, texts: list[str] = TEXTS) -> Fetched:
    return EndpointClient(server.url, "small").fetch(texts, threading.Event())


def check_vectors(found: Fetched) -> None:
    assert found.error is None
    assert np.array_equal(np.stack([found.vectors[i] for i in range(3)]), np.stack([embed(t) for t in TEXTS]))


def explain(found: Fetched) -> str:
    """The sentence of a failure."""
    assert isinstance(found.error, IsotropeError)
    return str(found.error)


class TestRequest:
    def test_what_is_sent(self, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("ISOTROPE_API_KEY", KEY)
        check_vectors(fetch(embedding_server))
        [sent] = embedding_server.received
        assert sent.path == "/v1/embeddings"
        assert sent.body == {"model": "small", "input": TEXTS, "encoding_format": "float"}
        assert sent.headers["Authorization"] == f"Bearer {KEY}"

    def test_without_a_key_there_is_no_header(self, embedding_server: EmbeddingServer) -> None:
        check_vectors(fetch(embedding_server))
        assert "Authorization" not in embedding_server.received[0].headers


class TestTriedAgain:
    @pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
    def test_busy_and_broken_servers(self, embedding_server: EmbeddingServer, waits: list[float], status: int) -> None:
        embedding_server.fail_first(Fault(status, b"{}"), Fault(status, b"no JSON"))
        check_vectors(fetch(embedding_server))
        assert len(embedding_server.received) == 3
        assert 0.5 <= waits[0] <= 1.0 <= waits[1] <= 2.0

    def test_the_server_says_how_long_to_wait(self, embedding_server: EmbeddingServer, waits: list[float]) -> None:
        date = formatdate(time.time() + 40, usegmt=True)
        embedding_server.fail_first(
            Fault(429, b"{}", {"Retry-After": "17"}), Fault(503, b"{}", {"Retry-After": date}), Fault(429, b"{}")
        )
        check_vectors(fetch(embedding_server))
        assert waits[0] == 17
        assert 35 < waits[1] <= 40
        assert 2 <= waits[2] <= 4

    def test_a_wait_of_an_hour_is_left_to_the_user(self, embedding_server: EmbeddingServer, waits: list[float]) -> None:
        embedding_server.fail_first(Fault(429, b'{"error": "daily limit"}', {"Retry-After": "3600"}))
        said = explain(fetch(embedding_server))
        assert "in 1 try (HTTP 429: daily limit, and asks to wait 3,600 seconds)" in said
        assert waits == []

    def test_closed_connections(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.fail_first(Fault(drop=True), Fault(drop=True))
        check_vectors(fetch(embedding_server))

    def test_a_timeout(self, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(client, "TIMEOUT", 1.0)
        embedding_server.fail_first(Fault(seconds=4.0))
        check_vectors(fetch(embedding_server))
        embedding_server.faults = lambda number, texts: Fault(seconds=4.0)
        monkeypatch.setattr(client, "TRIES", 2)
        assert "no answer in 2 tries (nothing within 1 seconds" in explain(fetch(embedding_server))

    def test_an_answer_that_is_cut_off(self, embedding_server: EmbeddingServer) -> None:
        short = Fault(body=b'{"data": [{"index": 0, "embed', headers={"Content-Length": "4000"})
        embedding_server.fail_first(short, Fault(body=b'{"data": [{"index": 0, "embed'))
        check_vectors(fetch(embedding_server))

    def test_tries_are_bounded(self, embedding_server: EmbeddingServer, waits: list[float]) -> None:
        embedding_server.faults = lambda number, texts: Fault(500, b'{"error": {"message": "out of memory"}}')
        said = explain(fetch(embedding_server))
        assert f"gave no answer in {TRIES} tries (HTTP 500: out of memory)" in said
        assert len(embedding_server.received) == TRIES
        assert len(waits) == TRIES - 1

    def test_stopping_ends_the_tries(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.faults = lambda number, texts: Fault(500)
        stop = threading.Event()
        stop.set()
        assert "in 1 try" in explain(EndpointClient(embedding_server.url, "small").fetch(TEXTS, stop))

    def test_a_server_that_never_was_there_is_said_at_once(self, waits: list[float]) -> None:
        with serve() as server:
            url = server.url
        said = explain(EndpointClient(url, "small").fetch(TEXTS, threading.Event()))
        assert "cannot be reached" in said
        assert waits == []

    def test_a_server_that_was_there_is_tried_again(
        self, embedding_server: EmbeddingServer, waits: list[float]
    ) -> None:
        asked = EndpointClient(embedding_server.url, "small")
        check_vectors(asked.fetch(TEXTS, threading.Event()))
        embedding_server.stop()
        assert f"in {TRIES} tries" in explain(asked.fetch(TEXTS, threading.Event()))
        assert len(waits) == TRIES - 1

    def test_waits_double_and_are_random(self) -> None:
        for number, most in enumerate([1, 2, 4, 8, 16, 32, 60, 60], 1):
            found = [compute_wait(number) for _ in range(50)]
            assert most / 2 <= min(found) < max(found) <= most

    @pytest.mark.parametrize("given", ["soon", "nan", "", "Wed, 99 Foo 2020"])
    def test_a_wait_that_cannot_be_read_is_none(self, given: str) -> None:
        headers = Message()
        headers["Retry-After"] = given
        assert parse_retry_after(headers) is None


class TestRefused:
    @pytest.mark.parametrize(
        ("body", "words"),
        [
            (b'{"error": {"message": "the input is too long"}}', "HTTP 400: the input is too long"),
            (b'{"error": "the input is too long", "error_type": "Validation"}', "HTTP 400: the input is too long"),
            (b'{"object": "error", "message": "the input is too long"}', "HTTP 400: the input is too long"),
            (b'{"detail": "the input is too long"}', "HTTP 400: the input is too long"),
            (b"plain words\nof a proxy\x1b[31m", r"HTTP 400: plain words of a proxy\x1b[31m"),
            (b"", "(HTTP 400)"),
            (b"x" * 5000, "x" * 200 + "…"),
        ],
    )
    def test_the_message_of_the_server_is_shown(
        self, embedding_server: EmbeddingServer, waits: list[float], body: bytes, words: str
    ) -> None:
        embedding_server.fail_first(Fault(400, body))
        said = explain(fetch(embedding_server))
        assert words in said
        assert said.endswith(".")
        assert "x" * 201 not in said
        assert (len(embedding_server.received), waits) == (1, [])

    @pytest.mark.parametrize(
        ("status", "words"), [(401, "ISOTROPE_API_KEY"), (404, "check the URL"), (413, "up to 7 characters")]
    )
    def test_what_to_do(self, embedding_server: EmbeddingServer, status: int, words: str) -> None:
        embedding_server.fail_first(Fault(status, b"{}"))
        assert words in explain(fetch(embedding_server))

    @pytest.mark.parametrize("key", [KEY, "abc"])
    def test_a_server_that_repeats_the_key(
        self, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, key: str
    ) -> None:
        monkeypatch.setenv("ISOTROPE_API_KEY", key)
        for status in (401, 500):
            body = json.dumps({"error": {"message": f"the key {key} is not known"}}).encode()
            embedding_server.faults = lambda number, texts, status=status, body=body: Fault(status, body)  # type: ignore[misc]
            said = explain(fetch(embedding_server))
            assert key not in said
            assert "the key *** is not known" in said

    @pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
    def test_redirects_are_not_followed(
        self, embedding_server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, status: int
    ) -> None:
        monkeypatch.setenv("ISOTROPE_API_KEY", KEY)
        with serve() as other:
            embedding_server.fail_first(Fault(status, b"", {"Location": f"{other.url}/embeddings"}))
            said = explain(fetch(embedding_server))
            assert f"redirects to '{other.url}/embeddings', which is not followed" in said
            assert other.received == []

    def test_a_page_in_place_of_json(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.fail_first(Fault(body=b"<html>Welcome</html>"))
        assert "its answer is not JSON: <html>Welcome</html>; check the URL." in explain(fetch(embedding_server))
        assert len(embedding_server.received) == 1

    def test_an_error_with_status_200(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.fail_first(Fault(body=b'{"error": {"message": "no such model"}}'))
        assert "no such model" in explain(fetch(embedding_server))


class TestItems:
    def test_items_in_another_order(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.fail_first(Fault(change=lambda document: {"data": document["data"][::-1]}))
        check_vectors(fetch(embedding_server))

    @pytest.mark.parametrize("value", [None, float("nan")])
    def test_only_what_is_missing_is_asked_for_again(self, embedding_server: EmbeddingServer, value: Any) -> None:
        def leave_out(document: dict[str, Any]) -> dict[str, Any]:
            data = document["data"]
            if value is None:
                del data[1]
            else:
                data[1]["embedding"][0] = value
            return document

        embedding_server.fail_first(Fault(change=leave_out))
        check_vectors(fetch(embedding_server))
        assert [sent.texts for sent in embedding_server.received] == [TEXTS, [TEXTS[1]]]

    def test_what_stays_missing_is_named_and_the_rest_is_there(self, embedding_server: EmbeddingServer) -> None:
        def spoil(document: dict[str, Any]) -> dict[str, Any]:
            for item in document["data"]:
                if np.allclose(item["embedding"], embed(TEXTS[2])):
                    item["embedding"][0] = float("nan")
            return document

        embedding_server.faults = lambda number, texts: Fault(change=spoil)
        found = fetch(embedding_server)
        assert "NaN or infinity, for 1 of 3 texts in 3 answers, first for 'the sea'" in explain(found)
        assert sorted(found.vectors) == [0, 1]
        assert len(embedding_server.received) == ASKS

    def test_empty_data(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.faults = lambda number, texts: Fault(body=b'{"data": []}')
        assert "for 3 of 3 texts" in explain(fetch(embedding_server))

    def test_two_items_with_one_index(self, embedding_server: EmbeddingServer) -> None:
        embedding_server.fail_first(Fault(change=lambda document: {"data": [document["data"][0]] * 3}))
        assert "index 0 more than once" in explain(fetch(embedding_server))
        assert len(embedding_server.received) == 1
