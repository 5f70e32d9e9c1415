"""Texts as padded arrays of token ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import Text
from isotrope.sources.models.load import Loaded

#: Longer texts are cut here, unless the model takes less or the user says otherwise.
LONGEST = 512

#: Tokens, of the first text and padding, that are enough to see which hidden states there are, and how long.
_PROBE = 16


class EncodedText(NamedTuple):
    """One text as token ids (t,), which of them the tokenizer added, and how many were cut off.

    Where each token is spelled in c characters, as for CharacterBERT, the ids are those of the characters, (t, c).
    """

    id: int
    group: str | None
    tokens: NDArray[np.int64]
    special: NDArray[np.bool_]
    cut: int


def tokenize_first(
    loaded: Loaded, texts: Iterable[Text], max_length: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ids and mask of the beginning of the first text that has tokens, to see which hidden states there are."""
    for text in texts:
        for e in encode(loaded, [text], max_length):
            beginning = e._replace(tokens=e.tokens[: _PROBE // 2])
            return pad_texts([beginning], loaded.pad, _PROBE if max_length >= _PROBE else 1)
    raise InputError(f"no text has a token for the tokenizer of {loaded.name}; give a text that it can read.")


def encode(loaded: Loaded, texts: Sequence[Text], max_length: int) -> list[EncodedText]:
    """Token ids of each text that has any, cut at max_length with the tokenizer's closing tokens kept."""
    tokenizer = loaded.tokenizer
    options = {"return_special_tokens_mask": True, "return_attention_mask": False, "verbose": False}
    whole = tokenizer([text.text for text in texts], **options)
    found = []
    for i, text in enumerate(texts):
        ids, special = whole["input_ids"][i], whole["special_tokens_mask"][i]
        cut = max(0, len(ids) - max_length)
        if cut:
            short = tokenizer(text.text, truncation=True, max_length=max_length, **options)
            ids, special = short["input_ids"], short["special_tokens_mask"]
        if ids:
            found.append(EncodedText(text.id, text.group, np.array(ids, np.int64), np.array(special, dtype=bool), cut))
    return found


def resolve_max_length(loaded: Loaded, asked: int | None) -> int:
    """Tokens at which texts are cut: what was asked for, within what the model takes."""
    takes = [getattr(loaded.tokenizer, "model_max_length", None), _count_positions(loaded.model)]
    most = min((t for t in takes if isinstance(t, int) and 0 < t < 10**6), default=10**6)
    if asked is None:
        return min(most, LONGEST)
    least = loaded.tokenizer.num_special_tokens_to_add() + 1
    if not least <= asked <= most:
        raise InputError(f"max_length is {asked:,}; {loaded.name} takes from {least} to {most:,} tokens.")
    return asked


def _count_positions(model: Any) -> int | None:
    """How many tokens a model has positions for, None where it says nothing."""
    total = getattr(model.config, "max_position_embeddings", None)
    if not isinstance(total, int):
        return None
    for name, module in model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return int(total - padding - 1)  # RoBERTa and its kin count places from their padding id on
    return total


def pad_texts(encoded: list[EncodedText], pad: int, multiple: int = 1) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Ids (b, t) or (b, t, c) padded on the right, t a multiple of a number, and the mask (b, t) of what is not."""
    longest = max(len(e.tokens) for e in encoded)
    shape = (len(encoded), -(-longest // multiple) * multiple)
    ids = fill_rows([e.tokens for e in encoded], (*shape, *encoded[0].tokens.shape[1:]), fill=pad)
    return ids, fill_rows([np.ones(len(e.tokens), dtype=bool) for e in encoded], shape, fill=False)


def fill_rows(parts: list[NDArray[Any]], shape: tuple[int, ...], fill: Any) -> NDArray[Any]:
    out = np.full(shape, fill, dtype=parts[0].dtype)
    for row, part in zip(out, parts, strict=True):
        row[: len(part)] = part
    return out


def count_tokens_per_row(tokens: int, rows: int) -> int | None:
    """Tokens to a row, None where that is no whole number.

    >>> [count_tokens_per_row(16, rows) for rows in (16, 4, 5, 32)]
    [1, 4, None, None]
    """
    return tokens // rows if 0 < rows <= tokens and tokens % rows == 0 else None


def merge_mask(mask: NDArray[np.bool_], step: int) -> NDArray[np.bool_]:
    """A mask (b, t) of rows that stand for several tokens each, (b, t / step): true where any of them is.

    >>> merge_mask(np.array([[True, True, True, False, False, False]]), 2).tolist()
    [[True, True, False]]
    """
    return np.asarray(mask.reshape(len(mask), -1, step).any(axis=2))
