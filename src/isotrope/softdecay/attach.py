"""A SoftDecay layer inside any model of transformers, put there and taken out again: no model is edited."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from isotrope.errors import InputError
from isotrope.softdecay.forward_pass import NAME, LayerPass, Module
from isotrope.softdecay.layer import SoftDecay
from isotrope.softdecay.positions import find_position

#: Where a model's config keeps how the layer was attached.
SETTINGS = "isotrope_softdecay"

_PASS = "_isotrope_pass"  # nosec B105  # a forward pass, no password


def attach(
    model: Any,
    alpha: float = -0.5,
    form: str = "shifted",
    *,
    trainable: bool = True,
    block: int = -1,
    at: str | None = None,
) -> SoftDecay:
    """Put a SoftDecay layer into a model, in the last block before its final norm, or after the block.

    The layer leaves padding out, which it finds in the `attention_mask` that the model is called with.

    Args:
        model: a model of transformers; one of sentence-transformers or PEFT gets the layer in the network inside.
        alpha: how strongly the layer bends singular values, to begin with.
        form: "shifted", "clipped" or "paper".
        trainable: whether alpha is trained.
        block: the number of the block, from 0 on, −1 for the last.
        at: the name of a stack of blocks, such as "encoder.block", of a norm, before which the layer goes, or of any
            other module, after which it goes.

    Returns:
        The layer.

    References:
        Yan et al. 2022, section 5.2.

    Examples:
        >>> from transformers import BertConfig, BertModel
        >>> model = BertModel(BertConfig(num_hidden_layers=3, hidden_size=12, intermediate_size=8))
        >>> attach(model)
        SoftDecay(alpha=-0.5, form='shifted', trainable=True)
        >>> detach(model).alpha
        -0.5
    """
    network = unwrap(model)
    if find_pass(network) is not None:
        raise InputError(
            f"{type(network).__name__} has a SoftDecay layer already; detach it first, with isotrope.nn.detach(model)."
        )
    layer = SoftDecay(alpha, form, trainable)
    position = find_position(network, block, at)
    module, owner = network.get_submodule(position.module), network.get_submodule(position.owner)
    _warn_about_causal_model(network)
    _warn_about_adapters(model)
    example = next(module.parameters(), None)
    if example is None:
        example = next(network.parameters())
    module.add_module(NAME, layer.to(device=example.device))
    settings = {"alpha": alpha, "form": form, "trainable": trainable, "block": block, "at": at}
    setattr(owner, _PASS, LayerPass(network, position, settings))
    if hasattr(network, "config"):
        setattr(network.config, SETTINGS, settings)
    return layer


def detach(model: Any) -> Any:
    """Remove the SoftDecay layer from a model and return the layer.

    Args:
        model: A model that `attach` was applied to.
    """
    network = unwrap(model)
    run = find_pass(network)
    if run is None:
        raise InputError(f"{type(network).__name__} has no SoftDecay layer; attach one first.")
    layer = run.layer
    run.remove()
    delattr(run.module, NAME)
    delattr(run.owner, _PASS)
    if hasattr(getattr(network, "config", None), SETTINGS):
        delattr(network.config, SETTINGS)
    return layer


def find_pass(network: Module) -> LayerPass | None:
    """The forward pass that runs the SoftDecay layer of a network, None where there is none."""
    return next((vars(module)[_PASS] for module in network.modules() if _PASS in vars(module)), None)


def unwrap(model: Any) -> Module:
    """The network inside a wrapper of sentence-transformers, PEFT, data-parallel training or torch.compile."""
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return unwrap(model.module)
    for name in ("_orig_mod", "transformers_model"):
        if getattr(model, name, None) is not None:
            return unwrap(getattr(model, name))
    if hasattr(model, "get_base_model"):
        return unwrap(model.get_base_model())
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"expected a torch model, such as AutoModel.from_pretrained(...), got {type(model).__name__}.")
    return model


def copy_layer(source: Any, target: Any) -> SoftDecay | None:
    """Attach to a model a layer like the one of another model with the same blocks; None where that has none."""
    run = find_pass(unwrap(source))
    if run is None:
        return None
    layer = attach(target, **run.settings | {"at": resolve_module_name(unwrap(target), run.settings["at"])})
    with torch.no_grad():
        layer.raw_alpha.copy_(run.layer.raw_alpha)
    return layer


def describe_layer(model: Any) -> dict[str, Any] | None:
    """The α and form of a model's SoftDecay layer and where it is, as plain data; None for a model without one.

    Examples:
        >>> from transformers import BertConfig, BertModel
        >>> model = BertModel(BertConfig(num_hidden_layers=3, hidden_size=12, intermediate_size=8))
        >>> _ = attach(model)
        >>> describe_layer(model)
        {'alpha': -0.5, 'form': 'shifted', 'where': 'before encoder.layer.2.output.LayerNorm'}
    """
    run = find_pass(unwrap(model)) if isinstance(model, torch.nn.Module) else None
    return None if run is None else {"alpha": run.layer.alpha, "form": run.layer.form, "where": run.where}


def check_no_layer(model: Any, what: str) -> None:
    """Raise for a model with a SoftDecay layer; a layer in a block that was dropped is forgotten.

    Args:
        model: a torch model.
        what: what cannot hold the layer, as the subject of a sentence.
    """
    network = unwrap(model)
    run = find_pass(network)
    if run is None:
        return
    if all(part is not run.module for part in network.modules()):
        detach(network)
        return
    raise InputError(
        f"{what} cannot hold the SoftDecay layer of this {type(network).__name__} ({run.where}); name a layer before "
        "it, or load the trained model with SentenceTransformer(folder) and call isotrope.nn.restore(model)."
    )


def resolve_module_name(network: Any, at: str | None) -> str | None:
    """The name of a module as this model calls it: one with a head has a prefix before those of the model inside."""
    prefix = f"{getattr(network, 'base_model_prefix', '')}."
    if at is None or prefix == ".":
        return at
    has_head = getattr(network, "base_model", network) is not network
    bare = at.removeprefix(prefix)
    names = {name for name, _ in network.named_modules()}
    candidates = (at, prefix + bare) if has_head else (at, bare)
    return next((name for name in candidates if name in names), at)


def _warn_about_causal_model(network: Any) -> None:
    if getattr(network, "can_generate", bool)():
        warnings.warn(
            f"{type(network).__name__} predicts next tokens, and SoftDecay mixes all tokens of a sequence, later ones "
            "too: use it where a whole sequence is read, not for training on next tokens.",
            stacklevel=3,
        )


def _warn_about_adapters(model: Any) -> None:
    if hasattr(model, "get_base_model"):
        warnings.warn(
            "adapters of PEFT are saved without a SoftDecay layer that comes after them: attach first, then name it in "
            f'the config for get_peft_model, modules_to_save=["{NAME}"].',
            stacklevel=3,
        )
