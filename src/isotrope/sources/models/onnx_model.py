"""A text model in an ONNX file, run by onnxruntime: its blocks' states where its graph tells them, else its outputs."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, IsotropeError
from isotrope.sources.models.environment import check_packages, silence_transformers
from isotrope.sources.models.load import Loaded
from isotrope.sources.models.onnx_layers import blocks
from isotrope.storage.files import check_regular
from isotrope.storage.provenance import describe_file

#: Ids of the trial that tells which values are states: two texts of a length that nothing else has.
_TRIAL = (2, 11)

Arrays = dict[str, NDArray[Any]]


def load_graph(model: str | Path, *, device: str = "auto", exact: bool = False, hooks: str | None = None) -> Loaded:
    """A text model from an ONNX file, with the tokenizer that lies beside it or in the folder above."""
    path = Path(model).expanduser()
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
    from isotrope.softdecay.restore import refuse_lost_layer

    for folder in (path.parent, path.parent.parent):
        refuse_lost_layer(folder, f"the ONNX file {path.name}")
    tokenizer = _tokenizer(path)
    try:
        network = _network(path, tokenizer.pad_token_id or 0)
    except IsotropeError:
        raise
    except Exception as error:  # a graph may be valid and yet anything at all: other types, shapes, names, operators
        raise InputError(
            f"the graph {str(path)!r} cannot be run as a text model ({_reason(error)}); "
            "encode with it yourself and scan the vectors."
        ) from error
    return Loaded(network, tokenizer, str(model), files=[describe_file(path)])


def _reason(error: Exception) -> str:
    """What a library says, on one line of a bearable length."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:300].rstrip(".")


def _tokenizer(path: Path) -> Any:
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


def _network(path: Path, pad: int) -> Any:
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
    states, what = _states(path, proto, types, pad)
    return _build_module(proto, _session(path, proto, states), types, states, what)


def _states(path: Path, proto: Any, types: dict[str, Any], pad: int) -> tuple[list[str], str]:
    """The names of the values that are hidden states, and what they are: of blocks, or where none is told outputs."""
    outputs = [value.name for value in proto.graph.output]
    ids = np.full(_TRIAL, pad, np.int64)
    fed = _build_inputs(ids, np.ones(_TRIAL, np.int64), types)
    for found in blocks(proto.graph):
        wanted = list(dict.fromkeys([*found.all, *outputs]))
        shapes = _shapes(_session(path, proto, wanted), fed, wanted)
        last = [[name for name in names if name in shapes][-1:] for names in (found.enter, *found.leave)]
        named = [name for names in last for name in names]
        widths = {shapes[name] for name in named}
        if len(named) == len(last) and len(widths) == 1:
            after = [name for name in outputs if shapes.get(name) in widths and name not in named]
            what = f"what goes into the first of {len(found.leave)} blocks and what leaves each, by its nodes' names"
            return [*named[:-1], (after or named)[-1]], what  # after the final norm, where there is one
    shapes = _shapes(_session(path, proto, outputs), fed, outputs)
    if not shapes:
        raise InputError(
            f"the graph {str(path)!r} gives no state with a row for each token (its outputs: {', '.join(outputs)}) and "
            "its nodes name no numbered blocks; encode with it yourself and scan the vectors."
        )
    named = [name for name in outputs if name in shapes]
    return named, f"its outputs ({', '.join(named)}) alone, for its nodes name no numbered blocks"


def _shapes(session: Any, fed: Arrays, names: list[str]) -> dict[str, int]:
    """The width of each value that has a row of floats for each token of the trial."""
    found = dict(zip(names, session.run(names, fed), strict=True))
    arrays = {name: value for name, value in found.items() if isinstance(value, np.ndarray)}  # not lists, nor maps
    rows = {name: value for name, value in arrays.items() if value.ndim == 3 and value.shape[:2] == _TRIAL}
    return {name: value.shape[2] for name, value in rows.items() if value.dtype.kind == "f"}


def _session(path: Path, proto: Any, names: list[str]) -> Any:
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
