"""Rows by an endpoint: their order, their numbers, and what is sent for them."""

from __future__ import annotations

import random
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError
from isotrope.sources.endpoint.estimate import estimate_requests
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.sources.text.encoder import Encoder
from testkit.embedding_server import EmbeddingServer, Fault, embed

TEXTS = [f"text number {i}" for i in range(600)]


def read(source: Source) -> Any:
    return np.concatenate(list(source.map(lambda batch: batch.layers["encoded"])))


def make_input(server: EmbeddingServer, texts: list[str] = TEXTS, **options: Any) -> Input:
    return Input(endpoint=server.url, model="small", text=texts, **options)


class TestRows:
    @pytest.mark.parametrize(("batch_size", "concurrency"), [(1, 7), (32, 1), (32, 4), (50, 3), (1000, 4)])
    def test_rows_are_those_of_the_server_in_the_order_of_the_texts(
        self, embedding_server: EmbeddingServer, batch_size: int, concurrency: int
    ) -> None:
        texts = TEXTS[:300] if batch_size > 1 else TEXTS[:60]
        wait = random.Random(1)
        embedding_server.faults = lambda number, texts: Fault(seconds=wait.uniform(0, 0.02))
        source = make_input(embedding_server, texts, batch_size=batch_size, concurrency=concurrency).open()
        assert np.array_equal(read(source), np.stack([embed(text) for text in texts]))
        assert (source.layers, source.width, source.total, source.unit) == (["encoded"], 16, len(texts), "texts")
        assert embedding_server.answered == dict.fromkeys(texts, 1)
        assert embedding_server.most_at_once <= concurrency

    def test_requests_run_side_by_side(self, embedding_server: EmbeddingServer) -> None:
        meeting = threading.Barrier(4)

        def wait_for_others(number: int, texts: list[str]) -> None:
            if number:  # the first text goes alone
                meeting.wait(30)

        embedding_server.faults = wait_for_others
        read(make_input(embedding_server, TEXTS[:65], batch_size=16, concurrency=4).open())
        assert embedding_server.most_at_once == 4

    def test_repeated_texts_are_sent_once_in_full_requests(self, embedding_server: EmbeddingServer) -> None:
        texts = [*TEXTS[:100], *TEXTS[50:150], *TEXTS[:10]] * 3
        rows = read(make_input(embedding_server, texts, batch_size=32).open())
        assert np.array_equal(rows, np.stack([embed(text) for text in texts]))
        assert embedding_server.answered == dict.fromkeys(TEXTS[:150], 1)
        assert sorted(len(sent.texts) for sent in embedding_server.received) == [1, 21, 32, 32, 32, 32]

    def test_a_pass_can_begin_at_a_later_batch(self, embedding_server: EmbeddingServer) -> None:
        source = make_input(embedding_server).open()
        [batch] = source.batches(start=2)
        assert batch.rows.sequence.tolist() == list(range(512, 600))
        assert batch.counts == {"texts": 88}
        assert set(embedding_server.answered) == {TEXTS[0], *TEXTS[512:]}

    def test_groups_go_with_their_rows(self, embedding_server: EmbeddingServer, tmp_path: Path) -> None:
        path = tmp_path / "texts.csv"
        path.write_text("text,kind\none,a\ntwo,b\nthree,a\n")
        [batch] = replace(make_input(embedding_server), text=path, column="text", group_by="kind").open().batches()
        assert batch.rows.group is not None
        assert batch.rows.group.tolist() == ["a", "b", "a"]

    def test_texts_of_any_characters(self, embedding_server: EmbeddingServer) -> None:
        texts = ["漢字 and 🙂", "a\u2028b", 'quotes " and \\', "x" * 20_000, " spaces "]
        assert np.array_equal(read(make_input(embedding_server, texts).open()), np.stack([embed(t) for t in texts]))

    def test_blank_texts_are_left_out_as_for_every_model(self, embedding_server: EmbeddingServer) -> None:
        source = make_input(embedding_server, ["one", "", "  ", "two"]).open()
        assert len(read(source)) == source.total == 2
        assert set(embedding_server.answered) == {"one", "two"}


