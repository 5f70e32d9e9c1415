"""No secret is written down, wherever it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from isotrope.pipeline import scan
from isotrope.repairs import Centering
from isotrope.secrets import masked, masked_arguments, masked_facts


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("https://me:word@host/a.npy", "word"),
        ("qdrant://host:6333/rows?api_key=sesame", "sesame"),
        ("s3://bucket/a?X-Amz-Signature=0123abcd&X-Amz-Credential=AKIA", "0123abcd"),
        ("s3://bucket/a?X-Amz-Signature=0123abcd&X-Amz-Credential=AKIA", "AKIA"),
        ("host=x dbname=y password=sesame user=z", "sesame"),
        ("hf_abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
        ("az://container?sig=sesame%3D", "sesame"),
    ],
)
def test_patterns(text: str, without: str) -> None:
    assert without not in masked(text)


def test_what_is_no_secret_stays() -> None:
    for text in ("a@b.c", "https://host/path?tokens=3", "tokenizer=bert.json", "10:30@noon", "org/model-1"):
        assert masked(text) == text
    assert masked_arguments([]) == []
    assert masked_facts({"n": 3, "x": None, "y": (1.5, "z")}) == {"n": 3, "x": None, "y": [1.5, "z"]}


def test_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "a secret of mine")
    monkeypatch.setenv("PGPASSWORD", "another one")
    monkeypatch.setenv("HOME_OF_MINE", "a plain value")
    assert masked("x a secret of mine y another one z a plain value") == "x *** y *** z a plain value"


def test_nothing_that_is_written_holds_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the command, and in the path of the input itself."""
    monkeypatch.setenv("MY_ACCESS_TOKEN", "sesame-open-yourself")
    place = tmp_path / "sesame-open-yourself"
    place.mkdir()
    np.save(place / "rows.npy", np.random.default_rng(0).normal(size=(50, 3)))
    monkeypatch.setattr(sys, "argv", ["train.py", "--password", "hush-hush", "--x", "sesame-open-yourself"])
    scan(vectors=place / "rows.npy", sample=10, output=tmp_path / "run")
    Centering().fit(place / "rows.npy").save(tmp_path / "repair")
    for folder in ("run", "repair"):
        written = b"".join(path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file())
        assert b"rows.npy" in written
        for secret in (b"sesame-open-yourself", b"hush-hush"):
            assert secret not in written
