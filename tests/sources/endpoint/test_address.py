"""The URL of an endpoint and its key."""

from __future__ import annotations

import pytest

from isotrope.errors import InputError
from isotrope.sources.endpoint.address import read_key, resolve_address


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1/embeddings"),
        ("http://localhost:8000/", "http://localhost:8000/v1/embeddings"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1/embeddings"),
        ("https://api.openai.com/v1/embeddings/", "https://api.openai.com/v1/embeddings"),
        ("https://host/openai/v3?api-version=2", "https://host/openai/v3/embeddings?api-version=2"),
        ("HTTP://[::1]:80/v1#part", "http://[::1]:80/v1/embeddings"),
    ],
)
def test_the_rule_for_urls(given: str, expected: str) -> None:
    assert resolve_address(given) == expected


@pytest.mark.parametrize(
    "given",
    ["localhost:8000", "ftp://host/v1", "file:///etc/passwd", "http://", "http://h:port/v1", "http://h/a b", ""],
)
def test_what_is_no_http_url_is_one_sentence(given: str) -> None:
    with pytest.raises(InputError, match="begins with http:// or https://"):
        resolve_address(given)


def test_a_password_in_the_url_is_refused_and_not_shown() -> None:
    with pytest.raises(InputError, match="ISOTROPE_API_KEY") as caught:
        resolve_address("https://me:pa55word@host/v1")
    assert "pa55word" not in str(caught.value)


def test_the_first_variable_that_is_set_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ISOTROPE_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert read_key() == ""
    monkeypatch.setenv("OPENAI_API_KEY", "second")
    assert read_key() == "second"
    monkeypatch.setenv("ISOTROPE_API_KEY", " first\n")
    assert read_key() == "first"
    monkeypatch.setenv("ISOTROPE_API_KEY", "")  # no key for this endpoint
    assert read_key() == ""


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ISOTROPE_API_KEY", "sk-half\r\nX-Other: half")
    with pytest.raises(InputError, match="in ISOTROPE_API_KEY") as caught:
        read_key()
    assert "half" not in str(caught.value)
