"""A differentiable k-means, and the patchiness of its cells as a loss, as Marbut, Chandler and Wheeler suggest.

A quantizer puts each row in one cell, which has no gradient. Here each row has a share in every cell, larger the nearer
the cell's centre. As the temperature goes to zero the shares become those of k-means, and the loss the point patchiness
of its cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import torch

from isotrope.errors import InputError
from isotrope.nn.regularizers import make_zero, select_tokens

Tensor: TypeAlias = torch.Tensor


def assign_softly(rows: Tensor, centres: Tensor, temperature: Tensor | float) -> Tensor:
    """The share of each row in each cell, softmax of −‖x − c‖² / temperature.

    Args:
        rows: (n, d).
        centres: (k, d).
        temperature: in squared units of the rows; the lower, the harder the shares.

    Returns:
        Shares, (n, k); those of each row add up to 1.

    Examples:
        >>> rows, centres = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.0], [1.0]])
        >>> assign_softly(rows, centres, 1e-3).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    squares = (rows[:, None, :] - centres[None, :, :]).square().sum(-1)
    return torch.softmax(-squares / temperature, dim=1)


def soft_kmeans(rows: Tensor, centres: Tensor, temperature: Tensor | float, steps: int = 5) -> tuple[Tensor, Tensor]:
    """Move centres to the means of their rows, weighted by shares, with gradients through all steps.

    Args:
        rows: (n, d).
        centres: (k, d), where they begin.
        temperature: see `assign_softly`.
        steps: how often the centres move. A cell that has lost all rows stays where it is.

    Returns:
        Centres, (k, d), and the shares of the rows in their cells, (n, k).
    """
    shares = assign_softly(rows, centres, temperature)
    for _ in range(steps):
        mass = shares.sum(0)[:, None]
        full = mass > torch.finfo(rows.dtype).tiny ** 0.5
        centres = torch.where(full, shares.mT @ rows / torch.where(full, mass, 1.0), centres)
        shares = assign_softly(rows, centres, temperature)
    return centres, shares


def compute_patchiness(counts: Tensor) -> Tensor:
    """(m + V/m − 1)/m of the counts of k cells, (k,), with their mean m and population variance V (Eq. 3).

    Examples:
        >>> float(compute_patchiness(torch.tensor([4.0, 2.0, 2.0, 0.0])))
        1.0
    """
    mean = counts.mean()
    return (mean + counts.var(correction=0) / mean - 1) / mean


@dataclass(frozen=True)
class PatchinessLoss:
    """weight · point patchiness of the cells of a soft k-means; a negative weight pulls towards patchier rows.

    The centres begin at rows of the batch that the seed draws. With no more rows than cells the loss is 0.

    Args:
        weight: what the loss is multiplied by.
        cells: the number of cells.
        temperature: as a share of the variance of the rows, so that their scale does not matter.
        steps: of the soft k-means.
        seed: of the first centres.

    References:
        Marbut, Chandler and Wheeler (latent geometry), Eq. 3 and Limitations.

    Examples:
        >>> float(PatchinessLoss(cells=2, temperature=1e-6)(torch.tensor([[0.0], [0.1], [0.2], [9.0]])))
        0.75
    """

    weight: float = 1.0
    cells: int = 16
    temperature: float = 0.05
    steps: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        if self.cells < 2 or self.steps < 0 or not self.temperature > 0:
            raise InputError(
                f"got {self.cells} cells, {self.steps} steps and temperature {self.temperature:g}; expected at least 2 "
                "cells, 0 steps or more and a temperature above 0."
            )

    def __call__(self, hidden: Tensor, mask: Tensor | None = None) -> Tensor:
        """The loss."""
        with torch.autocast(hidden.device.type, enabled=False):
            x = select_tokens(hidden, mask)
            if len(x) <= self.cells:
                return make_zero(hidden)
            spread = (x - x.mean(0)).square().sum(1).mean().detach()
            temperature = self.temperature * torch.where(spread > 0, spread, 1.0)
            generator = torch.Generator().manual_seed(self.seed)
            chosen = torch.randperm(len(x), generator=generator)[: self.cells].to(x.device)
            _, shares = soft_kmeans(x, x[chosen], temperature, self.steps)
            return self.weight * compute_patchiness(shares.sum(0))
