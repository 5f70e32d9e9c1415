"""SoftDecay of token matrices inside a model: U f(Σ) Vᵀ with an exact gradient that is finite for every spectrum.

The gradient of a singular value decomposition divides by differences of singular values. This one does not: it holds
for repeated, nearly repeated and zero singular values. All is done on the smaller of the two Gram matrices, X Xᵀ and
XᵀX, formed and decomposed in float64: squares of float32 lose what is weaker than 3e-4 of the strongest direction. Only
the form "paper" takes its directions from an SVD: it lifts what is weak by 1/σ and must tell it from what is zero.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import torch

from isotrope.compute.threads import limit_own_thread, open_shared_pool
from isotrope.errors import InputError
from isotrope.softdecay.derivatives import (
    check_values,
    compute_gains,
    compute_slopes,
    compute_sum_ratios,
    decay_values,
    derive_by_a,
)
from isotrope.softdecay.formula import check_alpha

Tensor: TypeAlias = torch.Tensor

_EPS = float(torch.finfo(torch.float64).eps)

#: Largest singular values that are this close, relatively, count as one: their squares do not tell directions apart.
_TIED = 1e-9


def soft_decay(x: Tensor, alpha: Tensor | float, form: str = "shifted", mask: Tensor | None = None) -> Tensor:
    """Each sequence's token matrix with its singular values bent by f and its largest one kept, (b, t, d) or (t, d).

    A matrix of zeros or of one row stays as it is. Where the largest singular values are equal, the gradient is their
    average.

    Args:
        x: hidden states, (b, t, d) or (t, d).
        alpha: how strongly, a number, or a tensor that gets a gradient.
        form: "shifted", "clipped" or "paper".
        mask: (b, t), true or 1 where there is a token; other rows take no part, whatever they hold, and come out as
            zeros.

    References:
        Yan et al. 2022.

    Examples:
        >>> x = torch.diag(torch.tensor([8.0, 4.0, 1.0]))
        >>> [round(v, 3) for v in soft_decay(x, -0.5).diag().tolist()]
        [8.0, 5.631, 2.214]
    """
    if not x.is_floating_point() or x.ndim not in (2, 3):
        raise InputError(f"expected hidden states of shape (b, t, d), got {tuple(x.shape)} of type {x.dtype}.")
    if x.numel() == 0:
        return x
    if x.device.type == "mps":  # which has no float64
        out = soft_decay(x.cpu(), torch.as_tensor(alpha).cpu(), form, None if mask is None else mask.cpu())
        return out.to(x.device)
    a = -torch.as_tensor(alpha, dtype=torch.float64, device=x.device).reshape(())
    batch = x if x.ndim == 3 else x[None]
    if mask is not None:
        if mask.shape != x.shape[:-1]:
            raise InputError(f"the mask has shape {tuple(mask.shape)}, expected {tuple(x.shape[:-1])}.")
        mask = mask.to(device=x.device, dtype=torch.bool).reshape(batch.shape[:2])
    with torch.autocast(x.device.type, enabled=False):
        out, _ = _forward(batch, a, form, mask)
    return out if x.ndim == 3 else out[0]


def _bend(x: Tensor, a: Tensor, form: str, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    """The bent matrices, (b, t, d), and eigenvectors of the smaller Gram matrices, (b, s, s), s = min(t, d)."""
    check_alpha(-float(a), form)
    wide = _widen(x, mask)
    gram = wide @ wide.mT
    _check_finite(gram, x)
    if form == "paper":
        vectors = torch.linalg.svd(wide, full_matrices=False).U.flip(-1)
    else:
        squares, vectors = eigh(gram, mask if x.shape[1] <= x.shape[2] else None)
    if form == "shifted":
        # Its gains are bounded, so that a product with the whole matrix of gains, in float32, loses nothing.
        h = _scale_to_top(compute_gains(squares.clamp(min=0).sqrt(), a, form, 0.0))
        whole = (vectors * h[:, None, :]) @ vectors.mT
        out = whole.to(find_work_type(x)) @ _orient(_mask_rows(x, mask)).to(find_work_type(x))
    else:
        y, values = _project(vectors, wide)
        tolerance = _compute_tolerance(x, mask)
        check_values(values, a, form, tolerance)
        out = vectors @ (_scale_to_top(compute_gains(values, a, form, tolerance))[..., None] * y)
    _check_overflow(out, x)
    return _narrow(out, x, mask), vectors


def _bend_backward(
    grad: Tensor, x: Tensor, a: Tensor, form: str, mask: Tensor | None, vectors: Tensor
) -> tuple[Tensor, Tensor]:
    """The gradients with respect to x, (b, t, d), and to a, ()."""
    y, values = _project(vectors, _widen(x, mask))
    tolerance = _compute_tolerance(x, mask)
    f, h = decay_values(values, a, form, tolerance), compute_gains(values, a, form, tolerance)
    top, where_top = values.max(-1, keepdim=True)
    f1, h1 = f.gather(-1, where_top), h.gather(-1, where_top)
    scale = torch.where(h1 > 0, 1 / h1, 0.0)  # K = σ₁/f₁

    work = find_work_type(x)  # large products from here on: nothing is squared any more
    u, v = vectors.to(work), y.mul_(torch.where(values > 0, 1 / values, 0.0)[..., None]).to(work)
    upstream = _orient(_mask_rows(grad, mask)).to(work)
    inner = u.mT @ (upstream @ v.mT)  # Uᵀ G V
    along = inner.diagonal(dim1=-2, dim2=-1).double()
    total = (along * f).sum(-1, keepdim=True)  # ⟨G, U f Vᵀ⟩

    few, gain = values.to(work), (scale * h).to(work)[..., None]
    by_difference = scale.to(work)[..., None] * compute_slopes(few, a.to(work), form, tolerance)
    by_sum = scale.to(work)[..., None] * compute_sum_ratios(few, f.to(work), h.to(work))
    turned = inner * ((by_difference + by_sum) / 2 - gain) + inner.mT * ((by_difference - by_sum) / 2)
    tied = values >= top * (1 - _TIED)
    slope1 = compute_slopes(top, a, form, 0.0)[..., 0]
    kept_top = torch.where(f1 > 0, total / f1 * (1 - slope1 * scale), 0.0)
    turned.diagonal(dim1=-2, dim2=-1).add_((kept_top * tied / tied.sum(-1, keepdim=True)).to(work))
    grad_x = torch.baddbmm((u @ (gain * u.mT)) @ upstream, u @ turned, v)

    moved = derive_by_a(values, f, a, form, tolerance)
    kept_top = torch.where(f1 > 0, total / f1 * moved.gather(-1, where_top), 0.0)
    grad_a = scale * ((along * moved).sum(-1, keepdim=True) - kept_top)
    return _narrow(grad_x, x, mask), grad_a.sum()


def _infer_shapes(x: Tensor, a: Tensor, form: str, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    side = min(x.shape[1], x.shape[2])
    return x.new_empty(x.shape), x.new_empty((x.shape[0], side, side), dtype=torch.float64)


def _infer_shapes_backward(
    grad: Tensor, x: Tensor, a: Tensor, form: str, mask: Tensor | None, vectors: Tensor
) -> tuple[Tensor, Tensor]:
    return x.new_empty(x.shape), a.new_empty(())


def _save_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    x, a, ctx.form, mask = inputs
    ctx.save_for_backward(x, a, mask, output[1])


def _gradient(ctx: Any, grad: Tensor, _: Any) -> tuple[Tensor, Tensor, None, None]:
    x, a, mask, vectors = ctx.saved_tensors
    return (*_backward(grad, x, a, ctx.form, mask, vectors), None, None)


def _raise_for_second_derivative(ctx: Any, *_: Any) -> None:
    raise InputError("SoftDecay has a first derivative only; leave create_graph out, or detach its gradient.")


# Operators of their own, opaque to torch.compile: what they do depends on the lengths of the sequences.
_forward = torch.library.custom_op("isotrope::soft_decay", _bend, mutates_args=())
_forward.register_fake(_infer_shapes)
_forward.register_autograd(_gradient, setup_context=_save_context)
_backward = torch.library.custom_op("isotrope::soft_decay_backward", _bend_backward, mutates_args=())
_backward.register_fake(_infer_shapes_backward)
_backward.register_autograd(_raise_for_second_derivative)


def eigh(gram: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Eigenvalues (b, s), ascending, and eigenvectors, as columns, (b, s, s), of symmetric matrices (b, s, s).

    On a CPU each matrix has a thread of its own: threads of LAPACK within one matrix wait for each other longer than
    they work; two of them take twice as long as one for a matrix of 768 × 768.

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
    for i, (at, (part, columns)) in enumerate(zip(indices, found, strict=True)):
        first = gram.shape[1] - len(part)
        values[i, first:] = part
        vectors[i, at, first:] = columns
    return values, vectors


def _decompose(gram: Tensor) -> Any:
    """The eigenvectors of one matrix by one thread."""
    with limit_own_thread():
        return torch.linalg.eigh(gram)


def _orient(x: Tensor) -> Tensor:
    """x with its smaller side first: the bent transpose is the transpose of what is bent."""
    return x if x.shape[1] <= x.shape[2] else x.mT


def _widen(x: Tensor, mask: Tensor | None) -> Tensor:
    """x in float64, smaller side first, with zeros for the rows that are no tokens."""
    return _orient(_mask_rows(x, mask)).double()


def _mask_rows(x: Tensor, mask: Tensor | None) -> Tensor:
    """x with zeros for the rows that are no tokens, whatever they held."""
    return x if mask is None else torch.where(mask[..., None], x, 0.0)


def find_work_type(x: Tensor) -> Any:
    """The type of products that need no more digits than x has; at least float32."""
    return torch.promote_types(x.dtype, torch.float32)


def _narrow(wide: Tensor, x: Tensor, mask: Tensor | None) -> Tensor:
    """A result of the shape, the type and the mask of x."""
    return _mask_rows((wide if x.shape[1] <= x.shape[2] else wide.mT).to(x.dtype), mask).contiguous()


def _project(vectors: Tensor, wide: Tensor) -> tuple[Tensor, Tensor]:
    """UᵀX = ΣVᵀ, (b, s, m), and its rows' lengths: singular values, with twice the digits that squares have."""
    y = vectors.mT @ wide
    return y, torch.linalg.vector_norm(y, dim=-1)


