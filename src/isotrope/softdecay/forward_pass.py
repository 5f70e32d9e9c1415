"""A model's forward pass with something around it, which can be removed again."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from isotrope.errors import InputError
from isotrope.softdecay.positions import Position

Tensor: TypeAlias = torch.Tensor
Module: TypeAlias = torch.nn.Module

#: What the layer is called where it is, in the names of parameters and in saved weights.
NAME = "softdecay"


class ForwardWrapper:
    """Called in place of a model's own `forward`.

    It is not a hook: sentence-transformers and PEFT call `forward` itself, past all hooks. A copy of a model copies it
    with all that it refers to, so that it belongs to the copy.

    Args:
        model: a torch module.
        around: called with the model's own `forward`, its positional and its keyword arguments.

    Examples:
        >>> model = torch.nn.Identity()
        >>> doubled = ForwardWrapper(model, lambda whole, args, kwargs: 2 * whole(*args, **kwargs))
        >>> model(3)
        6
        >>> doubled.remove()
        >>> model(3)
        3
    """

    def __init__(
        self, model: Any, around: Callable[[Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
    ) -> None:
        self.model, self.whole = model, model.forward
        self.around: Callable[..., Any] | None = around
        self.__signature__ = inspect.signature(model.forward)  # which the Trainer reads
        model.forward = self

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.whole(*args, **kwargs) if self.around is None else self.around(self.whole, args, kwargs)

    def name_arguments(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """All arguments by their names."""
        found = self.__signature__.bind_partial(*args, **kwargs).arguments
        return {**found, **found.get("kwargs", {})}

    def remove(self) -> None:
        """Give the model its own `forward` back, or, where others have wrapped this since, just pass calls on."""
        self.around = None
        if vars(self.model).get("forward") is self:
            del self.model.forward
            if self.model.forward != self.whole:  # it had been wrapped before
                self.model.forward = self.whole


class LayerPass:
    """A model's forward pass, during which the mask is known to the SoftDecay layer inside.

    Args:
        network: the model.
        position: where its layer is.
        settings: the arguments of `attach`.
    """

    def __init__(self, network: Module, position: Position, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.module, self.owner = network.get_submodule(position.module), network.get_submodule(position.owner)
        self.use = position.use
        self.where = f"{'before' if position.before else 'after'} {position.module}"
        if position.use is not None:
            self.where += f", use {position.use + 1}"
        below = position.module.removeprefix(position.owner).removeprefix(".").split(".")
        self.parents = [self.owner.get_submodule(".".join(below[: i + 1])) for i in range(len(below))]
        self.mask: Tensor | None = None
        self.shape: tuple[int, int] | None = None
        self.inside, self.uses = False, 0
        if position.before:
            self.hook = self.module.register_forward_pre_hook(self.run_before)
        else:
            self.hook = self.module.register_forward_hook(self.run_after)
        self.forward = ForwardWrapper(self.owner, self.run)

    @property
    def layer(self) -> Any:
        """The SoftDecay layer, looked up each time: PEFT may have wrapped it."""
        return getattr(self.module, NAME)

    def remove(self) -> None:
        """Leave the model as it was."""
        self.hook.remove()
        self.forward.remove()

    def run(self, whole: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward pass, with its mask kept while it lasts."""
        if getattr(self.owner, "_is_replica", False):
            raise InputError(
                "SoftDecay does not run in torch.nn.DataParallel, whose copies share what they should not; "
                "start training with torchrun or accelerate launch."
            )
        given = self.forward.name_arguments(args, kwargs)
        first = given.get("input_ids") if given.get("input_ids") is not None else given.get("inputs_embeds")
        self.mask, self.shape = given.get("attention_mask"), None if first is None else tuple(first.shape[:2])
        self.inside, self.uses = True, 0
        # A block that is run again for the backward pass would not see its mask again; one block can do without.
        paused = [module for module in self.parents if getattr(module, "gradient_checkpointing", False)]
        for module in paused:
            module.gradient_checkpointing = False
        try:
            return whole(*args, **kwargs)
        finally:
            for module in paused:
                module.gradient_checkpointing = True
            self.inside, self.mask = False, None

    def run_before(self, module: Module, args: tuple[Any, ...]) -> Any:
        """A hook: apply the layer to what the module is given."""
        return (self.apply_layer(args[0]), *args[1:]) if self.is_turn() else None

    def run_after(self, module: Module, args: Any, output: Any) -> Any:
        """A hook: apply the layer to what the module gives."""
        if not self.is_turn():
            return None
        if isinstance(output, tuple):
            return (self.apply_layer(output[0]), *output[1:])
        return self.apply_layer(output)

    def is_turn(self) -> bool:
        """Whether this is the use of the module that the layer belongs to."""
        if not self.inside:
            raise InputError(
                f"{type(self.module).__name__}, which has a SoftDecay layer, was run outside the forward pass of "
                f"{type(self.owner).__name__}, where its mask is known (or once more by a checkpoint around it); "
                "call the whole model, and leave this block out of other kinds of gradient checkpointing."
            )
        self.uses += 1
        return self.use is None or self.uses == self.use + 1

    def apply_layer(self, hidden: Tensor) -> Tensor:
        """Hidden states, (b, t, d), through the layer."""
        if hidden.ndim != 3 or (self.shape is not None and tuple(hidden.shape[:2]) != self.shape):
            raise InputError(
                f"the hidden states of {type(self.owner).__name__} at this place have shape {tuple(hidden.shape)}, "
                f"expected {self.shape or '(sequences, tokens)'} and dimensions: SoftDecay needs all tokens of a "
                "sequence at once; name another place with at=..., or set chunk_size_feed_forward to 0."
            )
        return self.layer(hidden, self.find_tokens(hidden))

    def find_tokens(self, hidden: Tensor) -> Tensor | None:
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
