"""What models need around them: packages, a device that works, and a library that keeps quiet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from importlib.util import find_spec
from io import StringIO
from typing import Any

from isotrope.errors import InputError, MissingExtra, describe_error


def check_packages(extra: str, what: str, *packages: str) -> None:
    """Refuse to go on without packages, naming the extra that has them."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, extra, what)


@contextmanager
def silence_transformers() -> Iterator[None]:
    """No warnings and progress bars of transformers, whose settings are left as they were."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with redirect_stderr(StringIO()):  # the bar of GGUF files knows no setting
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def resolve_device(torch: Any, device: str, exact: bool) -> str:
    """The device that is meant, once it is known to work."""
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() and not exact else "cpu"
    try:
        torch.empty(1, device=device, dtype=torch.float64 if exact else torch.float32)
    except Exception as error:
        raise InputError(
            f"the device {device!r} cannot be used ({describe_error(error)}); try --device cpu."
        ) from error
    return device
