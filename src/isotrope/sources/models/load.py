"""Loading any Hugging Face model: from the hub, a local folder, a GGUF file, or the embedded default."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from isotrope.sources.models.environment import check_packages, resolve_device, silence_transformers
from isotrope.sources.models.location import Location, find_commit, locate
from isotrope.sources.models.modality import find_modalities, find_tower, resolve_modality
from isotrope.sources.models.model_files import (
    check_config,
    check_tokenizer,
    check_weights,
    dequantize_options,
    explain,
    forget_packing,
)
from isotrope.sources.models.onnx import is_graph, load_graph
from isotrope.storage.provenance import describe_file

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.gguf")


@dataclass(frozen=True)
class Loaded:
    """A model that is ready to run, with its tokenizer or processor and its provenance.

    Attributes:
        model: The torch module or ONNX session.
        tokenizer: Tokenizer of a text model.
        name: Hub id or path.
        revision: Revision of a hub model.
        device: Where the model runs.
        files: Names and checksums of the files that were loaded.
        modality: What the model reads: "text", "image" or "audio".
        processor: Processor of images or sounds; for a plain torch module, a function from an image to a tensor.
        hooks: Names of the modules whose outputs are the layers; None where the model returns its hidden states.
    """

    model: Any
    tokenizer: Any
    name: str
    revision: str | None = None
    device: str = "cpu"
    files: list[dict[str, Any]] = field(default_factory=list)
    modality: str = "text"
    processor: Any = None
    hooks: str | None = None

    @property
    def encoder_decoder(self) -> bool:
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def config(self) -> Any:
        """The model's config, None for a plain torch module."""
        return getattr(self.model, "config", None)

    @property
    def softdecay(self) -> dict[str, Any] | None:
        """The α, form and place of the SoftDecay layer inside the model; None where it has none."""
        from isotrope.softdecay.attach import describe_layer

        return describe_layer(self.model)

    def describe(self) -> dict[str, Any]:
        """Return plain data for provenance that every source of this model reports."""
        return {
            "kind": "model",
            "modality": self.modality,
            "model": self.name,
            "revision": self.revision,
            "class": type(self.model).__name__,
            "softdecay": self.softdecay,
            "parameters": sum(p.numel() for p in self.model.parameters()),
            "device": self.device,
            "files": self.files,
        }

    @property
    def pad(self) -> int:
        """The id that fills up short texts; any id will do where the model has none, because of the mask."""
        for pad in (self.tokenizer.pad_token_id, getattr(self.config, "pad_token_id", None)):
            if isinstance(pad, int) and pad >= 0:
                return pad
        return 0


def load(
    model: str | Path | Loaded | None = None,
    *,
    revision: str | None = None,
    gguf_file: str | None = None,
    device: str = "auto",
    exact: bool = False,
    trust_remote_code: bool = False,
    modality: str | None = "text",
    hooks: str | None = None,
) -> Loaded:
    """Load a model and its tokenizer or processor, in float64 where `exact`, otherwise in float32 on the CPU.

    The model's own head is left away. A SoftDecay layer that was saved with the model is restored.

    Args:
        model: Hub id, local folder, GGUF or ONNX file; None for the embedded default; a loaded one stays as it is.
        revision: Of a model on the hub.
        gguf_file: The file of a folder or a hub model that has several.
        device: "auto", "cpu", "cuda", "mps" or another name that torch knows.
        exact: Whether to compute in float64.
        trust_remote_code: Whether the model may run code of its own.
        modality: What it is to read; None for what its class says.
        hooks: Modules whose outputs are the layers.
    """
    if isinstance(model, Loaded):
        return model if hooks is None else replace(model, hooks=hooks)
    if is_graph(model):
        path = Path(model).expanduser()
        network, tokenizer = load_graph(path, device, exact, hooks)
        return Loaded(network, tokenizer, str(model), files=[describe_file(path)])
    place = locate(model, revision, gguf_file, trust_remote_code)
    check_packages("models", "reading a model", "torch", "transformers")
    if place.gguf_file:
        check_packages("gguf", "reading a GGUF file", "gguf", "accelerate")
    # Else torch's idle threads spin for milliseconds after each forward pass, against what is done with its result.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    import torch
    import transformers

    from isotrope.softdecay.restore import check_layer_kept

    if place.gguf_file and place.local:
        check_layer_kept(Path(place.at), f"the GGUF file {place.gguf_file}")
    device_used = resolve_device(torch, device, exact)
    on_cpu = torch.device(device_used).type == "cpu"
    dtype = torch.float64 if exact else torch.float32 if on_cpu else "auto"
    reads, config = _reads(place)
    kind = resolve_modality(place.name, reads, modality)
    spoken = kind == "audio" and getattr(config, "is_encoder_decoder", False)
    auto = transformers.AutoModelForSpeechSeq2Seq if spoken else transformers.AutoModel
    network, tokenizer, processor = _load_parts(auto, place, kind, dtype)
    found = find_commit(place.at, place.gguf_file or "config.json", revision) or revision
    return Loaded(
        model=network.to(device=device_used, dtype=torch.float64 if exact else None).eval(),
        tokenizer=tokenizer,
        name=place.name,
        revision=None if place.local else found,
        device=device_used,
        files=list_weight_files(Path(place.at), place.gguf_file) if place.local else [],
        modality=kind,
        processor=processor,
        hooks=hooks,
    )


