"""The URL that requests for embeddings go to, and the key that goes with them."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit, urlunsplit

from isotrope.errors import InputError
from isotrope.storage.redaction import mask_secrets

#: Variables of the environment that hold the key; the first that is set decides, even where it is empty.
KEY_VARIABLES = ("ISOTROPE_API_KEY", "OPENAI_API_KEY")

#: The end of the path of every OpenAI-compatible endpoint, and what comes before it where only a host is given.
_EMBEDDINGS, _VERSION = "/embeddings", "/v1"

#: Characters that a URL, or the value of a header, cannot hold.
_UNPRINTABLE = re.compile(r"[^\x21-\x7e]")


def resolve_address(given: str) -> str:
    """Resolve the URL of an endpoint: a path that ends in /embeddings stays, any other gets it; a host gets /v1 too.

    >>> [resolve_address(f"http://host:8000{path}") for path in ("", "/v1/", "/v1/embeddings", "/openai/v1")]
    ... # doctest: +NORMALIZE_WHITESPACE
    ['http://host:8000/v1/embeddings', 'http://host:8000/v1/embeddings', 'http://host:8000/v1/embeddings',
     'http://host:8000/openai/v1/embeddings']
    """
    error = InputError(
        f"the endpoint {mask_secrets(given)!r} is not a URL that begins with http:// or https://; "
        "give one such as http://localhost:8000/v1."
    )
    try:
        parts = urlsplit(given)
        _ = parts.port  # which raises for what is no number
    except ValueError:
        raise error from None
    if parts.scheme not in ("http", "https") or not parts.hostname or _UNPRINTABLE.search(given):
        raise error
    if "@" in parts.netloc:
        raise InputError(
            f"the endpoint {mask_secrets(given)!r} holds a user or a password; "
            f"leave it out, and set the key in the environment variable {KEY_VARIABLES[0]}."
        )
    path = parts.path.rstrip("/")
    if not path.endswith(_EMBEDDINGS):
        path = f"{path or _VERSION}{_EMBEDDINGS}"
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def read_key() -> str:
    """Read the key from the environment; empty where there is none."""
    name = next((name for name in KEY_VARIABLES if name in os.environ), KEY_VARIABLES[0])
    key = os.environ.get(name, "").strip()
    if _UNPRINTABLE.search(key):
        raise InputError(f"the key in {name} holds a space, a line break or a character beyond ASCII; set it again.")
    return key
