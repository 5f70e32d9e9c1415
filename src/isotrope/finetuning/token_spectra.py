"""Spectra of the token matrices of a model: of the last hidden states, and before and after a SoftDecay layer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from isotrope.errors import Undefined
from isotrope.finetuning.loop import EncodedRows
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

#: Only every n-th point of the curve is stored.
_EVERY = len(GRID) // 50

_MEASURES = {
    "skewness": sequence_spectral_skewness,
    "median": sequence_spectral_median,
    "reach": sequence_spectral_reach,
    "vanished": sequence_vanished_dimensions,
}


def compute_spectra(base: Any, rows: EncodedRows, batch_size: int, softdecay: Any = None) -> dict[str, dict[str, Any]]:
    """Compute the spectra of the hidden states of a model.

    Args:
        base: model without its head.
        rows: tokenized texts.
        batch_size: texts in one batch.
        softdecay: SoftDecay layer of the model, None for none.

    Returns:
        Spectra by name: "last", and with a SoftDecay layer "into softdecay" and "out of softdecay". Each has the
        measures of `isotrope.measures.sequence_spectrum` (None where undefined) and "cdf": the mean share of the values
        σ/σ₁ of a sequence at or below 0, 0.02, ... 1.

    References:
        Yan et al. 2022, Figs. 1 and 5
    """
    found: dict[str, SequenceSpectra] = {}
    base.eval()
    for start in range(0, len(rows), batch_size):
        which = np.arange(start, min(start + batch_size, len(rows)))
        batch = rows.batch(which)
        mask = batch["attention_mask"].bool().cpu().numpy()

        def add(name: str, states: Any, mask: NDArray[np.bool_] = mask, first: int = start) -> None:
            ids = np.repeat(np.arange(first, first + len(mask), dtype=np.uint64), mask.sum(1))
            part = SequenceSpectra.of_rows(states.float().cpu().numpy()[mask], Rows(ids))
            found[name] = found[name] + part if name in found else part

        with torch.inference_mode(), _observe(softdecay, add):
            add("last", base(**batch).last_hidden_state)
    return {name: _describe(found[name]) for name in sorted(found)}


@contextmanager
def _observe(layer: Any, add: Callable[[str, Any], None]) -> Iterator[None]:
    """Pass the inputs and outputs of a layer on, while the model runs."""
    if layer is None:
        yield
        return

    def pass_on(_: Any, args: tuple[Any, ...], output: Any) -> None:
        add("into softdecay", args[0])
        add("out of softdecay", output)

    hook = layer.register_forward_hook(pass_on)
    try:
        yield
    finally:
        hook.remove()


def _describe(spectra: SequenceSpectra) -> dict[str, Any]:
    """Measures and curve of spectra as plain data."""
    described: dict[str, Any] = {"sequences": len(spectra)}
    for name, measure in _MEASURES.items():
        try:
            described[name] = float(measure(spectra))
        except Undefined:
            described[name] = None
    return described | {"cdf": mean_cdf(spectra)[::_EVERY].round(6).tolist() if len(spectra) else None}
