"""Where in a model a layer goes: before the final norm of a block, or after the block where it ends in none."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import torch

from isotrope.errors import InputError

Module: TypeAlias = torch.nn.Module

#: What models call the list of their blocks.
_STACKS = ("layer", "layers", "h", "block", "blocks", "albert_layer_groups")

#: The norm with which a block ends, in BERT and its kin, DistilBERT and ALBERT. Others norm before, not after.
_FINAL_NORMS = ("output.LayerNorm", "output_layer_norm", "full_layer_layer_norm")


class Place(NamedTuple):
    """A module, before or after which a layer goes, and the model whose forward pass it is part of.

    use: of a module that is used many times in one pass, which time it is; None where there is but one.
    """

    module: str
    before: bool
    owner: str
    use: int | None = None


def find(network: Module, block: int = -1, at: str | None = None) -> Place:
    """The place in a block of the model's only stack of blocks, or the one that `at` names.

    at: a stack of blocks, such as "encoder.block"; a norm, before which it is; or any other module, after which it is.

    >>> from transformers import BertConfig, BertModel
    >>> find(BertModel(BertConfig(num_hidden_layers=3, hidden_size=12, intermediate_size=8)))
    Place(module='encoder.layer.2.output.LayerNorm', before=True, owner='', use=None)
    """
    if at is None:
        return _in_stack(network, _only_stack(network), block)
    try:
        module = network.get_submodule(at)
    except AttributeError:
        raise InputError(
            f"{type(network).__name__} has no module {at!r}; its stacks of blocks are {_listed(network)}."
        ) from None
    if isinstance(module, torch.nn.ModuleList):
        return _in_stack(network, at, block)
    return Place(at, "norm" in type(module).__name__.lower(), _owner(network, at))


def _only_stack(network: Module) -> str:
    names = _stacks(network)
    if len(names) == 1:
        return names[0]
    kind = type(network).__name__
    if names:
        raise InputError(f"{kind} has several stacks of blocks; say which with at=..., one of {_listed(network)}.")
    raise InputError(
        f"{kind} has no stack of blocks that could be recognised; name the module after which the layer goes with "
        "at=..., one of the names in model.named_modules()."
    )


def _stacks(network: Module) -> list[str]:
    """Names of the lists of blocks, outermost ones only, without those of a head."""
    base = getattr(network, "base_model", network)
    found: list[str] = []
    for name, module in network.named_modules():
        inside = base is network or any(module is part for part in base.modules())
        if (
            inside
            and isinstance(module, torch.nn.ModuleList)
            and name.rpartition(".")[2] in _STACKS
            and len(module)
            and not any(name.startswith(f"{outer}.") for outer in found)
        ):
            found.append(name)
    return found


def _listed(network: Module) -> str:
    return ", ".join(repr(name) for name in _stacks(network)) or "none that could be recognised"


def _in_stack(network: Module, stack: str, block: int) -> Place:
    blocks: Any = network.get_submodule(stack)
    shared = stack.rpartition(".")[2] == "albert_layer_groups"
    config = getattr(network, "config", None)
    count = int(getattr(config, "num_hidden_layers", 0)) if shared else len(blocks)
    if not -count <= block < count:
        raise InputError(f"there is no block {block}: {stack} has {count}, 0 to {count - 1}, or −1 for the last.")
    block %= count
    use = None
    if shared:  # as ALBERT deals out its blocks to the groups that share weights
        groups = [int(i / (count / len(blocks))) for i in range(count)]
        use = groups[:block].count(groups[block])
        stack = f"{stack}.{groups[block]}.albert_layers"
        block = len(network.get_submodule(stack)) - 1
    name = f"{stack}.{block}"
    for norm in _FINAL_NORMS:
        if _has(network, f"{name}.{norm}"):
            return Place(f"{name}.{norm}", True, _owner(network, name), use)
    return Place(name, False, _owner(network, name), use)


def _has(network: Module, name: str) -> bool:
    try:
        network.get_submodule(name)
    except AttributeError:
        return False
    return True


def _owner(network: Module, name: str) -> str:
    """The innermost model of transformers around a module: its forward pass is given the mask of tokens."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        outer = ".".join(parts[:end])
        if hasattr(network.get_submodule(outer), "base_model_prefix"):
            return outer
    return ""
