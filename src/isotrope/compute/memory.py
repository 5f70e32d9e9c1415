"""Memory that is no longer needed goes back to the system."""

from __future__ import annotations

import ctypes
import sys


def release_memory() -> None:
    """Return what was freed to the system, where the C library can (glibc).

    By itself it keeps a dozen megabytes or none, as chance will have it, and what follows a pass comes on top of them.

    >>> release_memory()
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
        if trim is not None:
            trim(0)
