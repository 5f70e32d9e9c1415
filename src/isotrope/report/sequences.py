"""How alike the tokens of each sampled sequence are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.compute.arrays import to_unit_rows
from isotrope.sources.batch import Rows


def uniformities(values: NDArray[Any], known: Rows) -> dict[str, NDArray[Any]]:
    """Id, length T and mean cosine over distinct pairs of tokens of each sequence of two tokens or more, (k,) each.

    values: (n, d), the rows, sequences one after another. The mean over sequences of the last is the measure
    sequence_uniformity. Paper: Yan et al. 2022, Fig. 2.

    >>> known = Rows(np.array([7, 7, 9], dtype=np.uint64), position=np.array([0, 1, 0]))
    >>> uniformities(np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), known)["uniformity"].tolist()
    [0.0]
    """
    starts = known.starts()
    lengths = np.diff(np.append(starts, len(known)))
    if len(starts) == 0:
        return {"sequence": known.sequence, "length": lengths, "uniformity": np.empty(0)}
    wide = values.astype(np.float64, copy=False)
    units = to_unit_rows(wide)
    sums = np.add.reduceat(units, starts)
    squares = np.einsum("ij,ij->i", sums, sums)
    keep = lengths >= 2
    t = lengths[keep]
    found = (squares[keep] - t) / (t * (t - 1.0))
    return {"sequence": known.sequence[starts][keep], "length": t, "uniformity": found}
