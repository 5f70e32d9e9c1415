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


class Position(NamedTuple):
    """A module, before or after which a layer goes, and the model whose forward pass it is part of.

    Attributes:
        module: the name of the module.
        before: whether the layer goes before it.
        owner: the name of the model that is called with the mask of tokens.
        use: of a module that is used many times in one pass, which time it is; None where there is but one.
    """

    module: str
    before: bool
    owner: str
    use: int | None = None


def find_position(network: Module, block: int = -1, at: str | None = None) -> Position:
    """The position in a block of the model's only stack of blocks, or the one that `at` names.

    Args:
        network: a model of transformers.
        block: the number of the block, from 0 on, or −1 for the last.
        at: a stack of blocks, such as "encoder.block"; a norm, before which the layer goes; or any other module, after
            which it goes.

    Examples:
        >>> from transformers import BertConfig, BertModel
        >>> find_position(BertModel(BertConfig(num_hidden_layers=3, hidden_size=12, intermediate_size=8)))
        Position(module='encoder.layer.2.output.LayerNorm', before=True, owner='', use=None)
    """
    if at is None:
        return _find_in_stack(network, _find_only_stack(network), block)
    try:
        module = network.get_submodule(at)
    except AttributeError:
        raise InputError(
            f"{type(network).__name__} has no module {at!r}; its stacks of blocks are {_format_stacks(network)}."
        ) from None
    if isinstance(module, torch.nn.ModuleList):
        return _find_in_stack(network, at, block)
    return Position(at, "norm" in type(module).__name__.lower(), _find_owner(network, at))


def _find_only_stack(network: Module) -> str:
    names = _list_stacks(network)
    if len(names) == 1:
        return names[0]
    kind = type(network).__name__
    if names:
        raise InputError(
            f"{kind} has several stacks of blocks; say which with at=..., one of {_format_stacks(network)}."
        )
    raise InputError(
        f"{kind} has no stack of blocks that could be recognised; name the module after which the layer goes with "
        "at=..., one of the names in model.named_modules()."
    )


def _list_stacks(network: Module) -> list[str]:
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


def _format_stacks(network: Module) -> str:
    return ", ".join(repr(name) for name in _list_stacks(network)) or "none that could be recognised"


def _find_in_stack(network: Module, stack: str, block: int) -> Position:
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
    inside = dict(network.get_submodule(name).named_modules())
    norm = next((norm for norm in _FINAL_NORMS if norm in inside), None)
    return Position(name if norm is None else f"{name}.{norm}", norm is not None, _find_owner(network, name), use)


def _find_owner(network: Module, name: str) -> str:
    """The innermost model of transformers around a module: its forward pass is given the mask of tokens."""
    parts = name.split(".")
    for end in range(len(parts) - 1, 0, -1):
        outer = ".".join(parts[:end])
        if hasattr(network.get_submodule(outer), "base_model_prefix"):
            return outer
    return ""
