"""Which hidden states of a model become layers, and what is refused before any of them is computed."""

from __future__ import annotations

from collections.abc import Sequence

from isotrope.errors import InputError
from isotrope.layers import Choice, Layer, resolve_layers
from isotrope.sources.text.pooling import ACROSS_LAYERS, Pooling


def check_options(special_tokens: str, batch_size: int) -> None:
    """Refuse what no model can be run with."""
    if special_tokens not in ("keep", "drop"):
        raise InputError(f"special tokens can be kept or dropped, got {special_tokens!r}: say keep or drop.")
    if batch_size < 1:
        raise InputError(f"the batch size is {batch_size}, expected at least 1.")


def resolve_pooled_layers(
    layers: str | int | Sequence[int | str], pooling: Pooling | None, names: Sequence[str]
) -> list[Choice]:
    """Find the layers that are asked for, or those that the pooling names itself.

    Args:
        layers: See `isotrope.layers.resolve_layers`.
        pooling: What makes one row of several, None where each row stays.
        names: Names of all hidden states.
    """
    if pooling and pooling.layers and layers != "all":
        raise InputError(f"the pooling {pooling.name} names its layers itself; leave the layers {layers!r} out.")
    try:
        return resolve_layers(pooling.layers if pooling and pooling.layers else layers, names)
    except InputError as error:
        if pooling is None or pooling.name not in ACROSS_LAYERS:
            raise
        raise InputError(f"{error} Name the layers of the pooling, such as {pooling.name}:0..-1.") from error


def check_mixes(choices: Sequence[Choice], pooling: Pooling | None, names: Sequence[str]) -> None:
    """Refuse mixes of text layers that cannot be averaged, and those that the pooling cannot use."""
    for choice in choices:
        sides = {names[state].partition(".")[0] for state in choice.states}
        if pooling and len(choice.states) < pooling.least:
            raise InputError(f"the pooling {pooling.name} needs at least {pooling.least} layers, got {choice.label}.")
        if len(choice.states) > 1 and pooling is None:
            raise InputError(f"the mix of layers {choice.label} needs a pooling, such as --pooling mean.")
        if {"encoder", "decoder"} <= sides:
            raise InputError(f"the mix {choice.label} joins encoder and decoder layers, whose rows differ.")


def name_layers(choices: Sequence[Choice], names: Sequence[str]) -> dict[Layer, str]:
    """What to call each layer, where there is more to say than its number."""
    return {c.label: names[c.label] if isinstance(c.label, int) else str(c.label) for c in choices}
