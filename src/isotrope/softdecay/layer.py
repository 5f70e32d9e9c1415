"""SoftDecay as a layer with one trainable number, and parameter groups in which that number has its own rate."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import torch

from isotrope.softdecay.formula import check_alpha
from isotrope.softdecay.spectral import soft_decay

Tensor: TypeAlias = torch.Tensor

#: Between these ends of the raw number float64 can still tell a = −α from 0 and from 1: no step can leave the domain.
_ENDS = (-30.0, 16.0)


class SoftDecay(torch.nn.Module):  # type: ignore[misc]  # the base has no types
    """Bends the singular values of each sequence's token matrix and keeps the largest: weak directions gain.

    α stays inside the domain of the form, because what is trained is the logarithm of −α, or for "shifted", whose
    domain is −1 < α < 0, its log-odds.

    Args:
        alpha: how strongly, to begin with.
        form: "shifted" (the safe one), "clipped" or "paper", see `isotrope.repairs.soft_decay`.
        trainable: whether α is trained.

    References:
        Yan et al. 2022.

    Examples:
        >>> layer = SoftDecay()
        >>> layer(torch.randn(2, 7, 16), mask=torch.ones(2, 7)).shape
        torch.Size([2, 7, 16])
        >>> round(layer.alpha, 6)
        -0.5
    """

    def __init__(self, alpha: float = -0.5, form: str = "shifted", trainable: bool = True) -> None:
        super().__init__()
        check_alpha(alpha, form)
        self.form = form
        raw = math.log(-alpha) - (math.log1p(alpha) if form == "shifted" else 0.0)
        # One number in a vector: sharded training knows no parameters without dimensions.
        self.raw_alpha = torch.nn.Parameter(torch.tensor([raw]), requires_grad=trainable)

    @property
    def alpha(self) -> float:
        """The α of now."""
        return float(self._alpha().detach())

    def _alpha(self) -> Tensor:
        raw = self.raw_alpha.double().clamp(*_ENDS)
        return -(torch.sigmoid(raw) if self.form == "shifted" else raw.exp())

    def forward(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """Bent token matrices, (b, t, d); mask: (b, t), true or 1 where there is a token, the others become zeros."""
        return soft_decay(hidden, self._alpha(), self.form, mask)

    def extra_repr(self) -> str:
        """What it prints."""
        return f"alpha={self.alpha:.4g}, form={self.form!r}, trainable={self.raw_alpha.requires_grad}"


def parameter_groups(
    model: Any, lr: float = 2e-5, softdecay_lr: float = 2e-3, weight_decay: float = 0.0
) -> list[dict[str, Any]]:
    """Groups for any optimizer of torch: matrices with weight decay, vectors without, and α of SoftDecay.

    Frozen parameters are left out. One number has farther to go than a pretrained matrix, and a decay would pull it to
    −0.5.

    Args:
        model: a torch model.
        lr: the learning rate of matrices and vectors.
        softdecay_lr: the learning rate of α.
        weight_decay: of matrices.

    References:
        Yan et al. 2022, Appendix B, for the rates.

    Examples:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(3, 3), SoftDecay())
        >>> groups = parameter_groups(model, weight_decay=0.1)
        >>> [(len(group["params"]), group["lr"], group["weight_decay"]) for group in groups]
        [(1, 2e-05, 0.1), (1, 2e-05, 0.0), (1, 0.002, 0.0)]
    """
    own = {id(p) for module in model.modules() if isinstance(module, SoftDecay) for p in module.parameters()}
    trained = [p for p in model.parameters() if p.requires_grad]
    groups = [
        ([p for p in trained if p.ndim > 1], lr, weight_decay),
        ([p for p in trained if p.ndim <= 1 and id(p) not in own], lr, 0.0),
        ([p for p in trained if id(p) in own], softdecay_lr, 0.0),
    ]
    return [{"params": params, "lr": rate, "weight_decay": decay} for params, rate, decay in groups if params]
