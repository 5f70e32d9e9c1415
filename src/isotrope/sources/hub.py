"""Whether the Hugging Face hub can be reached at all."""

from __future__ import annotations

import os
import socket
import urllib.parse
import urllib.request

_DEFAULT = "https://huggingface.co"


def hub_answers() -> bool:
    """Whether the hub's address is known: without a network its client would retry for half a minute."""
    if os.environ.get("HF_HUB_OFFLINE", "0") not in ("", "0"):
        return True  # the client itself then looks only into its cache, at once
    if urllib.request.getproxies():  # then the proxy resolves the name
        return True
    host = urllib.parse.urlsplit(os.environ.get("HF_ENDPOINT", _DEFAULT)).hostname
    try:
        socket.getaddrinfo(host, 443)
    except OSError:
        return False
    return True
