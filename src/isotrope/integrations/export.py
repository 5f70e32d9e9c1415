"""One way to write a repair for any other library."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.errors import InputError
from isotrope.integrations.faiss import write_transform
from isotrope.integrations.linear_map import check_new_file, compute_weight_and_bias, resolve_affine, warn_about_lengths
from isotrope.integrations.onnx import OPSET, write_onnx
from isotrope.registry import Registry
from isotrope.repairs import Affine, Repair
from isotrope.storage.files import write_arrays, write_atomically


@dataclass(frozen=True)
class Kind:
    """What is written, how to read it without isotrope, and who writes it; of_model: into a model's saved folder."""

    what: str
    read: str
    write: Callable[..., None]
    of_model: bool = False


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
    if found.of_model and model is None:
        raise InputError(f"{kind!r} folds a repair into a model; say which: a name, a folder or a loaded model.")
    if not found.of_model and (model is not None or options):
        raise InputError(f"{kind!r} takes no model and no options of one; leave them out.")
    if found.of_model:
        options["model"] = model
    found.write(repair, path, overwrite=overwrite, **options)


def write_numpy(repair: Repair | Affine, path: str | Path, *, overwrite: bool = False) -> None:
    """Write shift (d,), weight (d, k) and offset (k,), float64, as an npz file: x -> (x − shift) @ weight + offset."""
    check_new_file(path, overwrite)
    warn_about_lengths(repair, "numpy")
    arrays = resolve_affine(repair).arrays()

    def write(beside: Path) -> None:
        with beside.open("wb") as file:  # savez would add an ending to a name
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's own argument allow_pickle is a bool

    write_atomically(Path(path).absolute(), write)


def write_torch(repair: Repair | Affine, path: str | Path, *, overwrite: bool = False) -> None:
    """Write weight (k, d) and bias (k,), float32, as safetensors: the state of a torch `Linear(d, k)`."""
    check_new_file(path, overwrite)
    warn_about_lengths(repair, "torch")
    weight, bias = compute_weight_and_bias(repair)
    write_arrays(Path(path).absolute(), {"weight": weight, "bias": bias})


def _fold(repair: Repair | Affine, path: str | Path, *, model: Any, **options: Any) -> None:
    from isotrope.integrations.sentence_transformers import fold  # imports torch

    fold(model, repair, path, **options)


KINDS.add("numpy", Kind("arrays in float64, npz", "numpy.load(path)", write_numpy))
KINDS.add("torch", Kind("state of a Linear, safetensors", "safetensors.torch.load_file(path)", write_torch))
KINDS.add("onnx", Kind(f"ONNX, opset {OPSET}", "onnxruntime.InferenceSession(path)", write_onnx))
KINDS.add("faiss", Kind("a LinearTransform", "faiss.read_VectorTransform(path)", write_transform))
KINDS.add(
    "sentence-transformers",
    Kind("a saved model with a Dense", "sentence_transformers.SentenceTransformer(path)", _fold, of_model=True),
)
