"""Models of a class that nobody named, which bring their own code: what they read is found, and which hook to name."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from testkit.command import Command, one_sentence
from testkit.media_models import RATE, write_image_processor
from testkit.models import FAMILIES, _tokenizer

pytest.importorskip("transformers")

#: A stem and two blocks, without hidden states; what it reads is told by what its forward takes alone.
CODE = """
import torch
from transformers import PreTrainedConfig, PreTrainedModel


class MineConfig(PreTrainedConfig):
    model_type = "mine"


class Mine(PreTrainedModel):
    config_class = MineConfig

    def __init__(self, config):
        super().__init__(config)
        self.stem = STEM
        self.blocks = torch.nn.ModuleList([torch.nn.Linear(8, 8) for _ in range(2)])
        self.post_init()

    def forward(self, READS):
        rows = self.stem(MADE)
        for block in self.blocks:
            rows = block(rows).tanh()
        return rows
"""

#: By what is read: the stem, the arguments of forward, and what goes into the stem.
KINDS = {
    "text": ("torch.nn.Embedding(60, 8)", "input_ids, attention_mask", "input_ids"),
    "image": (
        "torch.nn.Linear(3 * 8 * 8, 8)",
        "pixel_values",
        "torch.nn.functional.unfold(pixel_values, 8, stride=8).transpose(1, 2)",
    ),
    "audio": ("torch.nn.Linear(400, 8)", "input_values", "input_values.unfold(1, 400, 400)"),
}


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library copies such code to a folder of its own."""
    monkeypatch.setattr("transformers.dynamic_module_utils.HF_MODULES_CACHE", str(tmp_path / "modules"))


def save_own_model(folder: Path, kind: str, reads: str | None = None) -> Path:
    from safetensors.torch import save_file
    from transformers import Wav2Vec2FeatureExtractor
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    folder.mkdir()
    stem, own, made = KINDS[kind]
    code = CODE.replace("STEM", stem).replace("READS", reads or own).replace("MADE", made)
    (folder / "mine.py").write_text(code)
    auto = {"AutoConfig": "mine.MineConfig", "AutoModel": "mine.Mine"}
    (folder / "config.json").write_text(json.dumps({"model_type": "mine", "auto_map": auto}))
    mine = get_class_from_dynamic_module("mine.Mine", str(folder))
    save_file(mine(mine.config_class()).state_dict(), folder / "model.safetensors", metadata={"format": "pt"})
    if kind == "text":
        _tokenizer(FAMILIES["bert"]).save_pretrained(folder)
    elif kind == "image":
        write_image_processor(folder)
    else:
        Wav2Vec2FeatureExtractor(sampling_rate=RATE).save_pretrained(folder)
    return folder


def given(folder: Path, kind: str) -> Path:
    """Something to read: 4 texts, 3 images of 16 patches each, or 2 sounds of 10 frames each."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    if kind == "text":
        (folder / "a.txt").write_text("the cat sat\non a mat\nold dogs ran\nnear deep water\n")
    elif kind == "image":
        image = pytest.importorskip("PIL.Image")
        for i in range(3):
            image.fromarray(rng.integers(0, 255, (32, 32, 3), dtype=np.uint8)).save(folder / f"{i}.png")
    else:
        soundfile = pytest.importorskip("soundfile", reason="needs isotrope[audio]")
        for i in range(2):
            soundfile.write(folder / f"{i}.wav", rng.normal(scale=0.1, size=4_000), RATE)
    return folder


@pytest.mark.parametrize(("kind", "rows"), [("text", 4 * 5), ("image", 3 * 16), ("audio", 2 * 10)])
def test_its_modality_is_found_and_its_hook_named(isotrope: Command, tmp_path: Path, kind: str, rows: int) -> None:
    model, read = save_own_model(tmp_path / f"own_{kind}", kind), given(tmp_path / "read", kind)
    refused = one_sentence(isotrope("scan", "--model", model, read))
    assert "wants to run code of its own" in refused
    assert "--trust-remote-code" in refused
    trusted = ("scan", "--model", model, read, "--trust-remote-code", "--measures", "mean_cosine", "--json")
    said = one_sentence(isotrope(*trusted))
    assert "(Mine) gives no hidden states; name the modules whose outputs are its layers with --hook" in said
    assert "such as blocks.* (2 modules)" in said
    document = isotrope(*trusted, "--hook", "stem,blocks.*").json
    assert document["source"]["modality"] == kind
    assert list(document["layer_names"].values()) == ["stem", "blocks.0", "blocks.1"]
    assert [r["n"] for r in document["readings"] if r["layer"] is not None] == [rows] * 3


def test_a_class_that_does_not_take_what_it_must_says_so(isotrope: Command, tmp_path: Path) -> None:
    model = save_own_model(tmp_path / "own_ids", "text", reads="input_ids")
    scan = ("scan", "--model", model, given(tmp_path / "read", "text"), "--trust-remote-code")
    for more in ((), ("--hook", "blocks.*")):
        said = one_sentence(isotrope(*scan, *more))
        assert "(Mine) cannot be run on input_ids and attention_mask" in said
        assert "check that its files belong together and that its forward takes them" in said
