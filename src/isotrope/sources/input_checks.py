"""Which options of an input go together: those of vectors, of a model that runs here, and of one behind a URL."""

from __future__ import annotations

from typing import Any

from isotrope.errors import InputError
from isotrope.options import find_changes

#: Options on a model that runs here.
_MODEL_OPTIONS = (
    *("pooling", "token_weights", "special_tokens", "max_length", "merge_types"),
    *("revision", "gguf_file", "trust_remote_code", "device", "hooks", "maps"),
)

#: Options on a model behind a URL.
_ENDPOINT_OPTIONS = ("endpoint", "concurrency", "keep_vectors")

#: Options that only a model over a text has.
_TEXT_OPTIONS = (*_ENDPOINT_OPTIONS, *_MODEL_OPTIONS, "split", "unit", "share", "max_words")

#: Options among these that models of images and sounds do not have.
_TEXT_ONLY = (
    *("unit", "gguf_file", "max_length", "token_weights", "share", "max_words", "merge_types"),
    *("id_column", "text_column"),
)


def check_endpoint(reading: Any) -> None:
    """Refuse options that an endpoint has no use for, and those of an endpoint where there is none.

    Args:
        reading: An `isotrope.Input`.
    """
    if reading.endpoint is not None and reading.vectors is None:
        for name, value in find_changes(reading, _MODEL_OPTIONS).items():
            raise InputError(f"an endpoint has no use for {name.replace('_', '-')} ({value!r}); leave it out.")
        if reading.layers not in ("all", None, 0, "0", -1, "-1", "encoded"):
            raise InputError(f"an endpoint has one layer, got {reading.layers!r}; leave the layers out.")
        if not isinstance(reading.model, str):
            raise InputError("got an endpoint without the name of a model; give it with --model.")
        if reading.concurrency < 1:
            raise InputError(f"the concurrency is {reading.concurrency}, expected at least 1.")
    elif reading.endpoint is None:
        for name in find_changes(reading, _ENDPOINT_OPTIONS):
            raise InputError(f"only an endpoint has a use for {name.replace('_', '-')}; give it with --endpoint.")


def check_vectors(reading: Any) -> None:
    """Refuse what vectors have no use for: a model, a text, layers, and options on these."""
    if reading.model is not None or reading.text is not None:
        given = "model" if reading.model is not None else "text"
        raise InputError(f"vectors take no {given}; give the vectors alone, or a model and a text.")
    if reading.layers not in ("all", 0, "0", -1, "-1"):
        raise InputError("vectors have no layers; leave them out.")
    for name, value in find_changes(reading, _TEXT_OPTIONS).items():
        raise InputError(f"vectors have no use for {name.replace('_', '-')} ({value!r}); leave it out.")


def check_media(reading: Any, modality: str) -> None:
    """Refuse options on texts for a model of images or sounds."""
    for name in find_changes(reading, _TEXT_ONLY):
        raise InputError(f"{modality} has no use for {name.replace('_', '-')}; leave it out.")
