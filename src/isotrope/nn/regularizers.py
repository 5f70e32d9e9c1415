"""Losses that pull hidden states towards a geometry, and a way to add one to a model's own loss.

Each takes hidden states, (b, t, d), with the mask of their tokens, (b, t), or rows, (n, d), and gives one number with a
gradient. Rows of padding take no part. With fewer than two rows there is nothing to compare, and the loss is 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch

from isotrope.errors import InputError
from isotrope.softdecay.attach import unwrap
from isotrope.softdecay.forward_pass import ForwardWrapper
from isotrope.softdecay.spectral import find_work_type
from isotrope.statistics import Moments

Tensor: TypeAlias = torch.Tensor

_EPS = float(torch.finfo(torch.float64).eps)


@dataclass(frozen=True)
class ExpDecay:
    """weight · Σ_k (σ_k − c1·exp(−c2·k^gamma))² of each sequence's token matrix, averaged over sequences.

    Squared: as printed, without the square, it is the nuclear norm less a constant, and least where all has collapsed
    to zero.

    Args:
        weight: what the loss is multiplied by.
        c1: the singular values aimed at, at k = 0.
        c2: how fast they fall.
        gamma: the power of k.

    References:
        Wang et al. 2020; on hidden states Yan et al. 2022, Appendix D.1.

    Examples:
        >>> import math
        >>> x = torch.diag(torch.tensor([3.0, 1.0]))
        >>> round(float(ExpDecay(weight=1.0)(x)), 6) == round((3 - math.exp(-1)) ** 2 + (1 - math.exp(-4)) ** 2, 6)
        True
    """

    weight: float = 1e-4
    c1: float = 1.0
    c2: float = 1.0
    gamma: float = 2.0

    def __call__(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss."""
        x = hidden if hidden.ndim == 3 else hidden[None]
        if mask is None:
            mask = torch.ones(x.shape[:2], device=x.device)
        mask = mask.bool().reshape(x.shape[:2])
        with torch.autocast(x.device.type, enabled=False):
            x = torch.where(mask[..., None], x, 0.0).double()
            squares = torch.linalg.eigvalsh(x @ x.mT if x.shape[1] <= x.shape[2] else x.mT @ x).flip(-1)
            there = squares > max(x.shape[1:]) * _EPS * squares[:, :1]
            values = torch.where(there, torch.where(there, squares, 1.0).sqrt(), 0.0)
            k = torch.arange(1, values.shape[1] + 1, device=x.device)
            apart = (values - self.c1 * torch.exp(-self.c2 * k.double() ** self.gamma)) ** 2
            counted = k <= mask.sum(-1, keepdim=True)  # a sequence has no more singular values than tokens
            sequences = mask.any(-1).sum().clamp(min=1)
            return (self.weight * (apart * counted).sum() / sequences).to(find_work_type(hidden))


@dataclass(frozen=True)
class IsoScoreStar:
    """weight · (1 − IsoScore*): pulls towards isotropy, or, with a negative weight, away from it, which often helps.

    IsoScore* is the IsoScore of (1 − zeta)·Σ + zeta·covariance, Σ the covariance of the batch's rows.

    Args:
        weight: what the loss is multiplied by.
        covariance: from an earlier pass over the data, an array (d, d) or `Moments`; without it, Σ alone counts.
        zeta: the share of the earlier covariance, 0 to 1.

    References:
        Rudman and Eickhoff 2024 (I-STAR).

    Examples:
        >>> rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> float(IsoScoreStar()(rows)), round(float(IsoScoreStar()(rows * torch.tensor([1.0, 0.0]))), 6)
        (0.0, 1.0)
    """

    weight: float = 1.0
    covariance: Any = None
    zeta: float = 0.2

    def __post_init__(self) -> None:
        if not 0.0 <= self.zeta <= 1.0:
            raise InputError(f"zeta is {self.zeta:g}, expected a share of the earlier covariance, 0 to 1.")

    def __call__(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss."""
        with torch.autocast(hidden.device.type, enabled=False):
            x = select_tokens(hidden, mask)
            n, d = x.shape
            if d == 1:
                raise InputError("IsoScore* needs at least two dimensions, got one.")
            if n < 2:
                return make_zero(hidden)
            centred = x - x.mean(0)
            spread = centred.mT @ centred / (n - 1)
            if self.covariance is not None:
                spread = (1 - self.zeta) * spread + self.zeta * self._to_matrix(spread)
            spread = spread / spread.diagonal().sum().clamp(min=torch.finfo(spread.dtype).tiny)
            together = spread.square().sum()
            ratio = torch.where(together > 0, 1 / together.clamp(min=1 / d), 1.0)  # no variance at all: as in a line
            return self.weight * (1 - (ratio - 1) / (d - 1))

    def _to_matrix(self, like: Tensor) -> Tensor:
        found = self.covariance
        if isinstance(found, Moments):
            found = found.scatter / max(found.n - 1, 1)
        found = torch.as_tensor(found, dtype=like.dtype, device=like.device)
        if found.shape != like.shape:
            raise InputError(f"the covariance has shape {tuple(found.shape)}, expected {tuple(like.shape)}.")
        return found


@dataclass(frozen=True)
class MeanCosineLoss:
    """weight · mean cosine over distinct pairs of rows; rows of zeros have no direction and are left out.

    Args:
        weight: what the loss is multiplied by.

    Examples:
        >>> float(MeanCosineLoss()(torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])))
        0.3333333...
    """

    weight: float = 1.0

    def __call__(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss."""
        with torch.autocast(hidden.device.type, enabled=False):
            x = select_tokens(hidden, mask)
            x = x[torch.linalg.vector_norm(x, dim=-1) > torch.finfo(x.dtype).tiny ** 0.5]  # below, squares vanish
            n = len(x)
            if n < 2:
                return make_zero(hidden)
            units = x / torch.linalg.vector_norm(x, dim=-1, keepdim=True)
            mean = units.mean(0)
            # Through the spread of the unit rows, so that nothing cancels near 1.
            return self.weight * (1 - (units - mean).square().sum() / (n - 1))


