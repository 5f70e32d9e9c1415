"""Text models in ONNX files, run by onnxruntime.

Their layers are what numbered blocks of the graph hand on, or the outputs where its nodes name no blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, IsotropeError, describe_error
from isotrope.sources.models.environment import check_packages, silence_transformers
from isotrope.storage.files import check_regular

#: A numbered part of a node's name, as in `/encoder/layer.3/output/Add`.
_NUMBERED = re.compile(r"[./](\d{1,6})(?=/)")

#: Ids of the trial that tells which values are states: two texts of a length that nothing else has.
_TRIAL = (2, 11)

Arrays = dict[str, NDArray[Any]]


def is_graph(model: Any) -> TypeGuard[str | Path]:
    """Whether a model is an ONNX file, by its name.

    >>> is_graph("model.onnx"), is_graph("bert-base-uncased"), is_graph(None)
    (True, False, False)
    """
    return isinstance(model, (str, Path)) and str(model).endswith(".onnx")


def check_has_weights(model: Any, what: str) -> None:
    """Raise for an ONNX file where a task needs the weights of a model."""
    if is_graph(model):
        raise InputError(f"{what} needs the weights, and {model} is an ONNX file; give the model's folder or hub id.")


def load_graph(path: Path, device: str, exact: bool, hooks: str | None) -> tuple[Any, Any]:
    """Load the model in an ONNX file, and the tokenizer in its folder or in the folder above."""
    check_regular(path)
    if not path.is_file():
        raise InputError(f"there is no ONNX file {str(path)!r}; check the path.")
    if exact or device not in ("auto", "cpu"):
        asked = "in float64" if exact else f"on {device}"
        raise InputError(f"an ONNX file is run as it is on the CPU, and not {asked}; leave that out.")
    if hooks is not None:
        raise InputError(f"an ONNX file has no modules that a hook could name ({hooks!r}); leave the hook out.")
    check_packages("models", "reading a model", "torch", "transformers")
    check_packages("onnx", "reading an ONNX file", "onnx", "onnxruntime")
    from isotrope.softdecay.restore import check_layer_kept

    for folder in (path.parent, path.parent.parent):
        check_layer_kept(folder, f"the ONNX file {path.name}")
    tokenizer = _load_tokenizer(path)
    try:
        return _load_network(path, tokenizer.pad_token_id or 0), tokenizer
    except IsotropeError:
        raise
    except Exception as error:  # a graph may be valid and yet anything at all: other types, shapes, names, operators
        raise InputError(
            f"the graph {str(path)!r} cannot be run as a text model ({_reason(error)}); "
            "encode with it yourself and scan the vectors."
        ) from error


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {describe_error(error)}"


def _load_tokenizer(path: Path) -> Any:
    from transformers import AutoTokenizer

    for folder in (path.parent, path.parent.parent):
        if any((folder / name).is_file() for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt")):
            with silence_transformers():
                try:
                    return AutoTokenizer.from_pretrained(folder)  # nosec B615  # a folder here
                except Exception as error:  # whatever the library and the files raise
                    raise InputError(f"the tokenizer in {str(folder)!r} cannot be read ({error}); check it.") from error
    raise InputError(
        f"there is no tokenizer beside {str(path)!r}, nor in the folder above; put the model's tokenizer.json there."
    )


def _load_network(path: Path, pad: int) -> Any:
    import onnx

    try:
        proto = onnx.load(path, load_external_data=False)
    except Exception as error:  # of protobuf
        raise InputError(f"{str(path)!r} is no ONNX file, or is damaged; check it.") from error
    inputs = {value.name: value.type.tensor_type.elem_type for value in proto.graph.input}
    inputs = {name: kind for name, kind in inputs.items() if name not in {w.name for w in proto.graph.initializer}}
    unknown = sorted(inputs.keys() - {"input_ids", "attention_mask", "token_type_ids", "position_ids"})
    if unknown or "input_ids" not in inputs:
        raise InputError(
            f"the graph {str(path)!r} reads {', '.join(inputs)}, expected input_ids of a text and what belongs to "
            "them; encode with it yourself and scan the vectors."
        )
    types = {name: onnx.helper.tensor_dtype_to_np_dtype(kind) for name, kind in inputs.items()}
    states, what = _find_states(path, proto, types, pad)
    return _build_module(proto, _open_session(path, proto, states), types, states, what)


def _find_states(path: Path, proto: Any, types: dict[str, Any], pad: int) -> tuple[list[str], str]:
    """The names of the values that are hidden states, and in words what they are: states of blocks, or outputs."""
    outputs = [value.name for value in proto.graph.output]
    ids = np.full(_TRIAL, pad, np.int64)
    trial = _build_inputs(ids, np.ones(_TRIAL, np.int64), types)
    for borders in find_blocks(proto.graph):
        wanted = list(dict.fromkeys([*chain.from_iterable(borders), *outputs]))
        widths = _find_widths(_open_session(path, proto, wanted), trial, wanted)
        named = [name for values in borders for name in [name for name in values if name in widths][-1:]]
        width = {widths[name] for name in named}
        if len(named) == len(borders) and len(width) == 1:
            after = [name for name in outputs if widths.get(name) in width and name not in named]
            what = f"what goes into the first of {len(borders) - 1} blocks and what leaves each, by its nodes' names"
            return [*named[:-1], (after or named)[-1]], what  # after the final norm, where there is one
    widths = _find_widths(_open_session(path, proto, outputs), trial, outputs)
    if not widths:
        raise InputError(
            f"the graph {str(path)!r} gives no state with a row for each token (its outputs: {', '.join(outputs)}) and "
            "its nodes name no numbered blocks; encode with it yourself and scan the vectors."
        )
    named = [name for name in outputs if name in widths]
    return named, f"its outputs ({', '.join(named)}) alone, for its nodes name no numbered blocks"


def _find_widths(session: Any, trial: Arrays, names: list[str]) -> dict[str, int]:
    """The width of each value that has a row of floats for each token of the trial."""
    found = dict(zip(names, session.run(names, trial), strict=True))
    arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}  # not lists, nor maps
    rows = {name: value for name, value in arrays.items() if value.ndim == 3 and value.shape[:2] == _TRIAL}
    return {name: value.shape[2] for name, value in rows.items() if value.dtype.kind == "f"}


def _open_session(path: Path, proto: Any, names: list[str]) -> Any:
    """The graph, made to give the values of these names too."""
    import onnx
    import onnxruntime
    import torch

    there = {value.name for value in proto.graph.output}
    more = onnx.ModelProto()
    more.CopyFrom(proto)
    more.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names if name not in there)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = torch.get_num_threads()
    options.log_severity_level = 3
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", str(path.parent))
    try:
        return onnxruntime.InferenceSession(more.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # whatever the runtime raises
        raise InputError(f"onnxruntime cannot run {str(path)!r} ({_reason(error)}); check the file.") from error


def _build_inputs(ids: NDArray[np.int64], mask: NDArray[np.int64], types: dict[str, Any]) -> Arrays:
    """What a graph reads of texts; places are counted from the first token that is not padding."""
    known = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": np.zeros_like(ids),
        "position_ids": np.maximum(mask.cumsum(axis=1) - 1, 0),
    }
    return {name: known[name].astype(kind, copy=False) for name, kind in types.items()}


def _build_module(proto: Any, session: Any, types: dict[str, Any], states: list[str], what: str) -> Any:
    """The session as a torch module that is called as models of transformers are."""
    import torch

    class OnnxModel(torch.nn.Module):  # type: ignore[misc]
        """Token ids to hidden states; the weights are the session's, and only their shapes are known here.

        layers_are: what the states are, in words.
        """

        dtype = torch.float32
        config = SimpleNamespace(is_encoder_decoder=False)
        layers_are = what

        def __init__(self) -> None:
            super().__init__()
            shapes = [tuple(weight.dims) for weight in proto.graph.initializer]
            self.weights = torch.nn.ParameterList(
                torch.nn.Parameter(torch.empty(shape, device="meta"), requires_grad=False) for shape in shapes
            )

        def forward(self, input_ids: Any, attention_mask: Any, **_: Any) -> Any:
            try:
                found = session.run(states, _build_inputs(input_ids.numpy(), attention_mask.numpy(), types))
            except Exception as error:  # whatever the runtime raises
                raise InputError(
                    f"onnxruntime cannot run the graph on {input_ids.shape[1]:,} tokens ({_reason(error)}); "
                    "give a smaller max_length."
                ) from error
            for name, state in zip(states, found, strict=True):
                if state.shape[:2] != tuple(input_ids.shape):
                    raise InputError(
                        f"the graph gives {name} the shape {state.shape} for {tuple(input_ids.shape)} tokens, "
                        "expected a row for each token; encode with it yourself and scan the vectors."
                    )
            return SimpleNamespace(hidden_states=[torch.from_numpy(state) for state in found])

    return OnnxModel().eval()


def find_blocks(graph: Any) -> Iterator[list[list[str]]]:
    """Each way to read the numbers in the names of a graph's nodes as blocks, that with the most blocks first.

    Args:
        graph: An `onnx.GraphProto`.

    Yields:
        Names of values: those that go into the first block, then those that leave each block.

    Examples:
        >>> from onnx import helper
        >>> nodes = [
        ...     helper.make_node("Gather", ["table", "ids"], ["x"], name="/embed/Gather"),
        ...     helper.make_node("Relu", ["x"], ["y"], name="/layer.0/Relu"),
        ...     helper.make_node("Relu", ["y"], ["z"], name="/layer.1/Relu"),
        ...     helper.make_node("Relu", ["z"], ["out"], name="/norm/Relu"),
        ... ]
        >>> list(find_blocks(helper.make_graph(nodes, "small", [], [])))
        [[['x'], ['y'], ['z']]]
    """
    numbers: dict[str, set[int]] = {}
    for node in graph.node:
        for stem, number in _find_numbers(node.name):
            numbers.setdefault(stem, set()).add(number)
    whole = [stem for stem, found in numbers.items() if found == set(range(len(found)))]
    for stem in sorted(whole, key=lambda stem: (-len(numbers[stem]), -len(stem))):
        yield _find_borders(graph, stem, len(numbers[stem]))


def _find_numbers(name: str) -> Iterator[tuple[str, int]]:
    """Each number in a node's name, with what comes before it."""
    for found in _NUMBERED.finditer(name):
        yield name[: found.start() + 1], int(found.group(1))


def _find_borders(graph: Any, stem: str, count: int) -> list[list[str]]:
    """The values that cross the borders of the blocks whose names begin with a stem."""
    inside = [dict(_find_numbers(node.name)).get(stem) for node in graph.node]
    made = {
        name: block
        for node, block in zip(graph.node, inside, strict=True)
        for name in node.output
        if node.op_type != "Constant"
    }
    uses = [(name, block) for node, block in zip(graph.node, inside, strict=True) for name in node.input]
    uses += [(value.name, None) for value in graph.output]
    borders: list[dict[str, None]] = [{} for _ in range(count + 1)]
    for name, block in uses:
        if name not in made or made[name] == block:
            continue
        maker = made[name]
        if maker is not None:
            borders[maker + 1][name] = None
        elif block == 0:
            borders[0][name] = None
    return [list(names) for names in borders]
