"""timm's models come in through the wrapper of transformers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from isotrope.sources.input import Input
from isotrope.sources.models.load import load

Image = pytest.importorskip("PIL.Image")


def save_timm_model(folder: Path, architecture: str) -> Path:
    import torch
    from transformers import TimmWrapperConfig, TimmWrapperModel

    torch.manual_seed(0)
    args = {"img_size": 32} if architecture.startswith("vit") else {}
    config = TimmWrapperConfig(architecture=architecture, model_args=args, do_pooling=False)
    config.pretrained_cfg = {
        "input_size": [3, 32, 32],
        "fixed_input_size": architecture.startswith("vit"),
        "interpolation": "bicubic",
        "crop_pct": 1.0,
        "crop_mode": "center",
        "mean": [0.5, 0.5, 0.5],
        "std": [0.5, 0.5, 0.5],
    }
    TimmWrapperModel(config).save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [
        # maps of 2 × 2 patches after each of twelve blocks, and the sequence with its [CLS] after the final norm
        ("vit_tiny_patch16_224", [(4, 192)] * 12 + [(5, 192)]),
        # five stages, each at half of the one before, and the convolution at the end
        ("tf_efficientnet_lite0", [(256, 16), (64, 24), (16, 40), (4, 112), (1, 320), (1, 1280)]),
    ],
)
def test_every_stage(architecture: str, expected: list[tuple[int, int]], tmp_path: Path) -> None:
    timm = pytest.importorskip("timm", reason="needs isotrope[timm]")
    import torch

    folder = save_timm_model(tmp_path / "model", architecture)
    (tmp_path / "pictures").mkdir()
    for i in range(2):
        pixels = np.random.default_rng(i).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "pictures" / f"{i}.png")
    source = Input(model=str(folder), text=str(tmp_path / "pictures")).open()
    assert len(source.layers) == len(expected)
    found = {label: rows for batch in source.batches() for label, rows in batch.layers.items()}
    assert [tuple(found[i].shape) for i in range(len(expected))] == [(2 * rows, width) for rows, width in expected]
    network = source.loaded.model.timm_model
    assert isinstance(network, type(timm.create_model(architecture)))
    images = [Image.open(path) for path in sorted((tmp_path / "pictures").iterdir())]
    pixels = torch.stack([torch.from_numpy(np.array(i, np.float32) / 255 * 2 - 1).permute(2, 0, 1) for i in images])
    with torch.inference_mode():
        last, stages = network.forward_intermediates(pixels)
    for label, state in enumerate([*stages, last]):
        wanted = state if state.ndim == 3 else state.flatten(2).transpose(1, 2)
        np.testing.assert_allclose(
            found[label].numpy(), wanted.reshape(-1, wanted.shape[-1]).numpy(), rtol=1e-3, atol=1e-3
        )


def test_without_timm_its_extra_is_named(tmp_path: Path) -> None:
    import importlib.util
    import json

    from isotrope.errors import MissingExtra

    if importlib.util.find_spec("timm") is not None:
        pytest.skip("timm is installed")
    (tmp_path / "config.json").write_text(json.dumps({"architecture": "resnet18", "model_type": "timm_wrapper"}))
    with pytest.raises(MissingExtra, match=r"pip install 'isotrope\[timm\]'"):
        load(tmp_path, modality=None)
