"""The norm and variance study (Yamagiwa and Shimodaira 2024)."""

from typing import Any

from isotrope.deprecation import resolve_moved


def __getattr__(name: str) -> Any:
    return resolve_moved(__name__, name)
