"""How alike two random rows point."""

from typing import Any

from isotrope.errors import Undefined
from isotrope.measures.record import measure
from isotrope.statistics import Moments

_SHARED: dict[str, Any] = {
    "range": lambda n, d: (-1.0 / max(n - 1, 1), 1.0),
    "better": "lower",
    "length_power": 0,
    "null": lambda n, d: 0.0,
}


def _over_distinct_pairs(m: Moments) -> float:
    if m.n < 2:
        raise Undefined("a cosine between distinct rows needs at least two rows")
    # (‖Σu‖² − n)/(n(n − 1)), written through the centred scatter of the unit rows: no cancellation near 1.
    return 1.0 - m.unit_scatter / (m.n - 1)


def _with_diagonal(m: Moments) -> float:
    if m.n < 1:
        raise Undefined("there are no rows")
    return float(m.unit_mean @ m.unit_mean)


@measure(
    "moments",
    title="Mean cosine",
    says="How alike two random rows point: 0 in all directions, 1 all in the same one.",
    formula="mean of cos(x_i, x_j) over i ≠ j = (‖Σu‖² − n) / (n(n − 1)), u = x/‖x‖",
    paper="Ethayarajh 2019; Godey et al. 2023 (anisotropy)",
    blind="Spectrum after the mean is removed: rows on one line through the origin, half each way, give about 0.",
    wrong="Unit rows in float32: near 1 they lose everything below 1e-7. A sample of pairs, where all are as cheap.",
    headline=1,
    per_group=True,
    **_SHARED,
)
def mean_cosine(m: Moments) -> float:
    """Mean cosine over distinct pairs of rows, exact and without forming the pairs.

    >>> import numpy as np
    >>> mean_cosine(np.array([[1.0, 0.0], [0.0, 1.0]]))
    0.0
    """
    return _over_distinct_pairs(m)


@measure(
    "moments",
    title="Token uniformity",
    says="How alike the tokens of a set point; the same number as the mean cosine, under the name of its paper.",
    formula="mean of cos(x_i, x_j) over i ≠ j; published: each row compared with itself too = ‖mean u‖²",
    paper="Yan et al. 2022 (SoftDecay), Eq. 3",
    blind="As the mean cosine.",
    variants={"published": _with_diagonal},
    **_SHARED,
)
def token_uniformity(m: Moments) -> float:
    """Mean cosine over distinct pairs; the published variant counts each row with itself."""
    return _over_distinct_pairs(m)
