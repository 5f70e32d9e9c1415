"""The class of every model that the tests can make."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from isotrope.sources.models.load import Loaded, load
from isotrope.studies.model_class import CLASSES, find_class, find_family, is_trained
from testkit.media_models import IMAGES, SOUNDS, save_character_model, save_image_model, save_sound_model
from testkit.models import FAMILIES, TWO_STACKS, save_model
from testkit.networks import CONFIGS, network

#: Networks of convolutions by the paper, CvT among them.
CONVOLUTIONS = {"cvt", "convnext", "resnet", "efficientnet"}


@pytest.mark.parametrize("family", FAMILIES)
def test_models_of_subwords(family: str, tmp_path: Path) -> None:
    expected = "encoder-decoder" if family in TWO_STACKS else "subword"
    assert find_class(load(save_model(tmp_path / family, family), device="cpu")) == expected


@pytest.mark.parametrize("name", ["canine", "byt5"])
def test_models_of_characters_and_bytes(name: str, tmp_path: Path) -> None:
    """The config of ByT5 is that of T5: only the tokenizer tells them apart."""
    loaded = load(save_character_model(tmp_path / name, name), device="cpu")
    assert find_class(loaded) == "character"
    assert find_class(Loaded(loaded.model, object(), "no such tokenizer")) == (
        "character" if name == "canine" else "encoder-decoder"
    )


@pytest.mark.parametrize("name", IMAGES)
def test_models_of_images(name: str, tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    loaded = load(save_image_model(tmp_path / name, name), device="cpu", modality="image")
    assert find_class(loaded) == ("convolution" if name in CONVOLUTIONS else "vision transformer")
    family = {"clip": "clip_vision_model"}.get(name, name)
    assert find_family(loaded) == family


@pytest.mark.parametrize("name", SOUNDS)
def test_models_of_sounds(name: str, tmp_path: Path) -> None:
    loaded = load(save_sound_model(tmp_path / name, name), device="cpu", modality="audio")
    assert find_class(loaded) == "speech"


@pytest.mark.parametrize("family", CONFIGS)
def test_every_network_has_a_class(family: str) -> None:
    modality = {"vit": "image", "wav2vec2": "audio", "whisper": "audio"}.get(family, "text")
    expected = {"vit": "vision transformer", "wav2vec2": "speech", "whisper": "speech"}
    found = find_class(Loaded(network(family), None, family, modality=modality))
    assert found == expected.get(family, "encoder-decoder" if family in ("t5", "bart") else "subword")
    assert found in CLASSES


def make_plain(*modules: Any) -> Loaded:
    return Loaded(torch.nn.Sequential(*modules), None, "mine", modality="image", processor=object())


def test_a_plain_module_is_told_by_its_modules() -> None:
    convolution = torch.nn.Conv2d(3, 8, 3)
    assert find_class(make_plain(convolution, torch.nn.ReLU())) == "convolution"
    assert find_class(make_plain(convolution, torch.nn.MultiheadAttention(8, 2))) == "vision transformer"
    assert find_class(make_plain(torch.nn.Linear(8, 8))) == "vision transformer"


@pytest.mark.parametrize(
    ("architecture", "family"),
    [("resnet18", "resnet"), ("vit_tiny_patch16_224", "vit"), ("resnet50.a1_in1k", "resnet")],
)
def test_models_of_timm_are_told_by_their_architecture(architecture: str, family: str) -> None:
    loaded = make_plain(torch.nn.Conv2d(3, 8, 3))
    loaded.model.config = SimpleNamespace(model_type="timm_wrapper", architecture=architecture)
    assert (find_class(loaded), find_family(loaded)) == ("convolution", family)


def test_deit_with_the_config_of_vit_is_deit() -> None:
    assert find_family(Loaded(network("vit"), None, "org/deit-base-patch16-224", modality="image")) == "deit"
    assert find_family(Loaded(network("vit"), None, "org/vit-base", modality="image")) == "vit"


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5", "vit", "wav2vec2"])
def test_weights_of_an_initialisation_are_not_trained(family: str) -> None:
    from transformers import AutoModel

    from testkit.networks import config

    fresh = AutoModel.from_config(config(family))
    assert not is_trained(fresh)
    assert is_trained(network(family))  # all of its weights are moved at random, as training would
    norm = next(module for module in fresh.modules() if type(module).__name__.lower().endswith("norm"))
    with torch.no_grad():
        norm.weight[0] += 1e-3
    assert is_trained(fresh)


def test_a_network_without_norms_counts_as_trained() -> None:
    assert is_trained(torch.nn.Linear(3, 3))
    assert is_trained(object())
