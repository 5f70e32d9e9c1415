"""The few token types that are shown by name, spread over all frequencies."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from isotrope.drawing.style import readable
from isotrope.figures.run_data import TypesOf

#: Parts into which the range of log frequencies is divided.
_PARTS = 10

#: Letters that a token needs to be worth reading.
_LETTERS = 3


def chosen_tokens(types: TypesOf, seed: int) -> NDArray[np.int64]:
    """Places of the chosen types among all, ascending.

    From each of ten equal parts of the range of log10 n, of the types of three letters or more T_r,
    2 + ⌊4·√(|T_r|/max |T_r|)⌋ at random (Yamagiwa and Shimodaira 2024, Appendix A with its erratum).
    """
    log = np.log10(types.n)
    long = np.array([len(readable(token)) >= _LETTERS for token in types.token])
    edges = np.linspace(log.min(), log.max(), _PARTS + 1)
    part = np.clip(np.searchsorted(edges, log, side="right") - 1, 0, _PARTS - 1)
    members = [np.flatnonzero(long & (part == r)) for r in range(_PARTS)]
    most = max(map(len, members))
    rng = np.random.default_rng(seed)
    chosen = [
        rng.choice(some, min(2 + int(4 * np.sqrt(len(some) / most)), len(some)), replace=False)
        for some in members
        if len(some)
    ]
    return np.sort(np.concatenate(chosen)) if chosen else np.empty(0, np.int64)
