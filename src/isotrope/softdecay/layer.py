"""SoftDecay as a layer with one trainable number."""

from __future__ import annotations

import math
from typing import TypeAlias

import torch

from isotrope.softdecay.formula import check_alpha
from isotrope.softdecay.spectral import soft_decay

Tensor: TypeAlias = torch.Tensor

#: Between these ends of the raw number float64 can still tell a = −α from 0 and from 1: no step can leave the domain.
_ENDS = (-30.0, 16.0)


class SoftDecay(torch.nn.Module):  # type: ignore[misc]  # the base has no types
    """Bends the singular values of each sequence's token matrix and keeps the largest: weak directions gain.

    alpha: how strongly, to begin with; trained unless `trainable` is False, and always inside the domain of the form,
    because what is trained is the logarithm of −α, or for "shifted", whose domain is −1 < α < 0, its log-odds. form:
    "shifted" (the safe one), "clipped" or "paper", see `isotrope.repairs.soft_decay`. Paper: Yan et al. 2022.

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
