"""SBERT-WK: tokens weighted over layers by what each layer adds, and within a text by how much they change."""

from __future__ import annotations

from typing import Any

#: Layers before and after a layer that are its context.
WINDOW = 2

#: Fewer layers leave a layer without context, and one cosine between neighbours has no variance.
LEAST = WINDOW + 1

#: Of the cosines, which are taken in float64.
_EPSILON = 2.0**-52

#: Added to the cosine of a layer with itself: far above rounding, far below what layers differ by.
_RIDGE = 1e-12


def sbert_wk(hidden: Any, mask: Any) -> Any:
    """One row for each text from all layers of its tokens, (b, layers, t, d) under a mask (b, t) -> (b, d).

    Wang and Kuo 2020, SBERT-WK: A sentence embedding method by dissecting BERT-based word models. A token's layers are
    averaged with the weights of `layer_weights`, then the tokens by the variance of the cosines between neighbouring
    layers. As in the published code a layer with fewer than WINDOW layers before it has only those after it as context.
    Other than there, all tokens that count do count, where it leaves out the last one, and tokens of a text in
    which none changes weigh the same, where it divides by zero.

    >>> import torch
    >>> layers = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]).reshape(1, 3, 1, 2)
    >>> sbert_wk(layers, torch.ones(1, 1)).shape
    torch.Size([1, 2])
    """
    rows = hidden.new_empty((len(hidden), hidden.shape[3]))
    for i, counted in enumerate(mask.bool()):  # a text at a time: all in float64 at once would be large
        layers = hidden[i][:, counted].double().transpose(0, 1)  # (t, layers, d)
        unit = layers / layers.norm(dim=2, keepdim=True)
        cosines = unit @ unit.transpose(1, 2)
        tokens = (layer_weights(cosines)[..., None] * layers).sum(1)
        rows[i] = token_weights(cosines) @ tokens
    return rows


def layer_weights(cosines: Any) -> Any:
    """Weights of each token's layers from the cosines between them, (t, layers, layers) -> (t, layers).

    Half of a weight is the layer's novelty, the share of its length outside the span of its context. The other half is
    the inverse of its alignment, the mean cosine of its context with what lies inside that span; each is scaled
    to a sum of one. The paper reads both off a QR factorization of context and layer: with K the cosines within the
    context and c those with the layer, the share inside is cᵀK⁻¹c.
    """
    import torch

    count = cosines.shape[1]
    novelty, alignment = torch.empty_like(cosines[:, 0]), torch.empty_like(cosines[:, 0])
    for k in range(count):
        context = [*range(k - WINDOW if k >= WINDOW else k, k), *range(k + 1, min(k + WINDOW + 1, count))]
        inner, outer = cosines[:, context][:, :, context], cosines[:, context, k]
        # Layers that repeat each other have no inverse; a trifle on the diagonal takes each of them alike.
        ridge = _RIDGE * torch.eye(len(context), dtype=inner.dtype, device=inner.device)
        shares = torch.linalg.solve(inner + ridge, outer)
        outside = 1.0 - (shares * (2.0 * outer - (inner @ shares[..., None])[..., 0])).sum(1)  # without the trifle
        outside = _or_zero(outside, 100 * _EPSILON).clamp(max=1.0)
        novelty[:, k] = outside.sqrt()
        # Divided by the size of context and layer, as in the published code; only edges, which have less, feel it.
        alignment[:, k] = (1.0 - outside).sqrt() / outer.mean(1) / (len(context) + 1)
    return (_shares(novelty) + _shares(alignment)) / 2


def token_weights(cosines: Any) -> Any:
    """Weights of a text's tokens from the cosines between the layers of each, (t, layers, layers) -> (t,)."""
    neighbours = cosines.diagonal(1, 1, 2)
    return _shares(_or_zero(neighbours.var(1, correction=0), (100 * _EPSILON) ** 2))


def _or_zero(values: Any, least: float) -> Any:
    return values.where(values > least, values.new_zeros(()))


def _shares(values: Any) -> Any:
    """Values over their sum, along the last dimension; equal shares where all are zero."""
    total = values.sum(-1, keepdim=True)
    return (values / total).where(total != 0, values.new_tensor(1 / values.shape[-1]))
