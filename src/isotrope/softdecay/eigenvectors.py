"""Eigenvectors of many small symmetric matrices: on a CPU one matrix to a thread.

LAPACK takes one matrix of a batch after another, and its threads within one wait for each other longer than they work:
two of them take twice as long as one for a matrix of 768 × 768.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from isotrope.compute.threads import limit_own_thread, open_shared_pool

Tensor: TypeAlias = torch.Tensor


def eigh(gram: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (b, s), ascending, and eigenvectors, as columns, (b, s, s), of symmetric matrices (b, s, s).

    Args:
        gram: the matrices.
        mask: (b, s), true where a row and its column take part; the others must be zeros. On a CPU they are left out.

    Examples:
        >>> gram = torch.diag(torch.tensor([4.0, 0.0, 1.0]))[None]
        >>> values, vectors = eigh(gram, torch.tensor([[True, False, True]]))
        >>> values.tolist()
        [[0.0, 1.0, 4.0]]
        >>> torch.equal(vectors @ torch.diag_embed(values) @ vectors.mT, gram)
        True
    """
    if gram.device.type != "cpu":
        return tuple(torch.linalg.eigh(gram))
    indices = [slice(None)] * len(gram) if mask is None or mask.all() else [row.nonzero()[:, 0] for row in mask]
    parts = [g[at][:, at] for g, at in zip(gram, indices, strict=True)]
    found = open_shared_pool(torch.get_num_threads()).map(_decompose, parts)
    values, vectors = gram.new_zeros(gram.shape[:2]), torch.zeros_like(gram)
    for i, (at, (some, columns)) in enumerate(zip(indices, found, strict=True)):
        first = gram.shape[1] - len(some)
        values[i, first:] = some
        vectors[i, at, first:] = columns
    return values, vectors


def _decompose(gram: Tensor) -> Any:
    """The eigenvectors of one matrix by one thread."""
    with limit_own_thread():
        return torch.linalg.eigh(gram)
