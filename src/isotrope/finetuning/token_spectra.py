"""Spectra of the token matrices of a model: of the hidden states of all layers, and before and after SoftDecay."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from isotrope.errors import Undefined
from isotrope.evaluation.significance import LEVEL
from isotrope.finetuning.loop import EncodedRows
from isotrope.measures.sequence_spectrum import (
    GRID,
    find_reach,
    mean_cdf,
    sequence_spectral_median,
    sequence_spectral_reach,
    sequence_spectral_skewness,
    sequence_vanished_dimensions,
)
from isotrope.sources.batch import Rows
from isotrope.sources.models.hidden_states import record_input, record_outputs
from isotrope.statistics import SequenceSpectra

#: What the names of hidden states begin with.
_LAYER = "layer "

#: Resamples of the sequences for an interval.
_RESAMPLES = 400

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
        measures of `isotrope.measures.sequence_spectrum` (None where undefined), "reach_low" and "reach_high", the 95 %
        interval of the reach over sequences, and "cdf": the mean share of the values σ/σ₁ of a sequence at or below 0,
        0.02, ... 1. "last" has "layers" too: a list with the same of each hidden state, embeddings first.

    References:
        Yan et al. 2022, Figs. 1, 5 and 8 to 13
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
    layers = [_describe(found.pop(name)) for name in [*found] if name.startswith(_LAYER)]
    described = {name: _describe(found[name]) for name in sorted(found)}
    return described | {"last": described["last"] | {"layers": layers}}


def _compute_states(base: Any, batch: dict[str, Any], softdecay: Any) -> dict[str, Any]:
    """The hidden states of a batch, and what goes into and comes out of the SoftDecay layer, by name."""
    layers = {} if softdecay is None else {"out of softdecay": softdecay}
    with torch.inference_mode(), record_input(softdecay) as inputs, record_outputs(layers) as outputs:
        found = base(**batch, output_hidden_states=True)
    into = {"into softdecay": inputs[-1]} if inputs else {}
    hidden = found.get("hidden_states") or found.get("decoder_hidden_states") or ()
    each = {f"{_LAYER}{number}": states for number, states in enumerate(hidden)}
    return {"last": found.last_hidden_state} | into | outputs | each


def _describe(spectra: SequenceSpectra) -> dict[str, Any]:
    """Measures and curve of spectra as plain data."""
    described: dict[str, Any] = {"sequences": len(spectra)}
    for name, measure in _MEASURES.items():
        try:
            described[name] = float(measure(spectra))
        except Undefined:
            described[name] = None
    described |= dict(zip(("reach_low", "reach_high"), _compute_reach_interval(spectra), strict=True))
    return described | {"cdf": mean_cdf(spectra)[::_EVERY].round(6).tolist() if len(spectra) else None}


def _compute_reach_interval(spectra: SequenceSpectra) -> tuple[float | None, float | None]:
    """The 95 % interval of the reach over sequences, by a bootstrap; None for fewer than two sequences."""
    if len(spectra) < 2:
        return None, None
    rng = np.random.default_rng(0)
    curves = np.array([mean_cdf(spectra.only(spectra.sequence[[i]])) for i in range(len(spectra))])
    counts = rng.multinomial(len(curves), np.full(len(curves), 1 / len(curves)), size=_RESAMPLES)
    reaches = [find_reach(curve) for curve in counts @ curves / len(curves)]
    low, high = np.quantile(reaches, [LEVEL / 2, 1 - LEVEL / 2])
    return float(low), float(high)