def _load_parts(auto: Any, place: Location, kind: str, dtype: Any) -> tuple[Any, Any, Any]:
    """Load a model by a class of transformers, its tokenizer and its processor, and check that they are whole."""
    import transformers

    from isotrope.softdecay.restore import restore_saved

    with silence_transformers():
        try:
            processor = _processor(transformers, place, kind)
            tokenizer = _tokenizer(transformers, place, kind)
            packing = dequantize_options() if place.gguf_file else {}
            network, info = auto.from_pretrained(
                place.at, dtype=dtype, output_loading_info=True, weights_only=True, **place.options, **packing
            )
        except Exception as error:  # whatever the library, the hub and the files raise
            raise explain(place.at, error, place.local) from error
    check_weights(place.at, info, network)
    hub = {key: place.options[key] for key in ("revision", "local_files_only") if key in place.options}
    restore_saved(network, place.at, **hub)
    if kind == "text":
        check_tokenizer(place.at, tokenizer)
    if place.gguf_file:
        forget_packing(network)
    network = find_tower(network, kind)
    network.config.use_cache = False  # one pass over whole texts needs no memory of earlier ones
    if hasattr(network.config, "mask_ratio"):
        network.config.mask_ratio = 0.0  # a model trained to fill in patches that are left out gets all of them
    return network, tokenizer, processor


def can_read(
    model: str | Path | Loaded | None,
    *,
    revision: str | None = None,
    gguf_file: str | None = None,
    trust_remote_code: bool = False,
) -> tuple[str, ...]:
    """What a model can read, told from its config before it is loaded."""
    if isinstance(model, Loaded):
        return (model.modality,)
    if model is None or is_graph(model):
        return ("text",)
    place = locate(model, revision, gguf_file, trust_remote_code)
    check_packages("models", "reading a model", "torch", "transformers")
    return _reads(place)[0]


def _reads(place: Location) -> tuple[tuple[str, ...], Any]:
    """What a model can read, and its config; text where the config cannot be read, which loading will tell."""
    if place.gguf_file:
        return ("text",), None
    from transformers import AutoConfig

    if not place.local:  # that of a folder has been checked
        check_config(place.name, _raw_config(place))
    with silence_transformers():
        try:
            config = AutoConfig.from_pretrained(place.at, **place.options)  # nosec B615
            return find_modalities(config, _own_class(place, config)), config
        except Exception as error:  # whatever the library, the hub, the files and code of the model's own raise
            if "trust_remote_code" in str(error):
                raise explain(place.at, error, place.local) from error
            return ("text",), None


def _raw_config(place: Location) -> Any:
    """The config as it stands in its file, None where it cannot be read, which loading will tell."""
    from transformers import PretrainedConfig

    with silence_transformers():
        try:
            return PretrainedConfig.get_config_dict(place.at, **place.options)[0]
        except Exception:  # whatever the library, the hub and the files raise
            return None


def _own_class(place: Location, config: Any) -> type | None:
    """The class of a model that brings its own code, None for one of the library."""
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    name = (getattr(config, "auto_map", None) or {}).get("AutoModel")
    if name is None or not place.options["trust_remote_code"]:
        return None
    options = {k: v for k, v in place.options.items() if k in ("revision", "local_files_only")}
    found: type = get_class_from_dynamic_module(name, place.at, **options)
    return found


def _processor(transformers: Any, place: Location, kind: str) -> Any:
    """What prepares images or sounds, None for text."""
    if kind == "image":
        check_packages("vision", "reading images", "PIL")
        # The one that needs no torchvision: the same rows whether that is installed or not.
        return transformers.AutoImageProcessor.from_pretrained(place.at, use_fast=False, **place.options)  # nosec B615
    if kind == "audio":
        return transformers.AutoFeatureExtractor.from_pretrained(place.at, **place.options)  # nosec B615
    return None


def _tokenizer(transformers: Any, place: Location, kind: str) -> Any:
    """The tokenizer; of a speech model only to name what its decoder hears, so that it may be missing."""
    if kind == "image":
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(place.at, **place.options)  # nosec B615
    except Exception:  # whatever the library and the files raise
        if kind == "text":
            raise
        return None


def list_weight_files(folder: Path, gguf_file: str | None = None) -> list[dict[str, Any]]:
    """Facts about the files of a folder that hold weights."""
    patterns = (gguf_file,) if gguf_file else _WEIGHTS
    found = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return [describe_file(path) | {"path": path.name} for path in found]
