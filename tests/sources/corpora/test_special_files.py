"""Pipes, devices and links to them in the place of files: refused in seconds, wherever they lie."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from isotrope.errors import InputError, IsotropeError
from isotrope.sources.corpora import lines as text_lines
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.media.corpus import open_media
from isotrope.sources.vectors.source import ENDINGS, ArraySource

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")

#: How each thing is put into the place of a file.
SPECIAL: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "zero": lambda path: path.symlink_to("/dev/zero"),
    "random": lambda path: path.symlink_to("/dev/urandom"),
}


@pytest.fixture(params=SPECIAL)
def special(request: pytest.FixtureRequest) -> Callable[[Path], object]:
    return SPECIAL[request.param]


@pytest.fixture(autouse=True)
def _in_seconds(monkeypatch: pytest.MonkeyPatch) -> object:
    """Everything here is quick; a pipe is waited for a little less long than usual."""
    monkeypatch.setattr(text_lines, "_PATIENCE", 0.3)
    return None


@pytest.mark.parametrize("ending", ENDINGS)
def test_vectors(ending: str, special: Callable[[Path], object], tmp_path: Path) -> None:
    path = tmp_path / f"a{ending}"
    special(path)
    for place in (path, tmp_path):  # the file itself, and the folder that it lies in
        with pytest.raises(InputError, match="expected a regular file"):
            ArraySource(place)


def test_vectors_in_a_folder_are_skipped_on_request(special: Callable[[Path], object], tmp_path: Path) -> None:
    np.save(tmp_path / "good.npy", np.ones((3, 2)))
    special(tmp_path / "bad.npy")
    source = ArraySource(tmp_path, bad_files="skip")
    assert source.total == 3
    assert list(source.left_out) == [str(tmp_path / "bad.npy")]


@pytest.mark.parametrize("name", ["a.txt", "a", "a.jsonl", "a.csv", "a.parquet"])
def test_texts(name: str, special: Callable[[Path], object], tmp_path: Path) -> None:
    special(tmp_path / name)
    with pytest.raises(InputError, match=r"expected a regular file|to which nothing was written"):
        open_corpus(tmp_path / name)


def test_texts_in_a_folder(special: Callable[[Path], object], tmp_path: Path) -> None:
    """They are left out, as other files without text, and counted."""
    special(tmp_path / "a.txt")
    special(tmp_path / "b")
    (tmp_path / "c.txt").write_text("a text")
    corpus = open_corpus(tmp_path)
    assert [text.text for text in corpus] == ["a text"]
    assert corpus.describe()["files_left_out"] == 2


@pytest.mark.parametrize("kind", ["image", "audio"])
def test_media(kind: str, special: Callable[[Path], object], tmp_path: Path) -> None:
    name = {"image": "a.png", "audio": "a.wav"}[kind]
    special(tmp_path / name)
    with pytest.raises(InputError, match="expected a regular file"):
        open_media(tmp_path / name, kind)


def test_an_image_in_a_folder_counts_as_broken(special: Callable[[Path], object], tmp_path: Path) -> None:
    pytest.importorskip("PIL")
    from isotrope.sources.media.images import read

    special(tmp_path / "a.png")
    assert [read(item.data) for item in open_media(tmp_path, "image")] == [None]


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors", "1_Pooling/config.json"])
def test_models(name: str, special: Callable[[Path], object], tmp_path: Path) -> None:
    from isotrope.sources.models.load import can_read, load

    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "bert"}')
    (folder / name).unlink(missing_ok=True)
    special(folder / name)
    for use in (load, can_read):
        with pytest.raises(InputError, match="expected a regular file"):
            use(folder)


@pytest.mark.parametrize("name", ["a.gguf", "a.onnx"])
def test_models_in_one_file(name: str, special: Callable[[Path], object], tmp_path: Path) -> None:
    from isotrope.sources.models.load import load

    special(tmp_path / name)
    with pytest.raises(InputError, match="expected a regular file"):
        load(tmp_path / name)


@pytest.mark.parametrize(
    "name", ["findings.json", "statistics/index.json", "statistics/layer_0.safetensors", "tables/spectra.parquet"]
)
@pytest.mark.parametrize("hashed", [True, False])
def test_runs(name: str, hashed: bool, tmp_path: Path) -> None:
    """Also in a run without checksums, whose files are read without a look at them first."""
    import json

    from isotrope.repairs import saved_moments
    from isotrope.runs.run import Run
    from isotrope.scanner import scan

    run = tmp_path / "run"
    scan(vectors=np.random.default_rng(0).normal(size=(50, 3)), sample=10, output=run)
    if not hashed:
        index = json.loads((run / "statistics/index.json").read_text())
        (run / "statistics/index.json").write_text(json.dumps({key: index[key] for key in ("format", "files")}))
    (run / name).unlink()
    os.mkfifo(run / name)
    with pytest.raises(IsotropeError):
        _ = Run(run).findings(), saved_moments(run)


@pytest.mark.parametrize("name", ["config.json", "repair.safetensors"])
def test_repairs(name: str, tmp_path: Path) -> None:
    from isotrope.repairs import Centering, load_repair

    Centering().fit(np.eye(3)).save(tmp_path / "repair")
    (tmp_path / "repair" / name).unlink()
    os.mkfifo(tmp_path / "repair" / name)
    with pytest.raises(IsotropeError):
        load_repair(tmp_path / "repair")


def test_data_of_evaluations(tmp_path: Path) -> None:
    from isotrope.evaluation.pairs import read_sets
    from isotrope.finetuning.tasks import read_task
    from isotrope.report.advice import read_attachments
    from isotrope.sources.text.token_weights import TokenWeights

    for name in ("sts/sts-b-test.csv", "rte/train.tsv", "rte/validation.tsv", "run/a.json", "run/b.csv", "weights"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        os.mkfifo(tmp_path / name)
    for read in (
        lambda: read_sets(None, tmp_path, "concatenated"),
        lambda: read_task("rte", tmp_path),
        lambda: TokenWeights.load(tmp_path / "weights"),
    ):
        with pytest.raises(IsotropeError):
            read()
    assert read_attachments(tmp_path / "run")["evaluations"] == []


class TestPipes:
    """Text from a pipe is read as ever, as long as somebody writes to it."""

    def test_a_writer_that_comes_later(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")

        def write() -> None:
            time.sleep(0.1)
            with open(tmp_path / "pipe", "wb") as pipe:
                time.sleep(0.6)  # longer than a pipe without a writer is waited for
                pipe.write(b"one\n")
                pipe.flush()
                time.sleep(0.1)
                pipe.write(b"two\n" * 100_000)

        writer = threading.Thread(target=write)
        writer.start()
        corpus = open_corpus(tmp_path / "pipe")
        writer.join()
        assert corpus.count() == 100_001
        assert corpus.describe()["bytes"] == 400_004

    def test_a_pipe_without_a_writer(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe")
        begun = time.monotonic()
        with pytest.raises(InputError, match="to which nothing was written"):
            open_corpus(tmp_path / "pipe")
        assert time.monotonic() - begun < 5

    @pytest.mark.skipif(not Path("/dev/fd").exists(), reason="needs /dev/fd")
    def test_process_substitution(self) -> None:
        code = (
            "import sys; from isotrope.sources.corpora.corpus import open_corpus; "
            "print(open_corpus(sys.argv[1]).count())"
        )
        shell = f'{sys.executable} -c "$CODE" <(sleep 1; printf "one\\ntwo\\n")'
        done = subprocess.run(["bash", "-c", shell], env=os.environ | {"CODE": code}, capture_output=True, text=True)
        assert done.stdout == "2\n", done.stderr

    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/urandom"])
    def test_standard_input_without_end(self, device: str) -> None:
        code = "from isotrope.sources.corpora.corpus import open_corpus; open_corpus('-')"
        with open(device, "rb") as endless:
            done = subprocess.run(
                [sys.executable, "-c", code], stdin=endless, capture_output=True, text=True, timeout=60
            )
        assert "InputError: standard input is binary or UTF-16" in done.stderr

    def test_a_line_without_end(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(text_lines, "LONGEST", 1000)
        os.mkfifo(tmp_path / "pipe")
        writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"short\n" + b"x" * 1001,))
        writer.start()
        with pytest.raises(InputError, match=r"line 2 of .* is longer than"):
            for _ in open_corpus(tmp_path / "pipe"):
                pass
        writer.join()


@pytest.mark.parametrize(
    "arguments",
    [
        ["a.npy"],
        pytest.param(["--vectors", "a.npy"], marks=pytest.mark.long),
        pytest.param(["--text", "b.txt"], marks=pytest.mark.long),
        ["--text", "/dev/zero"],
    ],
)
def test_the_command_says_it_in_one_sentence(arguments: list[str], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.npy")
    (tmp_path / "b.txt").symlink_to("/dev/urandom")
    command = [sys.executable, "-m", "isotrope", "scan", *arguments, "-o", "run"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("isotrope: ")
    assert ended.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
