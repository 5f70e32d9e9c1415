"""The spectrum of a model's token matrices on some rows: the last hidden states, and around a SoftDecay layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.finetuning.loop import Encoded
from isotrope.measures.sequence_spectrum import (
    GRID,
    mean_cdf,
    sequence_spectral_median,
    sequence_spectral_reach,
    sequence_spectral_skewness,
    sequence_vanished_dimensions,
)
from isotrope.sources.batch import Rows
from isotrope.statistics import SequenceSpectra

#: Every so many points of the curve are kept.
_EVERY = len(GRID) // 50

_MEASURES = {
    "skewness": sequence_spectral_skewness,
    "median": sequence_spectral_median,
    "reach": sequence_spectral_reach,
    "vanished": sequence_vanished_dimensions,
}


def spectra(base: Any, rows: Encoded, batch_size: int, softdecay: Any = None) -> dict[str, dict[str, Any]]:
    """Spectra of a model without its head on rows: "last", and with a SoftDecay layer "into" and "out of" it.

    Each has the measures of `isotrope.measures.sequence_spectrum` (None where undefined) and "cdf": the mean share of a
    sequence's σ/σ₁ at or below 0, 0.02, ... 1, the curve of Yan et al. 2022, Figs. 1 and 5.
    """
    found: dict[str, SequenceSpectra] = {}
    base.eval()
    for start in range(0, len(rows), batch_size):
        which = np.arange(start, min(start + batch_size, len(rows)))
        made = rows.batch(which)
        mask = made["attention_mask"].bool().cpu().numpy()

        def keep(name: str, states: Any, mask: NDArray[np.bool_] = mask, first: int = start) -> None:
            ids = np.repeat(np.arange(first, first + len(mask), dtype=np.uint64), mask.sum(1))
            part = SequenceSpectra.of_rows(states.float().cpu().numpy()[mask], Rows(ids))
            found[name] = found[name] + part if name in found else part

        with torch.inference_mode(), _watched(softdecay, keep):
            keep("last", base(**made).last_hidden_state)
    return {name: _described(found[name]) for name in sorted(found)}


@contextmanager
def _watched(layer: Any, keep: Callable[[str, Any], None]) -> Iterator[None]:
    if layer is None:
        yield
        return

    def see(_: Any, args: tuple[Any, ...], output: Any) -> None:
        keep("into softdecay", args[0])
        keep("out of softdecay", output)

    hook = layer.register_forward_hook(see)
    try:
        yield
    finally:
        hook.remove()


def _described(spectra: SequenceSpectra) -> dict[str, Any]:
    described: dict[str, Any] = {"sequences": len(spectra)}
    for name, measure in _MEASURES.items():
        try:
            described[name] = float(measure(spectra))
        except Undefined:
            described[name] = None
    return described | {"cdf": mean_cdf(spectra)[::_EVERY].round(6).tolist() if len(spectra) else None}
