"""Models of Hugging Face, GGUF and ONNX, and their hidden states."""

from typing import Any

from isotrope.deprecation import resolve_moved


def __getattr__(name: str) -> Any:
    return resolve_moved(__name__, name)
