"""One row for each text: how its tokens, and layers, become a sentence vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from isotrope.errors import InputError

#: Pooling of hidden states (b, t, d) under a mask (b, t) of the tokens that count -> (b, d).
Pool = Callable[[Any, Any], Any]

#: Names that stand for a pooling and its layers; those of SBERT-WK are its authors'.
_MIXES = {"first+last": "mean:1+-1", "first-last": "mean:1+-1", "sbert-wk": "sbert-wk:4..-1"}

#: Layers before and after a layer that SBERT-WK takes as its context.
_WINDOW = 2

#: Fewer layers leave a layer without context, and one cosine between neighbours has no variance.
_LEAST_LAYERS = _WINDOW + 1

#: Of the cosines, which are taken in float64.
_EPSILON = 2.0**-52

#: Added to the cosine of a layer with itself: far above rounding, far below what layers differ by.
_RIDGE = 1e-12


def mean(hidden: Any, mask: Any) -> Any:
    """Average of the tokens that count."""
    counted = mask.bool()[..., None]
    return hidden.masked_fill(~counted, 0.0).sum(1) / counted.sum(1)


def cls(hidden: Any, mask: Any) -> Any:
    """The first token that counts."""
    return _at(hidden, mask.int().argmax(1))


def last(hidden: Any, mask: Any) -> Any:
    """The last token that counts."""
    return _at(hidden, mask.shape[1] - 1 - mask.int().flip(1).argmax(1))


def maximum(hidden: Any, mask: Any) -> Any:
    """The largest value of each coordinate over the tokens that count."""
    return hidden.masked_fill(~mask.bool()[..., None], float("-inf")).amax(1)


def by_position(hidden: Any, mask: Any) -> Any:
    """Average of the tokens that count, the first once, the second twice and so on (Muennighoff 2022, SGPT)."""
    return compute_weighted_mean(hidden, mask.int().cumsum(1) * mask)


def compute_weighted_mean(hidden: Any, weights: Any) -> Any:
    """Average of tokens by their weights (b, t), zero where they do not count."""
    import torch

    counted = hidden.masked_fill((weights == 0)[..., None], 0.0)
    weights = weights.to(hidden.dtype)
    return torch.einsum("btd,bt->bd", counted, weights) / weights.sum(1, keepdim=True)


def _at(hidden: Any, index: Any) -> Any:
    return hidden.gather(1, index[:, None, None].expand(-1, 1, hidden.shape[2]))[:, 0]


def sbert_wk(hidden: Any, mask: Any) -> Any:
    """One row for each text from all layers of its tokens, (b, layers, t, d) under a mask (b, t) -> (b, d).

    A token's layers are averaged by what each layer adds, then the tokens by the variance of the cosines between
    neighbouring layers. As in the published code, a layer with fewer than two layers before it has only those after it
    as context. Unlike there, the last token counts too, and tokens of a text in which none changes weigh the same
    instead of a division by zero.

    References:
        Wang and Kuo 2020, SBERT-WK: A sentence embedding method by dissecting BERT-based word models.

    Examples:
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
        tokens = (_weigh_layers(cosines)[..., None] * layers).sum(1)
        rows[i] = _weigh_tokens(cosines) @ tokens
    return rows


def _weigh_layers(cosines: Any) -> Any:
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
        context = [*range(k - _WINDOW if k >= _WINDOW else k, k), *range(k + 1, min(k + _WINDOW + 1, count))]
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


def _weigh_tokens(cosines: Any) -> Any:
    """Weights of a text's tokens from the cosines between the layers of each, (t, layers, layers) -> (t,)."""
    neighbours = cosines.diagonal(1, 1, 2)
    return _shares(_or_zero(neighbours.var(1, correction=0), (100 * _EPSILON) ** 2))


def _or_zero(values: Any, least: float) -> Any:
    return values.where(values > least, values.new_zeros(()))


def _shares(values: Any) -> Any:
    """Values over their sum, along the last dimension; equal shares where all are zero."""
    total = values.sum(-1, keepdim=True)
    return (values / total).where(total != 0, values.new_tensor(1 / values.shape[-1]))


#: Poolings that see layers one by one, hidden states (b, layers, t, d) and a mask (b, t) -> (b, d), and the fewest.
ACROSS_LAYERS: dict[str, tuple[Pool, int]] = {"sbert-wk": (sbert_wk, _LEAST_LAYERS)}

POOLINGS: dict[str, Pool] = {
    "mean": mean,
    "cls": cls,
    "last": last,
    "max": maximum,
    "weightedmean": by_position,
}


@dataclass(frozen=True, slots=True)
class Pooling:
    """A pooling over tokens, and the layers to average first; None for each layer on its own.

    least: 0, or for a pooling that sees the layers one by one instead of their average how few are enough.
    """

    name: str
    pool: Pool
    layers: str | None
    least: int = 0


def parse(text: str) -> Pooling:
    """The pooling that a name stands for.

    `mean`, `cls`, `last`, `max`, `weightedmean`, `first+last`, `sbert-wk`, or with layers `mean:1+-1`,
    `sbert-wk:0..-1`.

    >>> parse("first+last").layers
    '1+-1'
    """
    name, _, layers = _MIXES.get(text, text).partition(":")
    if name in ACROSS_LAYERS and layers:
        pool, least = ACROSS_LAYERS[name]
        return Pooling(text, pool, layers, least)
    if name not in POOLINGS:
        known = ", ".join([*POOLINGS, *_MIXES, "mean:1+-1 (any layers)"])
        raise InputError(f"there is no pooling {text!r}; known: {known}.")
    return Pooling(text, POOLINGS[name], layers or None)
