"""How SoftDecay bends singular values, in torch: its three forms, their slopes, and how they move with α.

With a = −α and c(x) = 1 − a² + a·x: "paper" is ln(c)/a, for values above the rank tolerance; "clipped" is the same for
x > a, where it is positive; "shifted" is ln(c/(1 − a²))/a, for 0 < a < 1. What a form leaves out becomes zero. Values
are in float64, (..., s); a is a tensor without dimensions; the tolerance is a share of the largest value, a number or
(..., 1). Definition: Yan et al. 2022, Eq. 2.
"""

from __future__ import annotations

from typing import TypeAlias

import torch

from isotrope.errors import InputError

Tensor: TypeAlias = torch.Tensor

#: The domain of α for each form.
DOMAINS = {"shifted": "−1 < alpha < 0", "paper": "alpha < 0", "clipped": "alpha < 0"}


def check(alpha: float, form: str) -> None:
    """Refuse a form that there is not, and an α outside its domain.

    >>> check(-1.5, "shifted")
    Traceback (most recent call last):
    isotrope.errors.InputError: alpha is -1.5, expected −1 < alpha < 0 for the form 'shifted'.
    """
    if form not in DOMAINS:
        raise InputError(f"there is no form {form!r} of SoftDecay; say {', '.join(DOMAINS)}.")
    if not (-1.0 if form == "shifted" else -float("inf")) < alpha < 0.0:
        raise InputError(f"alpha is {alpha:g}, expected {DOMAINS[form]} for the form {form!r}.")


def bent(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """f of singular values, before the largest is put back in its place.

    >>> bent(torch.tensor([0.5, 2.0]).double(), torch.tensor(0.5).double(), "clipped", 0.0).tolist()
    [0.0, 1.11923...]
    """
    if form == "shifted":
        return torch.log1p(a * values / _rest(a)) / a
    return torch.where(_kept(values, a, form, tolerance), torch.log1p(a * (values - a)) / a, 0.0)


def gains(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """f(x)/x, and its limit at 0, where that exists; 0 where a form leaves values out."""
    limit = 1.0 / _rest(a) if form == "shifted" else torch.zeros_like(a)
    return torch.where(values > 0, bent(values, a, form, tolerance) / values, limit)


def slopes(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """(f_i − f_j)/(x_i − x_j) of all pairs, f' where equal, (..., s, s): no digits are lost where they are close."""
    kept = _kept(values, a, form, tolerance)
    x = torch.where(kept, values, a)  # f(a) = 0 for the forms that leave values out
    c = _rest(a) + a * x
    z = a * _apart(x) / c[..., None, :]
    slope = torch.where(z == 0, 1.0, torch.log1p(z) / z) / c[..., None, :]
    one, other = kept[..., :, None], kept[..., None, :]
    mixed = torch.where(one == other, (one & other).to(x), _apart(x) / _apart(values))
    return slope * mixed


def sums(values: Tensor, f: Tensor, h: Tensor) -> Tensor:
    """(f_i + f_j)/(x_i + x_j) of all pairs, and the gain at 0 where both are 0, (..., s, s)."""
    both = values[..., :, None] + values[..., None, :]
    return torch.where(both > 0, (f[..., :, None] + f[..., None, :]) / both, h[..., None, :])


def by_a(values: Tensor, f: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """∂f/∂a of each value."""
    moved = ((values - 2 * a) / (_rest(a) + a * values) - f) / a
    if form == "shifted":
        return moved + 2.0 / _rest(a)
    return torch.where(_kept(values, a, form, tolerance), moved, 0.0)


def refuse_outside(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> None:
    """Refuse singular values, (b, s), that leave the domain of "paper" or "clipped"; all zeros stay as they are."""
    if form == "shifted":
        return
    top = values.amax(-1)
    top, strength = top[top > 0], float(a)
    if not len(top):
        return
    if form == "paper" and strength < 1:
        least, bound = strength * (2 - strength**2) / (1 - strength**2), "at least a(2 − a²)/(1 − a²)"
        outside = float(top.min()) < least
    else:
        least, bound, outside = strength, "above a", float(top.min()) <= strength
    if outside:
        raise InputError(
            f"the largest singular value of a sequence is {float(top.min()):.6g}, expected {bound} = {least:.6g} for "
            f"alpha = {-strength:.6g} (a = −alpha) in the form {form!r}; use the form 'shifted', which has no bound."
        )
    if form == "paper" and strength >= 1:
        smallest = float(values[_kept(values, a, form, tolerance)].min())
        if smallest <= strength - 1 / strength:
            raise InputError(
                f"the smallest singular value of a sequence is {smallest:.6g}, expected all above a − 1/a = "
                f"{strength - 1 / strength:.6g} for alpha = {-strength:.6g} (a = −alpha) in the form 'paper'; "
                "use the form 'clipped' or 'shifted'."
            )


def _rest(a: Tensor) -> Tensor:
    """1 − a², without losing the digits of an a close to 1."""
    return (1 - a) * (1 + a)


def _kept(values: Tensor, a: Tensor, form: str, tolerance: Tensor | float) -> Tensor:
    """The values that the formula is applied to."""
    if form == "clipped":
        return values > a
    if form == "paper":
        return values > tolerance * values.amax(-1, keepdim=True)
    return torch.ones_like(values, dtype=torch.bool)


def _apart(values: Tensor) -> Tensor:
    return values[..., :, None] - values[..., None, :]
