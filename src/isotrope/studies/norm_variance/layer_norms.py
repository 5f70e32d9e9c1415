"""Which norm a layer's rows come out of, found by what it gives and not by its name."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from isotrope.layers import Layer
from isotrope.sources.corpora.corpus import Text
from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.tokenize import encode, pad_texts

_PROBE = "A norm gives what it gives."


class LayerNorm(NamedTuple):
    """‖γ‖², ‖β‖² and βᵀγ of the norm that gives a layer's rows."""

    gamma_square: float
    beta_square: float
    beta_gamma: float

    @property
    def predicted(self) -> float:
        """‖γ‖² + ‖β‖², the squared length of rows whose coordinates have mean 0 and variance 1 before γ and β."""
        return self.gamma_square + self.beta_square

    def variation(self, fewest: int) -> float:
        """What the C.V. of Q over types of at least so many occurrences is of the order of."""
        return abs(self.gamma_square + self.beta_gamma) / self.predicted / math.sqrt(fewest)


def find_layer_norms(loaded: Loaded) -> dict[Layer, LayerNorm]:
    """The norm of each layer whose rows are a norm's output: all of a post-LN model, the last of a pre-LN one.

    Yamagiwa and Shimodaira 2024, Appendix I.
    """
    import torch

    outputs: list[tuple[Any, Any]] = []
    norms = [m for m in loaded.model.modules() if "norm" in type(m).__name__.lower() and hasattr(m, "weight")]
    hooks = [m.register_forward_hook(lambda module, _, out: outputs.append((module, out))) for m in norms]
    try:
        ids, mask = pad_texts(encode(loaded, [Text(0, _PROBE)], 64), loaded.pad)
        encoder, decoder = compute_hidden_states(loaded, ids, mask)
    finally:
        for hook in hooks:
            hook.remove()
    found: dict[Layer, LayerNorm] = {}
    for layer, state in enumerate((*encoder, *decoder)):
        for module, out in outputs:
            if isinstance(out, torch.Tensor) and out.shape == state.shape and torch.equal(out, state):
                found[layer] = _describe_norm(module)
    return found


def _describe_norm(module: Any) -> LayerNorm:
    gamma = module.weight.detach().double().cpu().numpy()
    bias = getattr(module, "bias", None)
    beta = np.zeros_like(gamma) if bias is None else bias.detach().double().cpu().numpy()
    return LayerNorm(float(gamma @ gamma), float(beta @ beta), float(beta @ gamma))