def _scale_to_top(h: Tensor) -> Tensor:
    """Gains such that the strongest direction, the last one, is kept."""
    return torch.where(h[..., -1:] > 0, h / h[..., -1:], h)


def _compute_tolerance(x: Tensor, mask: Tensor | None) -> Tensor | float:
    """Below this share of the largest singular value is rounding: by the tokens of each sequence, not its padding."""
    if mask is None:
        return max(x.shape[1:]) * _EPS
    return mask.sum(-1, keepdim=True).clamp(min=x.shape[2]).double() * _EPS


def _check_overflow(out: Tensor, x: Tensor) -> None:
    """Of values only: a gradient that overflows is for the loss scaler of half-precision training to see."""
    if x.dtype == torch.float16 and float(out.abs().max()) > torch.finfo(torch.float16).max:
        raise InputError(
            f"SoftDecay gives values up to {float(out.abs().max()):.3g}, float16 holds 65504; "
            "use bfloat16 or float32, or scale the hidden states down."
        )


def _check_finite(gram: Tensor, x: Tensor) -> None:
    if not torch.isfinite(gram.diagonal(dim1=-2, dim2=-1)).all():
        raise InputError(
            f"the hidden states, of type {str(x.dtype).removeprefix('torch.')}, hold NaN or infinity in rows that are "
            "no padding; lower the learning rate, or use bfloat16 or float32 where float16 overflows."
        )
