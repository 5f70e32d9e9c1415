"""Gains, slopes and derivatives of SoftDecay's formula in torch, for the forward and the backward pass.

Singular values are in float64, (..., s). `a` is a tensor without dimensions. The tolerance is a share of the largest
value, a number or (..., 1): the form "paper" takes what is at or below it as zero.
"""

from __future__ import annotations

from typing import TypeAlias

import torch

from isotrope.errors import InputError
from isotrope.softdecay.formula import decay, find_violation

Tensor: TypeAlias = torch.Tensor

#: What to do about a singular value outside the domain of a form.
_ADVICE = {
    "largest": "use the form 'shifted', which has no bound",
    "smallest": "use the form 'clipped' or 'shifted'",
}


def decay_values(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """f of singular values, before the largest is put back in its place; 0 where a form leaves values out.

    Examples:
        >>> decay_values(torch.tensor([0.5, 2.0]).double(), torch.tensor(0.5).double(), "clipped", 0.0).tolist()
        [0.0, 1.11923...]
    """
    f: Tensor = decay(values, a, form, torch, _one_minus_square(a))
    return torch.where(_takes_part(values, a, form, tolerance), f, 0.0) if form == "paper" else f


def compute_gains(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """f(x)/x, and its limit at 0, where that exists; 0 where a form leaves values out."""
    limit = 1.0 / _one_minus_square(a) if form == "shifted" else torch.zeros_like(a)
    return torch.where(values > 0, decay_values(values, a, form, tolerance) / values, limit)


def compute_slopes(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """(f_i − f_j)/(x_i − x_j) of all pairs, f' where equal, (..., s, s): no digits are lost where they are close."""
    takes_part = _takes_part(values, a, form, tolerance)
    x = torch.where(takes_part, values, a)  # f(a) = 0 for the forms that leave values out
    c = _one_minus_square(a) + a * x
    z = a * _differences(x) / c[..., None, :]
    slope = torch.where(z == 0, 1.0, torch.log1p(z) / z) / c[..., None, :]
    one, other = takes_part[..., :, None], takes_part[..., None, :]
    mixed = torch.where(one == other, (one & other).to(x), _differences(x) / _differences(values))
    return slope * mixed


def compute_sum_ratios(values: Tensor, f: Tensor, gains: Tensor) -> Tensor:
    """(f_i + f_j)/(x_i + x_j) of all pairs, and the gain at 0 where both are 0, (..., s, s)."""
    both = values[..., :, None] + values[..., None, :]
    return torch.where(both > 0, (f[..., :, None] + f[..., None, :]) / both, gains[..., None, :])


def derive_by_a(values: Tensor, f: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """∂f/∂a of each value."""
    moved = ((values - 2 * a) / (_one_minus_square(a) + a * values) - f) / a
    if form == "shifted":
        return moved + 2.0 / _one_minus_square(a)
    return torch.where(_takes_part(values, a, form, tolerance), moved, 0.0)


def check_values(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> None:
    """Refuse singular values, (b, s), that leave the domain of a form; sequences of zeros stay as they are."""
    largest = values.amax(-1)
    largest = largest[largest > 0]
    if form == "shifted" or not len(largest):
        return
    smallest = values[_takes_part(values, a, form, tolerance)].min() if form == "paper" else largest.min()
    if violation := find_violation(float(largest.min()), float(smallest), float(a), form):
        raise InputError(f"in a sequence, {violation.fact}; {_ADVICE[violation.which]}.")


def _one_minus_square(a: Tensor) -> Tensor:
    """1 − a², without losing the digits of an a close to 1."""
    return (1 - a) * (1 + a)


def _takes_part(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """Whether the formula is applied to each value."""
    if form == "clipped":
        return values > a
    if form == "paper":
        return values > tolerance * values.amax(-1, keepdim=True)
    return torch.ones_like(values, dtype=torch.bool)


def _differences(values: Tensor) -> Tensor:
    return values[..., :, None] - values[..., None, :]
