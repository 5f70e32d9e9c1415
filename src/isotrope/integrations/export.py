"""Writing a linear repair as a file that another library reads."""

from __future__ import annotations

import io
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError, MissingExtra, StoreError
from isotrope.integrations.faiss import to_faiss_file
from isotrope.integrations.linear_map import (
    compute_shift_weight_offset,
    compute_weight_and_bias,
    find_divisions,
    resolve_affine,
)
from isotrope.registry import Registry
from isotrope.repairs import Affine, Repair
from isotrope.storage.files import write_atomically
from isotrope.version import __version__

#: What an ONNX file asks of a runtime: operators as of ONNX 1.12, in the file format of the same release.
OPSET, IR_VERSION = 17, 8


@dataclass(frozen=True)
class Kind:
    """What is written, how to read it without isotrope, and the bytes of the file.

    to_bytes: None where the repair is folded into the saved folder of a model. divides: whether the file divides rows
    by their length itself, where the repair does so.
    """

    what: str
    read: str
    to_bytes: Callable[[Repair | Affine], bytes] | None = None
    divides: bool = False

    @property
    def of_model(self) -> bool:
        """Whether a repair is folded into the saved folder of a model."""
        return self.to_bytes is None


KINDS = Registry[Kind]("kind of export")


def export(
    repair: Repair | Affine, kind: str, path: str | Path, *, model: Any = None, overwrite: bool = False, **options: Any
) -> None:
    """Write a linear repair for another library, which needs no isotrope to apply it.

    Args:
        repair: a fitted linear repair.
        kind: one of `KINDS`.
        path: of the file, or of the folder of a sentence-transformers model.
        model: which model to fold the repair into; other kinds take none.
        overwrite: whether what is there may be replaced.
        options: those of `sentence_transformers.fold`, with a model alone.

    Examples:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export(Affine([1.0, 0.0], [[2.0], [3.0]]), "numpy", f"{folder}/repair.npz")
        ...     sorted(np.load(f"{folder}/repair.npz"))
        ['offset', 'shift', 'weight']
    """
    found = KINDS.get(kind)
    if found.to_bytes is None:
        if model is None:
            raise InputError(f"{kind!r} folds a repair into a model; say which: a name, a folder or a loaded model.")
        from isotrope.integrations.sentence_transformers import fold  # imports torch

        fold(model, repair, path, overwrite=overwrite, **options)
        return
    if model is not None or options:
        raise InputError(f"{kind!r} takes no model and no options of one; leave them out.")
    _check_new_file(path, overwrite)
    if not found.divides:
        _warn_about_lengths(repair, kind)
    data = found.to_bytes(repair)
    write_atomically(Path(path).absolute(), lambda temporary: temporary.write_bytes(data))


def _check_new_file(path: str | Path, overwrite: bool) -> None:
    """Check that there is no file of this name yet, or that it may be replaced."""
    if Path(path).exists() and not overwrite:
        raise StoreError(f"{str(path)!r} is there already; choose another name, or say overwrite=True.")
    if Path(path).is_dir():
        raise StoreError(f"{str(path)!r} is a folder; give the name of a file.")


def _warn_about_lengths(repair: Repair | Affine, kind: str) -> None:
    """Warn where a file of this kind holds the linear map of a repair that also divides rows by their length."""
    places = [word for word, there in zip(("before", "after"), find_divisions(repair), strict=True) if there]
    if places:
        warnings.warn(
            f"the export {kind!r} holds the linear map alone; divide rows by their length {' and '.join(places)} it, "
            "as transform does, or use the export 'onnx', which does so itself",
            stacklevel=3,
        )


def _to_npz(repair: Repair | Affine) -> bytes:
    """Shift (d,), weight (d, k) and offset (k,), float64, as an npz file: x -> (x − shift) @ weight + offset."""
    file = io.BytesIO()
    np.savez(file, **resolve_affine(repair).arrays())  # type: ignore[arg-type]  # numpy's own argument is a bool
    return file.getvalue()


def _to_safetensors(repair: Repair | Affine) -> bytes:
    """Weight (k, d) and bias (k,), float32, as safetensors: the state of a torch `Linear(d, k)`."""
    from safetensors.numpy import save

    weight, bias = compute_weight_and_bias(repair)
    return bytes(save({"weight": weight, "bias": bias}))


def _to_onnx_file(repair: Repair | Affine) -> bytes:
    """An ONNX file, for any runtime that reads one."""
    return bytes(to_onnx(repair).SerializeToString())


def to_onnx(repair: Repair | Affine) -> Any:
    """The map as a checked `onnx.ModelProto`: "rows", (n, d) float32, to "repaired", (n, k) float32, for any n.

    The shift is taken away before the product and not folded into a bias: beside a mean far larger than the spread,
    float32 would lose digits. Rows are divided by their length where the repair does so.

    >>> model = to_onnx(Affine([1.0, 0.0], [[2.0], [3.0]]))
    >>> [node.op_type for node in model.graph.node]
    ['Sub', 'Gemm']
    """
    onnx = _import_onnx()
    affine = resolve_affine(repair)
    arrays = dict(zip(("shift", "weight", "offset"), compute_shift_weight_offset(repair), strict=True))
    number = onnx.TensorProto.FLOAT
    before, after = find_divisions(repair)
    nodes = _build_division(onnx, "rows", "unit_rows") if before else []
    nodes.append(onnx.helper.make_node("Sub", ["unit_rows" if before else "rows", "shift"], ["moved"]))
    nodes.append(onnx.helper.make_node("Gemm", ["moved", "weight", "offset"], ["image" if after else "repaired"]))
    nodes += _build_division(onnx, "image", "repaired") if after else []
    if before or after:
        arrays["tiny"] = np.array(np.finfo(np.float32).tiny)
    graph = onnx.helper.make_graph(
        nodes,
        "repair",
        [onnx.helper.make_tensor_value_info("rows", number, ["n", affine.width])],
        [onnx.helper.make_tensor_value_info("repaired", number, ["n", affine.columns])],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
        doc_string="repaired = (rows - shift) weight + offset",
    )
    model = onnx.helper.make_model(
        graph,
        opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="isotrope",
        producer_version=__version__,
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _build_division(onnx: Any, rows: str, name: str) -> list[Any]:
    """Rows divided by their length; rows of zeros stay zeros."""
    make = onnx.helper.make_node
    return [
        make("ReduceL2", [rows], [f"{name}_length"], axes=[1], keepdims=1),
        make("Max", [f"{name}_length", "tiny"], [f"{name}_divisor"]),
        make("Div", [rows, f"{name}_divisor"], [name]),
    ]


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise MissingExtra("onnx", "onnx", "writing an ONNX file") from None
    return onnx


KINDS.add("numpy", Kind("arrays in float64, npz", "numpy.load(path)", _to_npz))
KINDS.add("torch", Kind("state of a Linear, safetensors", "safetensors.torch.load_file(path)", _to_safetensors))
KINDS.add("onnx", Kind(f"ONNX, opset {OPSET}", "onnxruntime.InferenceSession(path)", _to_onnx_file, divides=True))
KINDS.add("faiss", Kind("a LinearTransform", "faiss.read_VectorTransform(path)", to_faiss_file))
KINDS.add(
    "sentence-transformers", Kind("a saved model with a Dense", "sentence_transformers.SentenceTransformer(path)")
)
