"""The class of a model, which decides the claims of a paper that its results are compared with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from isotrope.sources.models.load import Loaded

#: The classes of Godey et al. 2023.
ModelClass: TypeAlias = Literal[
    "subword", "character", "encoder-decoder", "speech", "vision transformer", "convolution"
]

#: All classes, in the order of the paper's figures.
CLASSES: tuple[ModelClass, ...] = (
    "subword",
    "encoder-decoder",
    "character",
    "speech",
    "vision transformer",
    "convolution",
)

#: Types of configs that read characters or bytes.
_CHARACTER = {"canine", "character_bert", "character-bert", "characterbert", "manta", "charformer", "perceiver"}

#: Tokenizers of characters or bytes, for models such as ByT5, whose config is that of another class.
_CHARACTER_TOKENIZERS = ("ByT5", "Canine", "Perceiver", "Character")

#: Types of configs of networks of convolutions. CvT and VAN have attention, and the paper counts them among these.
_CONVOLUTION = {
    *("resnet", "regnet", "bit", "efficientnet", "mobilenet_v1", "mobilenet_v2", "convnext", "convnextv2"),
    *("cvt", "van", "poolformer"),
}

#: Names of the models that read and predict characters or bytes alone (Section 3.1).
_CHARACTER_ALONE = ("byt5", "canine-c", "canine_c")


def find_class(loaded: Loaded) -> ModelClass:
    """Find the class of a model: by the type of its config and its tokenizer, or else by its modules.

    A model of images is a convolution if its config is in the table, or else if it has convolutions and no attention.
    A model of text is of characters if its config or its tokenizer is. Of the rest, those with a decoder that reads an
    encoder are encoder-decoders, and all others subword models. A model of bytes such as ByT5 is of the class
    "character", although it has an encoder and a decoder.

    Args:
        loaded: the model, with its tokenizer and what it reads.

    Returns:
        One of `CLASSES`.

    References:
        Godey, de la Clergerie and Sagot 2023, Sections 2 and 3
    """
    kind = str(getattr(loaded.config, "model_type", "") or "")
    if loaded.modality == "audio":
        return "speech"
    if loaded.modality == "image":
        return "convolution" if kind in _CONVOLUTION or _has_convolutions_alone(loaded.model) else "vision transformer"
    if kind in _CHARACTER or type(loaded.tokenizer).__name__.startswith(_CHARACTER_TOKENIZERS):
        return "character"
    return "encoder-decoder" if loaded.encoder_decoder else "subword"


def _has_convolutions_alone(model: Any) -> bool:
    """Whether a network has convolutions over two dimensions and no attention."""
    kinds = {type(module).__name__.lower() for module in model.modules()}
    return any("conv2d" in kind for kind in kinds) and not any("attention" in kind for kind in kinds)


def find_family(loaded: Loaded) -> str:
    """Find the family of a model within its class, such as "vit", "segformer" or "resnet".

    It is the type of the config. A model of timm is of the family that its architecture names first, one without a
    config of that of its class. DeiT without distillation has ViT's config, so that its name decides.
    """
    if "deit" in loaded.name.lower():
        return "deit"
    kind = str(getattr(loaded.config, "model_type", "") or type(loaded.model).__name__)
    if kind == "timm_wrapper":
        kind = str(loaded.config.architecture).partition("_")[0].partition(".")[0]
    return kind.lower().rstrip("0123456789")


def is_character_alone(name: str) -> bool:
    """Whether a character model both reads and predicts characters or bytes, by its name.

    CANINE-s and CANINE-c have the same config and differ in their training alone, which only the name tells.

    >>> is_character_alone("google/byt5-small"), is_character_alone("canine-c"), is_character_alone("canine-s")
    (True, True, False)
    """
    return any(part in name.lower() for part in _CHARACTER_ALONE)


def is_trained(model: Any) -> bool:
    """Whether the weights of a network were trained, as far as its norms tell.

    Norms are initialised with equal weights and equal biases, which training makes unequal. So a network all of whose
    norms have constant weights and biases was never trained. One without norms, or in another format than torch's,
    counts as trained.

    Args:
        model: a torch module.
    """
    modules: list[Any] = list(model.modules()) if hasattr(model, "modules") else []
    norms = [module for module in modules if "norm" in type(module).__name__.lower()]
    values = [parameter.detach() for module in norms for parameter in module.parameters(recurse=False)]
    vectors = [value for value in values if value.numel() > 1]
    return not vectors or any(bool((value != value.flatten()[0]).any()) for value in vectors)
