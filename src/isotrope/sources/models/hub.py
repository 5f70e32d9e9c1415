"""Whether the Hugging Face hub can be reached at all, and whether a model of it is here already."""

from __future__ import annotations

import os
import socket
import threading
import urllib.parse
import urllib.request
from pathlib import Path

_DEFAULT = "https://huggingface.co"

#: Seconds after which a name server that says nothing counts as no network.
_PATIENCE = 3.0


def hub_answers() -> bool:
    """Whether the hub's address is known: without a network its client would retry for half a minute."""
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        return True  # the client itself then looks only into its cache, at once
    if urllib.request.getproxies():  # then the proxy resolves the name
        return True
    host = urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", _DEFAULT)).hostname
    found = threading.Event()

    def ask() -> None:
        try:
            socket.getaddrinfo(host, 443)
        except OSError:
            return
        found.set()

    asking = threading.Thread(target=ask, daemon=True)  # a lookup cannot be called off, but it can be left behind
    asking.start()
    asking.join(_PATIENCE)
    return found.is_set()


def find_commit(name: str, file: str, revision: str | None = None) -> str | None:
    """The commit under which a file of a model on the hub lies in the client's cache, None where it does not."""
    try:
        from huggingface_hub import try_to_load_from_cache
        from huggingface_hub.errors import HFValidationError
    except ImportError:
        return None
    try:
        found = try_to_load_from_cache(name, file, revision=revision)
    except HFValidationError:
        return None
    return Path(found).parents[file.count("/")].name if isinstance(found, str) else None
