"""Small random models of images, sound and characters of real classes, with their processors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SIZE = 32
RATE = 16_000

_SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
_PATCHES = {**_SMALL, "image_size": SIZE, "patch_size": 8}
_STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
_WAVES = {
    **_SMALL,
    "conv_dim": (8, 8),
    "conv_stride": (10, 8),
    "conv_kernel": (10, 8),
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "mask_time_prob": 0.0,
}

#: Config class and options of each image model, and by hand the rows and the width of each of its layers.
IMAGES: dict[str, tuple[str, dict[str, Any], list[tuple[int, int]]]] = {
    # [CLS] and 4 × 4 patches after the embedding and each block
    "vit": ("ViTConfig", _PATCHES, [(17, 16)] * 3),
    # a distillation token too
    "deit": ("DeiTConfig", _PATCHES, [(18, 16)] * 3),
    "beit": ("BeitConfig", _PATCHES, [(17, 16)] * 3),
    "clip": ("CLIPVisionConfig", _PATCHES, [(17, 16)] * 3),
    # four stages, at a fourth of the image and then half of the one before
    "segformer": (
        "SegformerConfig",
        {**_STAGES, "num_attention_heads": [1, 1, 1, 1]},
        [(64, 8), (16, 16), (4, 24), (1, 32)],
    ),
    "cvt": (
        "CvtConfig",
        {"embed_dim": [8, 16, 32], "num_heads": [1, 1, 2], "depth": [1, 2, 3]},
        [(64, 8), (16, 16), (4, 32)],
    ),
    # the stem, and four stages
    "convnext": ("ConvNextConfig", _STAGES, [(64, 8), (64, 8), (16, 16), (4, 24), (1, 32)]),
    "resnet": (
        "ResNetConfig",
        {**_STAGES, "embedding_size": 8, "layer_type": "basic"},
        [(64, 8), (64, 8), (16, 16), (4, 24), (1, 32)],
    ),
    # the stem, seven blocks and the convolution at the end
    "efficientnet": (
        "EfficientNetConfig",
        {"image_size": SIZE, "width_coefficient": 0.25, "depth_coefficient": 0.2, "hidden_dim": 320},
        [(256, 8), (256, 8), (64, 8), (16, 16), (4, 24), (4, 32), (1, 48), (1, 80), (1, 320)],
    ),
    # windows that merge four patches into one between stages
    "swin": (
        "SwinConfig",
        {"image_size": SIZE, "patch_size": 2, "embed_dim": 8, "depths": [1, 1], "num_heads": [1, 2], "window_size": 4},
        [(256, 8), (64, 16), (64, 16)],
    ),
}

SOUNDS: dict[str, tuple[str, dict[str, Any]]] = {
    "wav2vec2": ("Wav2Vec2Config", _WAVES),
    "hubert": ("HubertConfig", _WAVES),
    "whisper": (
        "WhisperConfig",
        {
            "vocab_size": 50,
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 3,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
            "encoder_ffn_dim": 24,
            "decoder_ffn_dim": 24,
            "num_mel_bins": 8,
            "max_source_positions": 50,
            "max_target_positions": 12,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 3,
        },
    ),
}


def random_model(config: Any, auto: str = "AutoModel") -> Any:
    """A model whose weights are large enough to show mistakes."""
    import torch
    import transformers

    torch.manual_seed(0)
    model = getattr(transformers, auto).from_config(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model.eval()


def save_image_model(folder: Path, name: str) -> Path:
    import transformers

    kind, options, _ = IMAGES[name]
    random_model(getattr(transformers, kind)(**options)).save_pretrained(folder)
    write_image_processor(folder)
    return folder


def write_image_processor(folder: Path) -> None:
    settings = {
        "image_processor_type": "ViTImageProcessor",
        "size": {"height": SIZE, "width": SIZE},
        "image_mean": [0.5, 0.5, 0.5],
        "image_std": [0.5, 0.5, 0.5],
    }
    (folder / "preprocessor_config.json").write_text(json.dumps(settings))


def save_sound_model(folder: Path, name: str) -> Path:
    import transformers

    kind, options = SOUNDS[name]
    config = getattr(transformers, kind)(**options)
    whisper = name == "whisper"
    random_model(config, "AutoModelForSpeechSeq2Seq" if whisper else "AutoModel").save_pretrained(folder)
    extractor = (
        transformers.WhisperFeatureExtractor(feature_size=8, chunk_length=1)
        if whisper
        else transformers.Wav2Vec2FeatureExtractor(sampling_rate=RATE)
    )
    extractor.save_pretrained(folder)
    return folder


def save_character_model(folder: Path, name: str) -> Path:
    """CANINE over characters or ByT5 over bytes, whose tokenizers need no vocabulary."""
    import transformers

    if name == "canine":
        config = transformers.CanineConfig(
            **_SMALL, max_position_embeddings=64, num_hash_buckets=128, num_hash_functions=2, local_transformer_stride=8
        )
        tokenizer = transformers.CanineTokenizer(model_max_length=64)
    else:
        tokenizer = transformers.ByT5Tokenizer(extra_ids=4)
        config = transformers.T5Config(
            vocab_size=len(tokenizer),
            d_model=16,
            d_kv=8,
            d_ff=24,
            num_layers=2,
            num_decoder_layers=2,
            num_heads=2,
            decoder_start_token_id=0,
        )
    random_model(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
