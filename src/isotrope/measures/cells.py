"""Measures from the cells of a quantizer: one record for each kind, the settings in the name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from isotrope.measures.record import measure
from isotrope.quantization.cells import Cells

__all__ = ["Cells", "cells_measure"]

#: Rows below which most cells of the usual 256 hold too few of them for their counts to be told from chance.
_ENOUGH = 10_000


def cells_measure(name: str, function: Callable[[Cells], float], **record: Any) -> None:
    """Register `name_additive` and `name_product`, functions of `Cells`; plain `name` stands for the first."""
    for kind in ("additive", "product"):
        measure(
            "cells",
            name=f"{name}_{kind}",
            invariant=(),
            at_n=True,
            enough=lambda d: _ENOUGH,
            parameters={"kind": kind, "codebooks": 4, "size": 256},
            **{"note": Cells.describe, **record, "title": f"{record['title']} ({kind} quantizer)"},
        )(function)
