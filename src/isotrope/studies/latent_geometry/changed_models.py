"""The changed models of the latent-geometry study: noise on weights, and shuffled, foreign or untrained parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError
from isotrope.sources.models.load import Loaded
from isotrope.studies.options import to_file_name
from isotrope.studies.transformer_block import find_blocks

#: Noise on all weights of the blocks, N(0, 1) as in the paper, which correlations and regressions are over.
WEIGHTS = "weights"

#: The same with N(0, 0.02²), as large as initial weights; on one block; and on the rows that come out of the model.
SMALL, ONE_BLOCK, ROWS = "weights, small noise", "one block", "rows"

SHUFFLED, FOREIGN, UNTRAINED = "shuffled embeddings", "foreign embeddings", "untrained"

#: Another checkpoint as it is.
CHECKPOINT = "checkpoint"

#: Models that are not made by noise, on which regressions are tested.
OTHERS = (SHUFFLED, FOREIGN, UNTRAINED, CHECKPOINT)

_SMALL_DEVIATION = 0.02


@dataclass(frozen=True)
class Case:
    """How one model is changed.

    Args:
        kind: the kind of change.
        level: the share of noise, NaN where there is none.
        seed: of the noise and of training.
        block: the block with noise, None for all.
    """

    kind: str
    level: float
    seed: int
    block: int | None = None

    @property
    def name(self) -> str:
        """A name that is unique among the cases of a model.

        >>> Case("one block", 0.1, 0, 3).name, Case("untrained", math.nan, 1).name
        ('one block 3 0.1 seed 0', 'untrained seed 1')
        """
        block = "" if self.block is None else f" {self.block}"
        level = "" if math.isnan(self.level) else f" {self.level:g}"
        return f"{self.kind}{block}{level} seed {self.seed}"

    @property
    def can_score(self) -> bool:
        """Whether the changed model can be fine-tuned: noise on rows is in no model."""
        return self.kind != ROWS

    def apply(self, loaded: Loaded, foreign: Loaded | None = None) -> Loaded:
        """Make the changed model; `foreign` is the model whose embeddings it gets, if it gets any."""
        if self.kind == SHUFFLED:
            return shuffle_embeddings(loaded, self.seed)
        if self.kind == UNTRAINED:
            return reset_weights(loaded, self.seed)
        if self.kind == FOREIGN:
            assert foreign is not None
            return replace_embeddings(loaded, foreign)
        if self.kind in (ROWS, CHECKPOINT):
            return loaded
        deviation = _SMALL_DEVIATION if self.kind == SMALL else 1.0
        return add_weight_noise(loaded, self.level, self.seed, deviation=deviation, block=self.block)


def sort_levels(levels: Sequence[float]) -> list[float]:
    """Sort the shares of noise, without duplicates."""
    for level in levels:
        _check_level(level)
    return sorted(set(levels))


def _check_level(level: float) -> None:
    if not 0.0 <= level <= 1.0:
        raise InputError(f"the share of noise is {level:g}, expected 0 to 1.")


def match_checkpoints(models: Sequence[str], others: Sequence[str], load: Callable[[str], Loaded]) -> dict[str, str]:
    """Match each other checkpoint to the model of the same type and width.

    Args:
        models: the models that are changed.
        others: checkpoints that are used unchanged.
        load: loads a model by name.

    Returns:
        The matching model of each checkpoint.
    """
    if len({to_file_name(name) for name in (*models, *others)}) < len(models) + len(others):
        names = ", ".join((*models, *others))
        raise InputError(f"two of {names} give the same file name; rename one of them or leave it out.")
    by_shape = {_model_shape(load(name)): name for name in reversed(models)}
    matches = {}
    for other in others:
        shape = _model_shape(load(other))
        if shape not in by_shape:
            raise InputError(
                f"{other} is of another kind or width than {', '.join(models)}, so that no regression is for it; "
                "name a checkpoint like one of the models."
            )
        matches[other] = by_shape[shape]
    return matches


def _model_shape(loaded: Loaded) -> tuple[str, int]:
    return str(loaded.model.config.model_type), int(loaded.model.config.hidden_size)


def list_cases(levels: Sequence[float], seeds: Sequence[int], blocks: int, *, foreign: bool = False) -> list[Case]:
    """List the cases: weight noise at all levels and seeds, and every other change once.

    Args:
        levels: shares of noise.
        seeds: of the noise; other changes get the first.
        blocks: the number of blocks; each alone gets noise of the middle level.
        foreign: whether there are embeddings of another model.

    >>> [case.name for case in list_cases([0, 0.1], [0, 1], 1)][:4]
    ['weights 0 seed 0', 'weights 0 seed 1', 'weights 0.1 seed 0', 'weights 0.1 seed 1']
    """
    first, noise = seeds[0], [level for level in levels if level]
    cases = [Case(WEIGHTS, level, seed) for level in levels for seed in seeds]
    cases += [Case(kind, math.nan, first) for kind in (SHUFFLED, *([FOREIGN] if foreign else []), UNTRAINED)]
    cases += [Case(kind, level, first) for kind in (ROWS, SMALL) for level in noise]
    return cases + [Case(ONE_BLOCK, noise[len(noise) // 2], first, block) for block in range(blocks if noise else 0)]


def add_weight_noise(
    loaded: Loaded, alpha: float, seed: int, *, deviation: float = 1.0, block: int | None = None
) -> Loaded:
    """The model with W ← (1 − α)W + αε for each parameter of its blocks whose name ends in "weight".

    ε ~ N(0, deviation²), the same for every α of one seed. block: only this one. Input embeddings and biases stay as
    they are, norms' weights do not, as in the authors' code (Marbut, Chandler and Wheeler).
    """
    import torch

    _check_level(alpha)
    model = deepcopy(loaded.model)
    blocks = find_blocks(model)[1]
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


def add_row_noise(rows: NDArray[np.floating[Any]], alpha: float, seed: int) -> NDArray[np.float64]:
    """Rows (n, d) with noise on themselves instead: (1 − α)x + αsε, s the standard deviation of all coordinates."""
    wide = np.asarray(rows, dtype=np.float64)
    noise = np.random.default_rng(seed).normal(scale=wide.std(), size=wide.shape)
    return (1.0 - alpha) * wide + alpha * noise


def shuffle_embeddings(loaded: Loaded, seed: int) -> Loaded:
    """The model with the rows of its input embeddings in random order."""
    import torch

    model = deepcopy(loaded.model)
    table = model.get_input_embeddings().weight
    order = torch.from_numpy(np.random.default_rng(seed).permutation(len(table)))
    with torch.no_grad():
        table.copy_(table[order].clone())
    return replace(loaded, model=model, name=f"{loaded.name} with shuffled embeddings, seed {seed}")


def replace_embeddings(loaded: Loaded, other: Loaded) -> Loaded:
    """The model with the input embeddings and the tokenizer of another one of the same width."""
    check_widths(loaded, other)
    model, theirs = deepcopy(loaded.model), other.model.get_input_embeddings()
    model.set_input_embeddings(deepcopy(theirs))
    model.config.vocab_size = len(theirs.weight)
    return replace(
        loaded, model=model, tokenizer=other.tokenizer, name=f"{loaded.name} with the embeddings of {other.name}"
    )


def check_widths(loaded: Loaded, other: Loaded) -> None:
    """Raise an error if the embeddings of two models differ in width."""
    mine, theirs = (one.model.get_input_embeddings().weight.shape[1] for one in (loaded, other))
    if mine != theirs:
        raise InputError(
            f"the embeddings of {other.name} have width {theirs}, those of {loaded.name} {mine}; "
            "name models of one width."
        )


def reset_weights(loaded: Loaded, seed: int) -> Loaded:
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
