"""A model without the blocks after the last layer that is wanted, where that layer stays exactly what it was."""

from __future__ import annotations

from typing import Any

from isotrope.sources.models.hidden_states import Ids, Mask, compute_hidden_states, in_block
from isotrope.sources.models.load import Loaded


def drop_blocks(loaded: Loaded, state: int, ids: Ids, mask: Mask) -> int:
    """Take away, in place, the blocks that no hidden state up to `state` needs; the number of the last state left.

    After a model's last block there may be a norm, which other blocks' outputs do not see: then one block more is kept.
    Whether the states stay the same to the last bit is tried on tokens, ids and mask (b, t); otherwise none is dropped.
    A model of encoder and decoder loses blocks of its encoder.
    """
    import torch

    before = compute_hidden_states(loaded, ids, mask)[0]
    total = len(before) - 1
    if getattr(loaded.model.config, "num_hidden_layers", None) != total:
        return total
    whole = _Blocks(loaded.model, total)
    for count in range(max(state, 1), min(state + 2, total)):
        whole.keep(count)
        try:
            after = compute_hidden_states(loaded, ids, mask)[0]
        except Exception:  # nosec B112  # whatever a model raises that cannot do without its last blocks
            continue
        if len(after) == count + 1 and all(map(torch.equal, before[: state + 1], after)):
            return count
    whole.keep(total)
    return total


class _Blocks:
    """A model's numbered blocks, and the lists in its config that have an entry for each."""

    def __init__(self, model: Any, total: int) -> None:
        from torch.nn import ModuleList

        self.config = model.config
        self.modules = [
            (model.get_submodule(name.rpartition(".")[0]), name.rpartition(".")[2], module)
            for name, module in model.named_modules()
            if isinstance(module, ModuleList) and len(module) == total and not in_block(name)
        ]
        self.lists = {
            name: list(value)
            for name, value in vars(self.config).items()
            if "layer" in name and isinstance(value, list) and len(value) == total
        }

    def keep(self, count: int) -> None:
        """The first blocks alone."""
        self.config.num_hidden_layers = count
        for parent, name, module in self.modules:
            setattr(parent, name, module[:count])
        for name, value in self.lists.items():
            setattr(self.config, name, value[:count])
