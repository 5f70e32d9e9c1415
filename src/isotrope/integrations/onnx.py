"""A repair as an ONNX file, for any runtime that reads one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import MissingExtra
from isotrope.integrations.linear_map import check_new_file, compute_shift_weight_offset, find_divisions, resolve_affine
from isotrope.repairs import Affine, Repair
from isotrope.storage.files import write_atomically
from isotrope.version import __version__

#: What the file asks of a runtime: operators as of ONNX 1.12, in the file format of the same release.
OPSET, IR_VERSION = 17, 8


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


def write_onnx(repair: Repair | Affine, path: str | Path, *, overwrite: bool = False) -> None:
    """Write the map as an ONNX file, at once or not at all."""
    check_new_file(path, overwrite)
    data = to_onnx(repair).SerializeToString()
    write_atomically(Path(path).absolute(), lambda beside: beside.write_bytes(data))


def _import_onnx() -> Any:
    try:
        import onnx
    except ImportError:
        raise MissingExtra("onnx", "onnx", "writing an ONNX file") from None
    return onnx
