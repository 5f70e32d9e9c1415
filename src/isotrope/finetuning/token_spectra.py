"""Spectra of the token matrices of a model: of the last hidden states, and before and after a SoftDecay layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

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
from isotrope.sources.models.hidden_states import record_input, record_outputs
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
        batch = rows.batch(range(start, min(start + batch_size, len(rows))))
        mask = batch["attention_mask"].bool().cpu().numpy()
        known = Rows(np.repeat(np.arange(start, start + len(mask), dtype=np.uint64), mask.sum(1)))
        for name, states in _compute_states(base, batch, softdecay).items():
            part = SequenceSpectra.of_rows(states.float().cpu().numpy()[mask], known)
            found[name] = found[name] + part if name in found else part
    return {name: _describe(found[name]) for name in sorted(found)}


def _compute_states(base: Any, batch: dict[str, Any], softdecay: Any) -> dict[str, Any]:
    """The last hidden states of a batch, and what goes into and comes out of the SoftDecay layer, by name."""
    layers = {} if softdecay is None else {"out of softdecay": softdecay}
    with torch.inference_mode(), record_input(softdecay) as inputs, record_outputs(layers) as outputs:
        last = base(**batch).last_hidden_state
    into = {"into softdecay": inputs[-1]} if inputs else {}
    return {"last": last} | into | outputs


def _describe(spectra: SequenceSpectra) -> dict[str, Any]:
    """Measures and curve of spectra as plain data."""
    described: dict[str, Any] = {"sequences": len(spectra)}
    for name, measure in _MEASURES.items():
        try:
            described[name] = float(measure(spectra))
        except Undefined:
            described[name] = None
    return described | {"cdf": mean_cdf(spectra)[::_EVERY].round(6).tolist() if len(spectra) else None}
