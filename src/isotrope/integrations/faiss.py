"""A repair in front of a faiss index: raw rows and raw queries go in, repaired ones are stored and searched."""

from __future__ import annotations

from typing import Any

from isotrope.errors import InputError, MissingExtra
from isotrope.integrations.linear_map import compute_weight_and_bias, find_divisions
from isotrope.repairs import Affine, Repair


def linear_transform(repair: Repair | Affine) -> Any:
    """The map as a `faiss.LinearTransform`, which faiss writes, reads and applies by itself.

    >>> import numpy as np
    >>> linear_transform(Affine([1.0, 0.0], [[2.0], [3.0]])).apply(np.array([[3.0, 1.0]], np.float32)).tolist()
    [[7.0]]
    """
    faiss = _import_faiss()
    weight, bias = compute_weight_and_bias(repair)
    columns, width = weight.shape
    transform = faiss.LinearTransform(width, columns, True)
    faiss.copy_array_to_vector(weight.ravel(), transform.A)
    faiss.copy_array_to_vector(bias, transform.b)
    transform.is_trained = True
    transform.set_is_orthonormal()  # whether it is decides how faiss brings rows back
    return transform


def in_front_of(index: Any, repair: Repair | Affine) -> Any:
    """A `faiss.IndexPreTransform` that repairs whatever is added to, or searched in, an index of repaired rows.

    index: of as many columns as the repair gives, empty, or holding rows repaired already; it is used, not copied.
    A repair that divides rows by their length does so here too: an index by inner product then finds by cosine.

    >>> import faiss
    >>> import numpy as np
    >>> index = in_front_of(faiss.IndexFlatIP(1), Affine([1.0, 0.0], [[2.0], [3.0]]))
    >>> index.add(np.array([[3.0, 1.0], [1.0, 0.0]], np.float32))
    >>> index.search(np.array([[2.0, 0.0]], np.float32), 1)[0].tolist()
    [[14.0]]
    """
    faiss = _import_faiss()
    if not isinstance(index, faiss.Index):
        raise InputError(f"got a {type(index).__name__}, expected a faiss index of float vectors.")
    transform = linear_transform(repair)
    if index.d != transform.d_out:
        raise InputError(
            f"the index holds rows of width {index.d}, the repair gives {transform.d_out}; expected the same."
        )
    before, after = find_divisions(repair)
    chain = [transform]
    if before:
        chain.insert(0, faiss.NormalizationTransform(transform.d_in))
    if after:
        chain.append(faiss.NormalizationTransform(transform.d_out))
    whole = faiss.IndexPreTransform(chain.pop(), index)
    for step in reversed(chain):
        whole.prepend_transform(step)
        whole.referenced_objects.append(step)  # the index holds no reference of its own
    return whole


def to_faiss_file(repair: Repair | Affine) -> bytes:
    """The `LinearTransform` as the bytes of a file for `faiss.read_VectorTransform`."""
    faiss = _import_faiss()
    writer = faiss.VectorIOWriter()
    faiss.write_VectorTransform(linear_transform(repair), writer)
    return bytes(faiss.vector_to_array(writer.data).tobytes())


def _import_faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise MissingExtra("faiss-cpu", "quantize", "a repair in front of a faiss index") from None
    return faiss
