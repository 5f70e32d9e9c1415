"""The encoder and the decoder of a model apart: what changes with depth changes within a stack."""

from __future__ import annotations

from collections.abc import Mapping

import pandas as pd


def split_stacks(frame: pd.DataFrame, names: Mapping[str, str], model: str) -> dict[str, pd.DataFrame]:
    """Split a table of layers into those of the encoder and of the decoder, with layers by their names.

    Args:
        frame: a row for each layer, in the column `layer`.
        names: the names of layers by their number as text, as findings have them.
        model: the name of the model.

    Returns:
        The layers of each stack by the model's name and the stack's; all layers unchanged where there is one stack.

    >>> frame = pd.DataFrame({"layer": [0, 1, 2, 3]})
    >>> names = {"0": "encoder.0", "1": "encoder.1", "2": "decoder.0", "3": "decoder.1"}
    >>> {name: rows["layer"].tolist() for name, rows in split_stacks(frame, names, "m").items()}
    {'m encoder': ['encoder.0', 'encoder.1'], 'm decoder': ['decoder.0', 'decoder.1']}
    """
    named = frame["layer"].map(lambda layer: names.get(str(layer), str(layer)))
    stacks = named.str.extract(r"^(encoder|decoder)\.", expand=False)
    if stacks.nunique() < 2 or stacks.isna().any():
        return {model: frame}
    by_name = frame.assign(layer=named)
    return {f"{model} {stack}": by_name[stacks == stack].reset_index(drop=True) for stack in ("encoder", "decoder")}
