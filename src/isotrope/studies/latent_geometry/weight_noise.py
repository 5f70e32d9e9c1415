"""Models that are less than they were: noise on their weights, shuffled, foreign or untrained parts."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.models.load import Loaded
from isotrope.studies.transformer_block import block_list


def noisy(loaded: Loaded, alpha: float, seed: int, *, deviation: float = 1.0, block: int | None = None) -> Loaded:
    """The model with W ← (1 − α)W + αε for each parameter of its blocks whose name ends in "weight".

    ε ~ N(0, deviation²), the same for every α of one seed. block: only this one. Input embeddings and biases stay as
    they are, norms' weights do not, as in the authors' code (Marbut, Chandler and Wheeler).
    """
    import torch

    if not 0.0 <= alpha <= 1.0:
        raise InputError(f"the share of noise is {alpha:g}, expected 0 to 1.")
    model = deepcopy(loaded.model)
    blocks = block_list(model)[1]
    if block is not None and not 0 <= block < len(blocks):
        raise InputError(f"there is no block {block}: {loaded.name} has blocks 0 to {len(blocks) - 1}.")
    rng = np.random.default_rng(seed)
    with torch.no_grad():
        for number, part in enumerate(blocks):
            for name, weight in part.named_parameters():
                if not name.endswith("weight"):
                    continue
                # Drawn for all blocks, so that the noise of a block does not depend on which ones get it.
                noise = torch.from_numpy(rng.normal(scale=deviation, size=tuple(weight.shape))).to(weight)
                if block in (None, number):
                    weight.copy_((1.0 - alpha) * weight + alpha * noise)
    what = "" if block is None else f" in block {block}"
    return replace(loaded, model=model, name=f"{loaded.name} with noise {alpha:g}{what}, seed {seed}")


def noisy_rows(rows: NDArray[np.floating[Any]], alpha: float, seed: int) -> NDArray[np.float64]:
    """Rows (n, d) with noise on themselves instead: (1 − α)x + αsε, s the standard deviation of all coordinates."""
    wide = np.asarray(rows, dtype=np.float64)
    noise = np.random.default_rng(seed).normal(scale=wide.std(), size=wide.shape)
    return (1.0 - alpha) * wide + alpha * noise


def shuffled_embeddings(loaded: Loaded, seed: int) -> Loaded:
    """The model with the rows of its input embeddings in random order."""
    import torch

    model = deepcopy(loaded.model)
    table = model.get_input_embeddings().weight
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(table)))
    with torch.no_grad():
        table.copy_(table[order].clone())
    return replace(loaded, model=model, name=f"{loaded.name} with shuffled embeddings, seed {seed}")


def foreign_embeddings(loaded: Loaded, other: Loaded) -> Loaded:
    """The model with the input embeddings and the tokenizer of another one of the same width."""
    refuse_width(loaded, other)
    model, theirs = deepcopy(loaded.model), other.model.get_input_embeddings()
    model.set_input_embeddings(deepcopy(theirs))
    model.config.vocab_size = len(theirs.weight)
    return replace(
        loaded, model=model, tokenizer=other.tokenizer, name=f"{loaded.name} with the embeddings of {other.name}"
    )


def refuse_width(loaded: Loaded, other: Loaded) -> None:
    """Refuse embeddings that are not as wide as the model's own."""
    mine, theirs = (one.model.get_input_embeddings().weight.shape[1] for one in (loaded, other))
    if mine != theirs:
        raise InputError(
            f"the embeddings of {other.name} have width {theirs}, those of {loaded.name} {mine}; "
            "name models of one width."
        )


def untrained(loaded: Loaded, seed: int) -> Loaded:
    """A freshly initialised model of the same kind under the trained input embeddings."""
    import torch
    from transformers import AutoModel

    from isotrope.softdecay.attach import copy_layer

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModel.from_config(loaded.model.config).to(loaded.model.dtype).to(loaded.device).eval()
    with torch.no_grad():
        model.get_input_embeddings().weight.copy_(loaded.model.get_input_embeddings().weight)
    copy_layer(loaded.model, model)
    return replace(loaded, model=model, name=f"{loaded.name} untrained, seed {seed}")