class TestKept:
    def test_what_is_kept_is_not_sent_again(self, embedding_server: EmbeddingServer, tmp_path: Path) -> None:
        first = read(make_input(embedding_server, TEXTS[:100], keep_vectors=tmp_path).open())
        both = make_input(embedding_server, TEXTS[50:200], keep_vectors=tmp_path, batch_size=7, concurrency=2)
        rows = read(both.open())
        assert np.array_equal(rows[:50], first[50:])
        assert embedding_server.answered == dict.fromkeys(TEXTS[:200], 1)
        seen = len(embedding_server.received)
        assert np.array_equal(read(both.open()), rows)
        assert len(embedding_server.received) == seen

    @pytest.mark.parametrize("concurrency", [1, 4])
    def test_a_server_that_dies_half_way(
        self, embedding_server: EmbeddingServer, tmp_path: Path, concurrency: int
    ) -> None:
        reading = make_input(embedding_server, keep_vectors=tmp_path, concurrency=concurrency)
        embedding_server.faults = lambda number, texts: Fault(503, b"{}") if number >= 9 else None
        with pytest.raises(InputError) as caught:
            read(reading.open())
        done = 1 + 32 * 8
        assert f"{done} texts are done and kept in {str(tmp_path)!r}: go on with the same command." in str(caught.value)
        embedding_server.faults = lambda number, texts: None
        assert np.array_equal(read(reading.open()), np.stack([embed(text) for text in TEXTS]))
        assert embedding_server.answered == dict.fromkeys(TEXTS, 1)

    def test_answers_that_come_after_the_error_count_as_done(
        self, embedding_server: EmbeddingServer, tmp_path: Path
    ) -> None:
        embedding_server.faults = lambda number, texts: Fault(400, b"{}") if number == 4 else Fault(seconds=0.3)
        with pytest.raises(InputError) as caught:
            read(make_input(embedding_server, keep_vectors=tmp_path).open())
        done = sum(embedding_server.answered.values())
        assert done > 1
        assert f"; {done} texts are done and kept" in str(caught.value)

    def test_answers_under_way_are_kept_when_the_reader_stops(
        self, embedding_server: EmbeddingServer, tmp_path: Path
    ) -> None:
        embedding_server.faults = lambda number, texts: Fault(seconds=0.02)
        reading = make_input(embedding_server, keep_vectors=tmp_path)
        for _ in reading.open().batches():
            break
        assert 256 <= sum(embedding_server.answered.values()) < 600
        read(reading.open())
        assert embedding_server.answered == dict.fromkeys(TEXTS, 1)

    def test_partial_answers_are_kept_too(self, embedding_server: EmbeddingServer, tmp_path: Path) -> None:
        def spoil(document: dict[str, Any]) -> dict[str, Any]:
            document["data"][-1]["embedding"][0] = None
            return document

        reading = make_input(embedding_server, TEXTS[:33], keep_vectors=tmp_path)
        embedding_server.faults = lambda number, texts: Fault(change=spoil) if TEXTS[32] in texts else None
        with pytest.raises(InputError, match=r"first for 'text number 32'.*; 32 texts are done"):
            read(reading.open())
        embedding_server.faults = lambda number, texts: None
        read(reading.open())
        assert embedding_server.received[-1].texts == [TEXTS[32]]

    def test_a_width_that_changes_is_one_sentence(self, embedding_server: EmbeddingServer, tmp_path: Path) -> None:
        reading = make_input(embedding_server, keep_vectors=tmp_path)
        read(replace(reading, text=TEXTS[:40]).open())
        embedding_server.vector_of = lambda text: embed(text, 8)
        with pytest.raises(InputError, match="have 16 dimensions, and those of the latest answer have 8"):
            read(reading.open())


