"""A SoftDecay layer inside any model of transformers, put there and taken out again: no model is edited."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from isotrope.errors import InputError
from isotrope.softdecay.forward_wrapper import StandIn
from isotrope.softdecay.layer import SoftDecay
from isotrope.softdecay.positions import Place, find

Tensor: TypeAlias = torch.Tensor
Module: TypeAlias = torch.nn.Module

#: What the layer is called where it is, in the names of parameters and in saved weights.
NAME = "softdecay"

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
    """Put a SoftDecay layer into a model, in the last block before its final norm, or after the block; the layer.

    It takes no part of padding, which it finds in the `attention_mask` that the model is called with. alpha, form,
    trainable: of the layer. block: another block, from 0 on. at: another place, see
    `isotrope.softdecay.positions.find`. A model of sentence-transformers or PEFT gets it in the network inside. Paper:
    Yan et al. 2022, section 5.2.

    >>> from transformers import BertConfig, BertModel
    >>> model = BertModel(BertConfig(num_hidden_layers=3, hidden_size=12, intermediate_size=8))
    >>> attach(model)
    SoftDecay(alpha=-0.5, form='shifted', trainable=True)
    >>> detach(model).alpha
    -0.5
    """
    network = inner(model)
    if attached(network) is not None:
        raise InputError(
            f"{type(network).__name__} has a SoftDecay layer already; detach it first, with isotrope.nn.detach(model)."
        )
    layer = SoftDecay(alpha, form, trainable)
    place = find(network, block, at)
    module, owner = network.get_submodule(place.module), network.get_submodule(place.owner)
    _warn_of_looking_ahead(network)
    _warn_of_adapters(model)
    example = next(module.parameters(), None)
    if example is None:
        example = next(network.parameters())
    module.add_module(NAME, layer.to(device=example.device))
    settings = {"alpha": alpha, "form": form, "trainable": trainable, "block": block, "at": at}
    setattr(owner, _PASS, _Pass(network, place, settings))
    if hasattr(network, "config"):
        setattr(network.config, SETTINGS, settings)
    return layer


def detach(model: Any) -> Any:
    """Take the SoftDecay layer out of a model, which then is as it was before; the layer."""
    network = inner(model)
    owner = attached(network)
    if owner is None:
        raise InputError(f"{type(network).__name__} has no SoftDecay layer; attach one first.")
    run = getattr(owner, _PASS)
    layer = getattr(run.module, NAME)
    run.stop()
    delattr(run.module, NAME)
    delattr(owner, _PASS)
    if hasattr(getattr(network, "config", None), SETTINGS):
        delattr(network.config, SETTINGS)
    return layer


def attached(network: Module) -> Module | None:
    """The module of a network whose forward pass runs a SoftDecay layer, None where there is none."""
    return next((module for module in network.modules() if _PASS in vars(module)), None)


def inner(model: Any) -> Module:
    """The network inside a wrapper of sentence-transformers, PEFT, data-parallel training or torch.compile."""
    if isinstance(model, torch.nn.parallel.DistributedDataParallel):
        return inner(model.module)
    for name in ("_orig_mod", "transformers_model"):
        if getattr(model, name, None) is not None:
            return inner(getattr(model, name))
    if hasattr(model, "get_base_model"):
        return inner(model.get_base_model())
    if not isinstance(model, torch.nn.Module):
        raise InputError(f"expected a torch model, such as AutoModel.from_pretrained(...), got {type(model).__name__}.")
    return model


def copy_layer(source: Any, target: Any) -> SoftDecay | None:
    """Attach to a model a layer like the one of another model with the same blocks; None where that has none."""
    owner = attached(inner(source))
    if owner is None:
        return None
    run = getattr(owner, _PASS)
    layer = attach(target, **run.settings | {"at": rename_for(inner(target), run.settings["at"])})
    with torch.no_grad():
        layer.raw_alpha.copy_(getattr(run.module, NAME).raw_alpha)
    return layer


def describe_layer(model: Any) -> dict[str, Any] | None:
    """The α and form of a model's SoftDecay layer and where it is, as plain data; None for a model without one.

    >>> from transformers import BertConfig, BertModel
    >>> model = BertModel(BertConfig(num_hidden_layers=3, hidden_size=12, intermediate_size=8))
    >>> _ = attach(model)
    >>> describe_layer(model)
    {'alpha': -0.5, 'form': 'shifted', 'where': 'before encoder.layer.2.output.LayerNorm'}
    """
    owner = attached(inner(model)) if isinstance(model, torch.nn.Module) else None
    if owner is None:
        return None
    run = getattr(owner, _PASS)
    layer = getattr(run.module, NAME)
    return {"alpha": layer.alpha, "form": layer.form, "where": run.where}


def refuse_layer(model: Any, what: str) -> None:
    """Refuse a model with a SoftDecay layer for what cannot hold one; a layer in a block that was dropped is forgotten.

    Args:
        model: a torch model.
        what: what cannot hold it, as the subject of a sentence.
    """
    network = inner(model)
    owner = attached(network)
    if owner is None:
        return
    run = getattr(owner, _PASS)
    if all(part is not run.module for part in network.modules()):
        detach(network)
        return
    raise InputError(
        f"{what} cannot hold the SoftDecay layer of this {type(network).__name__} ({run.where}); name a layer before "
        "it, or load the trained model with SentenceTransformer(folder) and call isotrope.nn.restore(model)."
    )


def rename_for(network: Any, at: str | None) -> str | None:
    """The name of a place as this model calls it: one with a head has a prefix before those of the model inside."""
    prefix = f"{getattr(network, 'base_model_prefix', '')}."
    if at is None or prefix == ".":
        return at
    has_head = getattr(network, "base_model", network) is not network
    bare = at.removeprefix(prefix)
    names = {name for name, _ in network.named_modules()}
    candidates = (at, prefix + bare) if has_head else (at, bare)
    return next((name for name in candidates if name in names), at)


class _Pass:
    """A model's forward pass, around which the mask is known to the layer inside."""

    def __init__(self, network: Module, place: Place, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.module, self.owner = network.get_submodule(place.module), network.get_submodule(place.owner)
        self.use = place.use
        self.where = f"{'before' if place.before else 'after'} {place.module}"
        if place.use is not None:
            self.where += f", use {place.use + 1}"
        below = place.module.removeprefix(place.owner).removeprefix(".").split(".")
        self.around = [self.owner.get_submodule(".".join(below[: i + 1])) for i in range(len(below))]
        self.mask: Tensor | None = None
        self.shape: tuple[int, int] | None = None
        self.inside, self.uses = False, 0
        if place.before:
            self.hook = self.module.register_forward_pre_hook(self.before)
        else:
            self.hook = self.module.register_forward_hook(self.after)
        self.forward = StandIn(self.owner, self.run)

    def stop(self) -> None:
        """Leave the model as it was."""
        self.hook.remove()
        self.forward.stop()

    def run(self, whole: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward pass, with its mask kept while it lasts."""
        if getattr(self.owner, "_is_replica", False):
            raise InputError(
                "SoftDecay does not run in torch.nn.DataParallel, whose copies share what they should not; "
                "start training with torchrun or accelerate launch."
            )
        given = self.forward.given(args, kwargs)
        first = given.get("input_ids") if given.get("input_ids") is not None else given.get("inputs_embeds")
        self.mask, self.shape = given.get("attention_mask"), None if first is None else tuple(first.shape[:2])
        self.inside, self.uses = True, 0
        # A block that is run again for the backward pass would not see its mask again; one block can do without.
        paused = [module for module in self.around if getattr(module, "gradient_checkpointing", False)]
        for module in paused:
            module.gradient_checkpointing = False
        try:
            return whole(*args, **kwargs)
        finally:
            for module in paused:
                module.gradient_checkpointing = True
            self.inside, self.mask = False, None

    def before(self, module: Module, args: tuple[Any, ...]) -> Any:
        return (self.bent(module, args[0]), *args[1:]) if self.now() else None

    def after(self, module: Module, args: Any, output: Any) -> Any:
        if not self.now():
            return None
        if isinstance(output, tuple):
            return (self.bent(module, output[0]), *output[1:])
        return self.bent(module, output)

    def now(self) -> bool:
        """Whether this is the use of the module that the layer belongs to."""
        if not self.inside:
            raise InputError(
                f"{type(self.module).__name__}, which has a SoftDecay layer, was run outside the forward pass of "
                f"{type(self.owner).__name__}, where its mask is known (or once more by a checkpoint around it); "
                "call the whole model, and leave this block out of other kinds of gradient checkpointing."
            )
        self.uses += 1
        return self.use is None or self.uses == self.use + 1

    def bent(self, module: Module, hidden: Tensor) -> Tensor:
        if hidden.ndim != 3 or (self.shape is not None and tuple(hidden.shape[:2]) != self.shape):
            raise InputError(
                f"the hidden states of {type(self.owner).__name__} at this place have shape {tuple(hidden.shape)}, "
                f"expected {self.shape or '(sequences, tokens)'} and dimensions: SoftDecay needs all tokens of a "
                "sequence at once; name another place with at=..., or set chunk_size_feed_forward to 0."
            )
        layer: Any = getattr(module, NAME)  # looked up each time: PEFT may have wrapped it
        return layer(hidden, self.rows(hidden))

    def rows(self, hidden: Tensor) -> Tensor | None:
        """Which rows are tokens, (b, t), None where all are."""
        mask, length = self.mask, hidden.shape[1]
        if mask is None:
            return None
        if hasattr(self.owner, "_get_feature_vector_attention_mask"):  # speech: the mask is of samples, not of frames
            mask = self.owner._get_feature_vector_attention_mask(length, mask)
        if mask.ndim == 2 and self.shape is not None:
            mask = mask[:, -length:]  # with a cache of earlier tokens only the last ones are run
        if mask.shape != hidden.shape[:2]:
            raise InputError(
                f"the attention mask has shape {tuple(mask.shape)}, expected {tuple(hidden.shape[:2])}, "
                "1 for tokens and 0 for padding."
            )
        return mask


def _warn_of_looking_ahead(network: Any) -> None:
    if getattr(network, "can_generate", bool)():
        warnings.warn(
            f"{type(network).__name__} predicts next tokens, and SoftDecay mixes all tokens of a sequence, later ones "
            "too: use it where a whole sequence is read, not for training on next tokens.",
            stacklevel=3,
        )


def _warn_of_adapters(model: Any) -> None:
    if hasattr(model, "get_base_model"):
        warnings.warn(
            "adapters of PEFT are saved without a SoftDecay layer that comes after them: attach first, then name it in "
            f'the config for get_peft_model, modules_to_save=["{NAME}"].',
            stacklevel=3,
        )
