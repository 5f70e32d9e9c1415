"""The few errors that isotrope raises on purpose.

Each message is one sentence a user can act on: what was found, what was expected, what to do.
The command line prints it and leaves with exit code 2.
"""

from __future__ import annotations


class IsotropeError(Exception):
    """Base of every error that isotrope raises on purpose."""


class InputError(IsotropeError, ValueError):
    """The input (file, array, model, option) cannot be used as it is."""


class MissingExtra(IsotropeError):
    """An optional dependency is needed; the message names its pip command."""

    def __init__(self, package: str, extra: str, what: str) -> None:
        super().__init__(
            f"{what} needs the package {package!r}, which is not installed; run: pip install 'isotrope[{extra}]'."
        )
        self._given = package, extra, what

    def __reduce__(self) -> tuple[type[MissingExtra], tuple[str, str, str]]:
        return type(self), self._given  # by itself it would be made of its message, when it comes from a worker


class StoreError(IsotropeError):
    """A file, folder or store cannot be read or written."""


class MergeError(IsotropeError):
    """Two statistics do not describe the same kind of rows and cannot be added."""


class Undefined(IsotropeError):
    """A measure has no value on this input; the message is the reason."""


def describe_error(error: BaseException) -> str:
    """Return the message of a library's error in one line, without a full stop."""
    return " ".join(str(error).split()).rstrip(".")[:300] or type(error).__name__
