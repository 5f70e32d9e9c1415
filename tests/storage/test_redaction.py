"""No secret is written down, wherever it stands."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from isotrope.repairs import Centering
from isotrope.scanner import scan
from isotrope.storage.redaction import mask_arguments, mask_facts, mask_secrets


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
        ("AccountName=me;AccountKey=sesame==", "sesame"),
        *(
            (f"https://host/a.npy?x=1&{name}=sesame&y=2", "sesame")
            for name in (
                "key",
                "auth",
                "code",
                "pwd",
                "jwt",
                "KEY",
                "Code",
                "api_key",
                "apikey",
                "apiKey",
                "x-api-key",
                "auth_key",
                "private-key",
                "subscription-key",
                "Ocp-Apim-Subscription-Key",
                "x-functions-key",
                "authorization",
                "x_auth",
                "auth_code",
                "authorizationCode",
                "device-code",
                "db_pwd",
                "id_jwt",
                "x-amz-signature",
                "X-Goog-Signature",
                "X-Amz-Security-Token",
                "access_key_id",
                "secretKey",
                "sharedKey",
                "passcode",
            )
        ),
        ("https://host/a.npy?key=sesame", "sesame"),
        ("https://host/a.npy#jwt=sesame", "sesame"),
        ("Server=x;UID=me;PWD=sesame", "sesame"),
    ],
)
def test_patterns(text: str, without: str) -> None:
    assert without not in mask_secrets(text)


def test_what_is_no_secret_stays() -> None:
    for text in ("a@b.c", "https://host/path?tokens=3", "tokenizer=bert.json", "10:30@noon", "org/model-1"):
        assert mask_secrets(text) == text
    innocent = (
        "keyword", "keywords", "encode", "encoding", "author", "authors", "monkey", "decode", "unicode", "barcode",
        "hotkey", "sort_key", "primary_key", "country_code", "language-code", "keys", "codec", "keyboard", "postcode",
    )  # fmt: skip
    for name in innocent:
        for text in (f"https://host/a.npy?{name}=x&b=1", f"https://host/a.npy?a=1&{name}=x"):
            assert mask_secrets(text) == text
    for text in ("ended with code=3", "by key=language", "auth=no is not in a URL"):
        assert mask_secrets(text) == text
    assert mask_arguments([]) == []
    kept = ["--token-weights", "a", "--tokenizer", "b", "--password-file-mode", "c", "--key", "d", "--tokens", "e"]
    assert mask_arguments(kept) == kept
    assert mask_facts({"n": 3, "x": None, "y": (1.5, "z")}) == {"n": 3, "x": None, "y": [1.5, "z"]}


@pytest.mark.parametrize(
    "option",
    ["--token", "--api_key", "--api-key", "--hf_token", "--hub_token", "--hftoken", "--client-secret", "--password",
     "--aws-secret-access-key", "--aws_access_key_id", "--wandb-api-key", "--account-key", "--secret-key", "-token"],
)  # fmt: skip
def test_options(option: str) -> None:
    assert mask_arguments(["x", option, "sesame", "y"]) == ["x", option, "***", "y"]
    assert "sesame" not in mask_arguments([f"{option}=sesame"])[0]


def test_variables_that_are_no_secret_and_short_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENIZER_PATH", "/models/bert")
    monkeypatch.setenv("PGPASSWORD", "rows")
    monkeypatch.setenv("ADMIN_PASSWD", "x7?")
    assert mask_secrets("/models/bert x7? rows arrows rows.npy") == "/models/bert x7? *** arrows ***.npy"


def test_values_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", "a secret of mine")
    monkeypatch.setenv("PGPASSWORD", "another one")
    monkeypatch.setenv("HOME_OF_MINE", "a plain value")
    assert mask_secrets("x a secret of mine y another one z a plain value") == "x *** y *** z a plain value"


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


def test_addresses_that_were_skipped(tmp_path: Path) -> None:
    """Findings, report and verdict name them without their passwords."""
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(50, 3)))
    bad = ["postgresql://me:hush hush@127.0.0.1:9/db#t", "postgresql://", "lancedb:nowhere#t"]
    found = scan(vectors=[str(tmp_path / "rows.npy"), *bad], bad_files="skip", sample=10, output=tmp_path / "run")
    assert set(found.source["left_out"]) == {"postgresql://***@127.0.0.1:9/db#t", *bad[1:]}
    assert any("***@127.0.0.1" in statement.text for statement in found.verdict.statements)
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_dir() or b"hush hush" not in path.read_bytes()
