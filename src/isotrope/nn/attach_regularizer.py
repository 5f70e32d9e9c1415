"""A regulariser added to a model's own loss while it is trained, by the Trainer or by any other loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch

from isotrope.errors import InputError
from isotrope.nn.regularizers import Regularizer
from isotrope.softdecay.attach import inner
from isotrope.softdecay.forward_wrapper import StandIn

Tensor: TypeAlias = torch.Tensor


class Regularized:
    """What `regularize` gives back: `last`, the loss that was added last, and `remove()`."""

    def __init__(self, model: Any, regularizer: Regularizer, layer: int) -> None:
        self.model, self.regularizer, self.layer = model, regularizer, layer
        self.last: Tensor | None = None
        self.forward = StandIn(model, self.run)

    def remove(self) -> None:
        """Leave the model as it was."""
        self.forward.stop()

    def run(self, whole: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward pass, and while training its loss with the regulariser's added."""
        if not self.model.training:
            return whole(*args, **kwargs)
        out = whole(*args, **{**kwargs, "output_hidden_states": True, "return_dict": True})
        given = self.forward.given(args, kwargs)
        if getattr(out, "loss", None) is None:
            raise InputError(
                f"{type(self.model).__name__} gave no loss to add a regulariser to; call it with labels, or add the "
                "regulariser of its hidden states to your own loss."
            )
        states = getattr(out, "hidden_states", None)
        if not states:
            raise InputError(
                f"{type(self.model).__name__} gives no hidden_states; add the regulariser to the loss yourself."
            )
        if not -len(states) <= self.layer < len(states):
            raise InputError(f"there is no layer {self.layer}: the model has {len(states)}, 0 to {len(states) - 1}.")
        added = self.regularizer(states[self.layer], given.get("attention_mask"))
        self.last = added.detach()
        out.loss = out.loss + added * _share(given)
        return out


def regularize(model: Any, regularizer: Regularizer, layer: int = -1) -> Regularized:
    """Add a regulariser of a layer's hidden states to the loss of a model, in training mode only.

    layer: 0 for the embeddings, 1 and so on for the blocks, −1 for the last. Nothing else need be said to the Trainer,
    accelerate or a loop of one's own.

    >>> from isotrope.nn.regularizers import MeanCosineLoss
    >>> from transformers import BertConfig, BertForSequenceClassification
    >>> config = BertConfig(num_hidden_layers=1, hidden_size=12, intermediate_size=8)
    >>> model = BertForSequenceClassification(config).train()
    >>> added = regularize(model, MeanCosineLoss(weight=0.1))
    >>> loss = model(input_ids=torch.ones(2, 5, dtype=torch.long), labels=torch.tensor([0, 1])).loss
    >>> 0 < float(added.last) < 0.1
    True
    >>> added.remove()
    """
    return Regularized(inner(model), regularizer, layer)


def _share(given: dict[str, Any]) -> Any:
    """How much of a step this batch is, where the Trainer gathers several: then losses are sums over its share."""
    items, labels = given.get("num_items_in_batch"), given.get("labels")
    if items is None or labels is None:
        return 1.0
    return (labels != -100).sum() / items
