"""Commands on a model behind an OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import StoreError
from isotrope.sources.endpoint import client, kept_vectors
from isotrope.sources.endpoint.kept_vectors import KeptVectors, hash_text
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder
from isotrope.storage.files import write_arrays
from testkit.command import Command, one_sentence
from testkit.embedding_server import EmbeddingServer, Fault, embed
from testkit.models import texts

KEY = "sk-not-to-be-seen-1234"
TEXTS = [f"This is sentence number {i} of the file." for i in range(700)]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS))
    return path


@pytest.fixture
def asked(embedding_server: EmbeddingServer, text: Path) -> list[Any]:
    """The options of a command on the texts."""
    return ["--endpoint", embedding_server.url, "--model", "small", "--text", text]


def check_sent_once(server: EmbeddingServer) -> None:
    assert server.answered == dict.fromkeys(TEXTS, 1)


class TestScan:
    def test_findings_are_those_of_the_vectors(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        np.save("rows.npy", np.stack([embed(text) for text in TEXTS]))
        wanted = ("--measures", "mean_cosine,isoscore,effective_rank", "--json")
        expected = isotrope("scan", "rows.npy", *wanted).json
        result = isotrope("scan", *asked, "--precision", "exact", *wanted)
        assert (result.code, result.err) == (0, "")
        for one, other in zip(result.json["readings"], expected["readings"], strict=True):
            assert (one["measure"], one["n"]) == (other["measure"], other["n"])
            assert one["value"] == pytest.approx(other["value"], rel=1e-12)
        assert result.json["counts"]["texts"] == 700
        check_sent_once(embedding_server)

    def test_a_dry_run_sends_nothing(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any], tmp_path: Path
    ) -> None:
        result = isotrope("scan", *asked, "--dry-run", "-o", "run")
        assert result.code == 0
        assert "to send  700 texts of" in result.out
        assert "in 23 requests" in result.out
        assert isotrope("scan", *asked, "--dry-run", "--json").json["sent"] == 700
        assert embedding_server.received == []
        assert [path.name for path in tmp_path.iterdir()] == ["texts.txt"]

    def test_a_server_that_dies_half_way(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        embedding_server.faults = lambda number, texts: Fault(drop=True) if number >= 11 else None
        said = one_sentence(isotrope("scan", *asked, "-o", "run", "--measures", "moments"))
        assert "gave no answer in 8 tries" in said
        assert "321 texts are done and kept in 'run/vectors': go on with the same command and -o run --resume." in said
        assert KeptVectors("run/vectors", f"{embedding_server.url}/embeddings", "small").width == 16
        embedding_server.faults = lambda number, texts: None
        assert isotrope("scan", *asked, "-o", "run", "--measures", "moments", "--resume").code == 0
        check_sent_once(embedding_server)

    def test_without_resume_a_run_without_a_checkpoint_goes_on_too(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        embedding_server.faults = lambda number, texts: Fault(500) if number >= 5 else None
        one_sentence(isotrope("scan", *asked, "-o", "run", "--measures", "mean_cosine"))
        embedding_server.faults = lambda number, texts: None
        assert isotrope("scan", *asked, "-o", "run", "--measures", "mean_cosine").code == 0
        check_sent_once(embedding_server)

    def test_a_checkpoint_and_other_requests(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        """The size and number of requests can change, the numbers do not."""
        scan = ("scan", *asked, "--measures", "mean_cosine", "--checkpoint-every", 0, "-o", "run")
        embedding_server.faults = lambda number, texts: Fault(500) if number >= 18 else None
        one_sentence(isotrope(*scan, "--concurrency", 1))
        assert next(Path("run/checkpoint").glob("*/state.json")).exists()
        assert "--resume" in one_sentence(isotrope(*scan))
        embedding_server.faults = lambda number, texts: None
        resumed = isotrope(*scan, "--resume", "--batch-size", 5, "--concurrency", 3, "--json")
        check_sent_once(embedding_server)
        whole = isotrope("scan", *asked, "--measures", "mean_cosine", "--json", "--keep-vectors", "run/vectors")
        assert resumed.json["readings"] == whole.json["readings"]
        assert resumed.json["provenance"]["resumed_at_batch"] > 0
        check_sent_once(embedding_server)

    def test_what_to_type_next_names_the_endpoint_and_what_is_kept(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        embedding_server.vector_of = lambda text: embed(text) + 9
        result = isotrope("scan", *asked, "-o", "run", "--measures", "mean_cosine")
        [line] = [line for line in result.out.splitlines() if line.startswith("Next: isotrope advise")]
        assert f"--endpoint {embedding_server.url} --keep-vectors run/vectors" in line

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--endpoint", "localhost:8000", "--model", "small", "texts.txt"], "begins with http:// or https://"),
            (["--endpoint", "http://h/v1", "texts.txt"], "name of a model"),
            (["--endpoint", "http://h/v1", "--model", "small"], "name them with --text"),
            (["--endpoint", "http://h/v1", "--model", "small", "texts.txt", "--pooling", "cls"], "no use for pooling"),
            (["--model", "small", "texts.txt", "--keep-vectors", "kept"], "give it with --endpoint"),
            (["--vectors", "rows.npy", "--endpoint", "http://h/v1"], "no use for endpoint"),
        ],
    )
    def test_options_that_do_not_fit(self, isotrope: Command, text: Path, options: list[str], words: str) -> None:
        assert words in one_sentence(isotrope("scan", *options))


class TestFolder:
    def test_a_file_in_its_place_is_refused_before_anything_is_sent(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        said = one_sentence(isotrope("advise", *asked, "--keep-vectors", "texts.txt"))
        assert "is a file; give a folder with --keep-vectors." in said
        assert embedding_server.received == []

    def test_a_full_disk_is_one_sentence(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        written: list[Path] = []

        def fill(path: Path, arrays: Any) -> None:
            if len(written) == 5:
                raise StoreError(f"the disk is full: {str(path)!r} could not be written; free some space.")
            written.append(path)
            write_arrays(path, arrays)

        monkeypatch.setattr(kept_vectors, "write_arrays", fill)
        scan = ("scan", *asked, "-o", "run", "--measures", "mean_cosine", "--concurrency", 1)
        assert "the disk is full" in one_sentence(isotrope(*scan))
        assert len(KeptVectors("run/vectors", f"{embedding_server.url}/embeddings", "small")) == 1 + 4 * 32

    def test_a_damaged_file_is_named(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        embedding_server.faults = lambda number, texts: Fault(500) if number > 2 else None
        scan = ("scan", *asked, "-o", "run", "--measures", "mean_cosine")
        one_sentence(isotrope(*scan, "--concurrency", 1))
        path = max(Path("run/vectors").rglob("*.safetensors"), key=lambda path: path.stat().st_size)
        path.write_bytes(path.read_bytes()[:-1] + b"?")
        embedding_server.faults = lambda number, texts: None
        assert f"{path.name}' is damaged or was changed; delete it" in one_sentence(isotrope(*scan))
        path.unlink()
        assert isotrope(*scan).code == 0


class TestStopped:
    def start(self, asked: list[Any], tmp_path: Path) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "isotrope", "scan", *map(str, asked), "-o", "run", "--measures", "mean_cosine"]
        return subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True)

    def hold_after(self, server: EmbeddingServer, first: int) -> threading.Event:
        """Let the answers after the first ones wait for an event."""
        event = threading.Event()

        def wait(number: int, texts: list[str]) -> None:
            if number >= first:
                event.wait(60)

        server.faults = wait
        return event

    def wait_for_files(self, folder: Path, count: int) -> None:
        for _ in range(6000):
            if len(list(folder.rglob("*.safetensors"))) >= count:
                return
            time.sleep(0.01)
        raise AssertionError(f"{folder} has too few files")

    def test_interrupted_nothing_that_was_answered_is_lost(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any], tmp_path: Path
    ) -> None:
        held = self.hold_after(embedding_server, 8)
        with self.start(asked, tmp_path) as process:
            self.wait_for_files(tmp_path / "run", 8)
            process.send_signal(signal.SIGINT)
            time.sleep(1)
            held.set()
            said = process.communicate()[1]
        assert len(embedding_server.received) <= 12
        assert process.returncode == 130
        assert "continue with the same command and -o run --resume" in said
        assert isotrope("scan", *asked, "-o", "run", "--measures", "mean_cosine", "--resume").code == 0
        check_sent_once(embedding_server)

    def test_killed_nothing_that_was_kept_is_sent_again(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any], tmp_path: Path
    ) -> None:
        held = self.hold_after(embedding_server, 8)
        with self.start(asked, tmp_path) as process:
            self.wait_for_files(tmp_path / "run", 8)
            process.kill()
        held.set()
        kept = KeptVectors(tmp_path / "run" / "vectors", f"{embedding_server.url}/embeddings", "small")
        done = {text for text in TEXTS if hash_text(text) in kept}
        assert len(done) == 1 + 7 * 32
        before = len(embedding_server.received)
        assert isotrope("scan", *asked, "-o", "run", "--measures", "mean_cosine", "--resume").code == 0
        again = {text for sent in embedding_server.received[before:] for text in sent.texts}
        assert again == set(TEXTS) - done


class TestOtherCommands:
    def test_advice(self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]) -> None:
        embedding_server.vector_of = lambda text: embed(text) + 9
        result = isotrope("advise", *asked, "--keep-vectors", "kept", "--json", "-o", "advice")
        assert (result.code, result.err) == (0, "")
        assert result.json["rows"] == 700
        assert max(embedding_server.answered.values()) == 1
        before = len(embedding_server.received)
        assert isotrope("advise", *asked, "--keep-vectors", "kept", "--json").json == result.json
        assert len(embedding_server.received) == before
        assert "one layer" in one_sentence(isotrope("advise", *asked, "--layers", "3"))

    def test_sentence_pairs_score_as_with_the_model_itself(
        self, isotrope: Command, embedding_server: EmbeddingServer, bert: Path, tmp_path: Path
    ) -> None:
        first, second = texts(40, seed=1), texts(40, seed=2)
        pairs = enumerate(zip(first, second, strict=True))
        lines = [f"PAD\tPAD\tPAD\tPAD\t{i % 5 + i / 40}\t{one}\t{other}\n" for i, (one, other) in pairs]
        (tmp_path / "sts-b-test.csv").write_text("".join(lines))
        rows = dict(zip([*first, *second], Encoder(Input(model=bert))([*first, *second]), strict=True))
        embedding_server.vector_of = rows.__getitem__
        data = ("--data", tmp_path, "--sets", "sts-b", "--repair", "centering", "--json")
        local = isotrope("evaluate", "sts", "--model", bert, *data)
        remote = isotrope("evaluate", "sts", "--endpoint", embedding_server.url, "--model", "bert", *data)
        assert (remote.code, remote.err) == (0, "")
        for one, other in zip(remote.json["scores"], local.json["scores"], strict=True):
            assert (one["layers"], one["pooling"]) == ("encoded", "encoded")
            assert one["spearman"] == other["spearman"]
            assert one["n"] == other["n"] == 40
        assert max(embedding_server.answered.values()) == 1

    def test_retrieval(self, isotrope: Command, embedding_server: EmbeddingServer, tmp_path: Path) -> None:
        """Documents and queries on a circle: which ones are found is known."""
        (tmp_path / "set" / "qrels").mkdir(parents=True)
        documents = {f"d{i}": f"document {i}" for i in range(20)}
        queries = {f"q{i}": f"query {i}" for i in range(5)}
        for name, known in (("corpus", documents), ("queries", queries)):
            lines = [json.dumps({"_id": number, "text": text}) for number, text in known.items()]
            (tmp_path / "set" / f"{name}.jsonl").write_text("\n".join(lines))
        judged = "".join(f"q{i}\td{i * 2}\t1\n" for i in range(5))
        (tmp_path / "set" / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")

        def place(text: str) -> list[float]:
            kind, number = text.removeprefix("x: ").split()
            angle = int(number) * (2 if kind == "query" else 1) * 0.1
            return [np.cos(angle), np.sin(angle)]

        embedding_server.vector_of = place
        asked = ("--endpoint", embedding_server.url, "--model", "small", "--keep-vectors", "kept")
        result = isotrope("evaluate", "retrieval", "--data", "set", *asked, "--query-prompt", "x: ", "--json")
        assert (result.code, result.err) == (0, "")
        assert result.json["scores"][0]["ndcg_at_10"] == 100
        sent = [*documents.values(), *(f"x: {query}" for query in queries.values())]
        assert embedding_server.answered == dict.fromkeys(sent, 1)

    def test_a_repair_is_fitted_and_applied(
        self, isotrope: Command, embedding_server: EmbeddingServer, asked: list[Any]
    ) -> None:
        kept = ("--keep-vectors", "kept")
        result = isotrope("repair", "fit", "--with", "centering", *asked, *kept, "-o", "repair")
        assert (result.code, result.err) == (0, "")
        assert isotrope("repair", "apply", "repair", *asked, *kept, "-o", "rows.npy").code == 0
        rows = np.stack([embed(text) for text in TEXTS]).astype(np.float64)
        assert np.allclose(np.load("rows.npy"), rows - rows.mean(0), atol=1e-6)
        check_sent_once(embedding_server)


class TestKey:
    def test_the_key_is_in_no_output_and_no_file(
        self,
        isotrope: Command,
        embedding_server: EmbeddingServer,
        asked: list[Any],
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setenv("ISOTROPE_API_KEY", KEY)
        monkeypatch.setattr(client, "TRIES", 2)
        faults: list[Callable[[int, list[str]], Fault | None]] = [
            lambda number, texts: None,
            lambda number, texts: Fault(401, f'{{"error": {{"message": "wrong key {KEY}"}}}}'.encode()),
            lambda number, texts: Fault(500, KEY.encode()),
            lambda number, texts: Fault(302, b"", {"Location": f"http://h/?key={KEY}"}),
            lambda number, texts: Fault(body=KEY.encode()),
            lambda number, texts: Fault(drop=True),
        ]
        said = ""
        for number, fault in enumerate(faults):
            embedding_server.faults = fault
            result = isotrope("scan", *asked, "-o", f"run{number}", "--measures", "mean_cosine", "--traceback")
            assert result.code == (2 if number else 0)
            said += result.out + result.err
        embedding_server.faults = faults[0]
        for more in (["--json"], ["--keep-vectors", "kept", "-o", "advice"]):
            result = isotrope("advise", *asked, *more)
            assert result.code == 0
            said += result.out + result.err
        assert all(sent.headers["Authorization"] == f"Bearer {KEY}" for sent in embedding_server.received)
        assert KEY not in said
        files = [path for path in tmp_path.rglob("*") if path.is_file()]
        assert {"findings.json", "report.html", "advice.json"} <= {path.name for path in files}
        assert [path for path in files if KEY.encode() in path.read_bytes()] == []
        assert not [name for name in os.listdir(tmp_path) if KEY in name]

    def test_a_secret_in_the_url_is_sent_and_not_shown(
        self, isotrope: Command, embedding_server: EmbeddingServer, text: Path, tmp_path: Path
    ) -> None:
        url = f"{embedding_server.url}?api_key={KEY}"
        result = isotrope("scan", text, "--endpoint", url, "--model", "small", "-o", "run", "--measures", "mean_cosine")
        assert result.code == 0
        assert embedding_server.received[0].path == f"/v1/embeddings?api_key={KEY}"
        assert KEY not in result.out + result.err
        assert [path for path in tmp_path.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()] == []