class TestEstimate:
    def test_the_estimate_is_what_is_sent(self, embedding_server: EmbeddingServer, tmp_path: Path) -> None:
        texts = [*TEXTS[:100], *TEXTS[:20]]
        reading = make_input(embedding_server, texts, keep_vectors=tmp_path, batch_size=10)
        for kept in (0, 40):
            estimate = estimate_requests(reading)
            assert (estimate.texts, estimate.repeated, estimate.kept, estimate.sent) == (120, 20, kept, 100 - kept)
            assert estimate.characters == sum(map(len, TEXTS[kept:100]))
            before = len(embedding_server.received)
            read((replace(reading, text=TEXTS[:40]) if not kept else reading).open())
            if kept:
                assert len(embedding_server.received) - before == estimate.requests
            else:
                assert before == 0
                assert estimate.requests == 1 + 10


class TestEncoder:
    def test_an_encoder_gives_the_rows_of_texts(self, embedding_server: EmbeddingServer) -> None:
        encoder = Encoder(Input(endpoint=embedding_server.url, model="small"))
        rows = encoder(["b", "a", "b"])
        assert np.array_equal(rows, np.stack([embed(text) for text in "bab"]))
        assert (encoder.name, encoder.layers, encoder.pooling) == ("small", "encoded", "encoded")
        encoder(["a", "c"])
        assert embedding_server.answered == {"a": 1, "b": 1, "c": 1}


class TestFindings:
    def test_the_numbers_are_those_of_the_same_vectors(self, embedding_server: EmbeddingServer) -> None:
        wanted = "mean_cosine,isoscore,effective_rank"
        rows = np.stack([embed(text) for text in TEXTS]).astype(np.float64)
        expected = isotrope.scan(vectors=rows, measures=wanted)
        found = isotrope.scan(
            endpoint=embedding_server.url, model="small", text=TEXTS, measures=wanted, precision="exact", concurrency=3
        )
        for one, other in zip(found.readings, expected.readings, strict=True):
            assert (one.measure, one.n) == (other.measure, other.n)
            assert one.value == pytest.approx(other.value, rel=1e-12)
        assert found.source["kind"] == "endpoint"
        assert found.model == "small"


class TestOptions:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"pooling": "mean"}, "an endpoint has no use for pooling"),
            ({"max_length": 8}, "an endpoint has no use for max-length"),
            ({"layers": "1,2"}, "an endpoint has one layer"),
            ({"model": None}, "without the name of a model"),
            ({"concurrency": 0}, "concurrency is 0"),
            ({"endpoint": None, "concurrency": 2}, "only an endpoint has a use for concurrency"),
            ({"endpoint": None, "keep_vectors": "x"}, "only an endpoint has a use for keep-vectors"),
        ],
    )
    def test_what_an_endpoint_cannot_use(self, options: dict[str, Any], words: str) -> None:
        with pytest.raises(InputError, match=words):
            Input(**{"endpoint": "http://host/v1", "model": "small", "text": TEXTS} | options)

    def test_no_text_is_sent_that_was_not_named(self, embedding_server: EmbeddingServer) -> None:
        with pytest.raises(InputError, match="name them with --text"):
            Input(endpoint=embedding_server.url, model="small").open()
        assert embedding_server.received == []

    def test_a_batch_has_at_least_one_text(self, embedding_server: EmbeddingServer) -> None:
        with pytest.raises(InputError, match="batch size is -1"):
            make_input(embedding_server, batch_size=-1).open()

    def test_a_cluster_does_not_ask_an_endpoint(self, embedding_server: EmbeddingServer) -> None:
        with pytest.raises(InputError, match="leave out --engine ray"):
            isotrope.scan(endpoint=embedding_server.url, model="small", text=TEXTS, engine="ray")
