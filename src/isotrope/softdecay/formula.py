"""The formula of SoftDecay, for numpy and torch: its three forms, and where each is defined.

With a = −α, "paper" is ln(1 − a² + a·x)/a. "clipped" is the same for x > a and 0 below. "shifted" is the difference of
"paper" at x and at 0, ln(1 + a·x/(1 − a²))/a, for 0 < a < 1.

References: Yan et al. 2022, Eq. 2.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

from isotrope.errors import InputError

#: The domain of α for each form.
DOMAINS = {"shifted": "−1 < alpha < 0", "paper": "alpha < 0", "clipped": "alpha < 0"}


def decay(values: Any, a: Any, form: str, xp: Any, rest: Any = None) -> Any:
    """f of singular values, before the largest is put back in its place.

    Args:
        values: singular values, an array or a tensor of any shape.
        a: −α, a number or a tensor without dimensions.
        form: one of `DOMAINS`.
        xp: the module of the values, numpy or torch.
        rest: 1 − a², for a caller that computes it without losing the digits of an a close to 1.

    Returns:
        As many values, NaN where "paper" is undefined.

    Examples:
        >>> import numpy as np
        >>> decay(np.array([0.5, 2.0]), 0.5, "clipped", np).round(5).tolist()
        [0.0, 1.11923]
    """
    if form == "shifted":
        return xp.log1p(a * values / (1 - a * a if rest is None else rest)) / a
    if form == "clipped":
        values = xp.maximum(values, a)
    return xp.log1p(a * (values - a)) / a


def find_shifted_alpha(slope: float) -> float:
    """The α of the form "shifted" whose factor of x, a/(1 − a²), is `slope`.

    Examples:
        >>> round(find_shifted_alpha(0.5 / (1 - 0.5**2)), 12)
        -0.5
    """
    return -2 * slope / (1 + math.hypot(1, 2 * slope))  # without the difference of two large numbers


def check_alpha(alpha: float, form: str, *, allow_zero: bool = False) -> None:
    """Refuse a form that there is not, and an α outside its domain.

    Args:
        alpha: how strongly singular values are bent.
        form: one of `DOMAINS`.
        allow_zero: whether "paper" and "clipped" may have α = 0, which changes nothing.

    Examples:
        >>> check_alpha(-1.5, "shifted")
        Traceback (most recent call last):
        isotrope.errors.InputError: alpha is -1.5, expected −1 < alpha < 0 for the form 'shifted'; the forms 'paper' ...
    """
    if form not in DOMAINS:
        raise InputError(f"there is no form {form!r} of SoftDecay; say {', '.join(DOMAINS)}.")
    least = -1.0 if form == "shifted" else -float("inf")
    if least < alpha < 0.0 or (allow_zero and alpha == 0.0 and form != "shifted"):
        return
    others = "; the forms 'paper' and 'clipped' take any alpha below 0" if form == "shifted" else ""
    raise InputError(f"alpha is {alpha:g}, expected {DOMAINS[form]} for the form {form!r}{others}.")


class Violation(NamedTuple):
    """A singular value outside the domain of a form.

    Attributes:
        which: the largest or the smallest one.
        fact: what it is and what was expected, as a sentence without its end.
    """

    which: Literal["largest", "smallest"]
    fact: str


def find_violation(largest: float, smallest: float, a: float, form: str) -> Violation | None:
    """Which singular value leaves the domain of a form: where f is undefined, or small values overtake the largest.

    Args:
        largest: the largest singular value.
        smallest: the smallest one that the form is applied to.
        a: −α.
        form: one of `DOMAINS`.

    Returns:
        None where both are inside.

    Examples:
        >>> find_violation(2.0, 0.1, 1.25, "paper").fact.partition(" for ")[0]
        'the smallest singular value is 0.1, expected all above a − 1/a = 0.45'
    """
    if form == "shifted":
        return None
    where = f"for alpha = {-a:.6g} (a = −alpha) in the form {form!r}"
    least, bound, outside = a, "above a", largest <= a
    if form == "paper" and a < 1:
        least, bound = a * (2 - a * a) / (1 - a * a), "at least a(2 − a²)/(1 − a²)"
        outside = largest < least
    if outside:
        fact = f"the largest singular value is {largest:.6g}, expected {bound} = {least:.6g} {where}"
        return Violation("largest", fact)
    if form == "paper" and a >= 1 and smallest <= a - 1 / a:
        fact = f"the smallest singular value is {smallest:.6g}, expected all above a − 1/a = {a - 1 / a:.6g} {where}"
        return Violation("smallest", fact)
    return None
