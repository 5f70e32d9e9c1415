"""SoftDecay of the same strength for every space, whatever the length and number of its rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.repairs import SoftDecay
from isotrope.repairs.fit_data import collect
from isotrope.softdecay.formula import find_shifted_alpha

#: Strength: the argument of log(1 + x) at the median singular value. Between 2.8 and 9.4 STS scores differ by less than
#: a point in the spaces of the validation; few rows and weighted tokens need a lower strength.
FIRMNESS = 4.0

#: The number of rows that singular values are scaled to: they grow with the square root of the number of rows.
_ROWS = 3_000


def fit_scale_free_softdecay(rows: Any, firmness: float = FIRMNESS) -> SoftDecay:
    """Fit SoftDecay to rows in the form `shifted`, with the alpha that matches their scale.

    The formula of Yan et al. 2022 changes long rows more than short ones. Here a/(1 − a²), a = −alpha, is chosen such
    that its product with the median singular value of 3,000 rows is `firmness`.

    Args:
        rows: rows, (n, d), or moments.
        firmness: strength of the repair.

    Examples:
        >>> x = np.random.default_rng(0).normal(size=(2000, 8)) * [9, 9, 1, 1, 1, 1, 1, 1] + 5
        >>> long, short = fit_scale_free_softdecay(1000 * x), fit_scale_free_softdecay(x)
        >>> np.allclose(long.gains_, short.gains_)
        True
    """
    found = collect(rows)
    moments = found.moments
    singular = moments.singular_values[moments.singular_values > 0]
    if len(singular) < 2:
        raise InputError(
            f"got {moments.n:,} rows that spread in {len(singular)} directions, expected at least two; there is "
            "nothing to repair in such a space, so choose other layers or another pooling."
        )
    slope = firmness / (float(np.median(singular)) * math.sqrt(_ROWS / moments.n))
    return SoftDecay(find_shifted_alpha(slope), "shifted", reference_rows=_ROWS).fit_collected(found)