@dataclass(frozen=True)
class WhiteningLoss:
    """weight · ‖corr(X) − I‖² / d²: pulls towards uncorrelated columns; one without variance counts as wholly wrong.

    Args:
        weight: what the loss is multiplied by.

    Examples:
        >>> round(float(WhiteningLoss()(torch.tensor([[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]))), 6)
        0.5
    """

    weight: float = 1.0

    def __call__(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss."""
        with torch.autocast(hidden.device.type, enabled=False):
            x = select_tokens(hidden, mask)
            n, d = x.shape
            if n < 2:
                return make_zero(hidden)
            centred = x - x.mean(0)
            squares = centred.square().sum(0)
            scaled = centred * torch.where(squares > 0, torch.where(squares > 0, squares, 1.0).rsqrt(), 0.0)
            return self.weight * (scaled.mT @ scaled - torch.eye(d).to(x)).square().sum() / d**2


#: Anything that takes hidden states and a mask and gives a number.
Regularizer: TypeAlias = Callable[[Tensor, Tensor | None], Tensor]


class Regularized:
    """What `regularize` gives back: `last`, the loss that was added last, and `remove()`."""

    def __init__(self, model: Any, regularizer: Regularizer, layer: int) -> None:
        self.model, self.regularizer, self.layer = model, regularizer, layer
        self.last: Tensor | None = None
        self.forward = ForwardWrapper(model, self.run)

    def remove(self) -> None:
        """Leave the model as it was."""
        self.forward.remove()

    def run(self, whole: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward pass, and while training its loss with the regulariser's added."""
        if not self.model.training:
            return whole(*args, **kwargs)
        out = whole(*args, **{**kwargs, "output_hidden_states": True, "return_dict": True})
        given = self.forward.name_arguments(args, kwargs)
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
        out.loss = out.loss + added * _compute_share(given)
        return out


def regularize(model: Any, regularizer: Regularizer, layer: int = -1) -> Regularized:
    """Add a regulariser of a layer's hidden states to the loss of a model, in training mode only.

    The Trainer, accelerate or a training loop of your own need not know of it.

    Args:
        model: a model that gives a loss.
        regularizer: called with the hidden states and the mask of their tokens.
        layer: 0 for the embeddings, 1 and so on for the blocks, −1 for the last.

    Returns:
        An object with `last`, the loss that was added last, and `remove()`.

    Examples:
        >>> from isotrope.nn import MeanCosineLoss
        >>> from transformers import BertConfig, BertForSequenceClassification
        >>> config = BertConfig(num_hidden_layers=1, hidden_size=12, intermediate_size=8)
        >>> model = BertForSequenceClassification(config).train()
        >>> added = regularize(model, MeanCosineLoss(weight=0.1))
        >>> loss = model(input_ids=torch.ones(2, 5, dtype=torch.long), labels=torch.tensor([0, 1])).loss
        >>> 0 < float(added.last) < 0.1
        True
        >>> added.remove()
    """
    return Regularized(unwrap(model), regularizer, layer)


def select_tokens(hidden: Tensor, mask: Tensor | None) -> Tensor:
    """The rows that are tokens, (n, d), in float32 at least."""
    x = hidden.to(find_work_type(hidden))
    if x.ndim not in (2, 3):
        raise InputError(f"expected hidden states of shape (b, t, d), or rows (n, d), got {tuple(x.shape)}.")
    if mask is None:
        return x.reshape(-1, x.shape[-1])
    if mask.shape != x.shape[:-1]:
        raise InputError(f"the mask has shape {tuple(mask.shape)}, expected {tuple(x.shape[:-1])}.")
    return x[mask.bool()]


def make_zero(hidden: Tensor) -> Tensor:
    """0, with a gradient of zeros, whatever the hidden states hold."""
    return hidden[..., :0].sum().to(find_work_type(hidden))


def _compute_share(given: dict[str, Any]) -> Any:
    """How much of a step this batch is, where the Trainer gathers several: then losses are sums over its share."""
    items, labels = given.get("num_items_in_batch"), given.get("labels")
    if items is None or labels is None:
        return 1.0
    return (labels != -100).sum() / items
