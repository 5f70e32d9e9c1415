"""Models that generate text, with their heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from isotrope.errors import InputError
from isotrope.sources.models.environment import check_packages, resolve_device, silence_transformers
from isotrope.sources.models.location import locate
from isotrope.sources.models.model_files import check_weights, dequantize_options, explain
from isotrope.sources.models.onnx import check_has_weights


class Generator(NamedTuple):
    """A model that generates text, its tokenizer, and the name of the stack of blocks that its output comes from."""

    model: Any
    tokenizer: Any
    stack: str | None

    @property
    def has_encoder(self) -> bool:
        """Whether an encoder reads the prompt and a decoder writes, instead of one stack doing both."""
        return bool(self.model.config.is_encoder_decoder)


def load_generator(model: str | Path | None, *, device: str = "auto") -> Generator:
    """Load a decoder, or an encoder-decoder, with its head in float32.

    Args:
        model: hub id, local folder or GGUF file.
        device: "auto", "cpu", "cuda", "mps" or another name that torch knows.

    Raises:
        InputError: if the model is no decoder, such as BERT.
    """
    check_has_weights(model, "generation")
    place = locate(model, None, None, False)
    check_packages("models", "generation", "torch", "transformers")
    import torch
    import transformers

    with silence_transformers():
        try:
            config = transformers.AutoConfig.from_pretrained(place.at, **place.options)  # nosec B615
            auto = _find_class(transformers, config)
            if auto is None:
                raise InputError(f"{place.name} does not generate text: it is an encoder.")
            packing = dequantize_options() if place.gguf_file else {}
            options: dict[str, Any] = {"dtype": torch.float32, "output_loading_info": True} | place.options
            network, info = auto.from_pretrained(place.at, weights_only=True, **options, **packing)
            tokenizer = transformers.AutoTokenizer.from_pretrained(place.at, **place.options)  # nosec B615
        except InputError:
            raise
        except Exception as error:  # whatever the library, the hub and the files raise
            raise explain(place.at, error, place.local) from error
    check_weights(place.at, info, network)
    return Generator(network.to(resolve_device(torch, device, False)).eval(), tokenizer, _find_stack(network))


def _find_class(transformers: Any, config: Any) -> Any:
    """The class with a head that predicts next tokens, None for an encoder."""
    from transformers.models.auto import modeling_auto

    if config.is_encoder_decoder:
        known = config.model_type in modeling_auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        return transformers.AutoModelForSeq2SeqLM if known else None
    masked = config.model_type in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    known = config.model_type in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return transformers.AutoModelForCausalLM if known and not masked else None


def _find_stack(network: Any) -> str | None:
    """The name of the decoder's blocks in an encoder-decoder; None where there is one stack."""
    if not network.config.is_encoder_decoder:
        return None
    import torch

    decoder = network.get_decoder()
    (name,) = (name for name, module in network.named_modules() if module is decoder)
    blocks = next(each for each, module in decoder.named_children() if isinstance(module, torch.nn.ModuleList))
    return f"{name}.{blocks}"
