"""isotrope scan of a speech model: what it reads is said, silence and broken sounds are counted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from testkit.command import Command, one_sentence
from testkit.media_models import RATE, save_sound_model

soundfile = pytest.importorskip("soundfile", reason="needs isotrope[audio]")
pytest.importorskip("soxr", reason="needs isotrope[audio]")
pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_sound_model(tmp_path_factory.mktemp("whisper"), "whisper")


@pytest.fixture
def sounds(tmp_path: Path) -> Path:
    """Three sounds of half a second, one at half the rate; silence, a click, no sample and no sound at all."""
    folder = tmp_path / "sounds"
    folder.mkdir()
    for i in range(3):
        rate = RATE // 2 if i == 2 else RATE
        soundfile.write(folder / f"{i}.wav", np.random.default_rng(i).normal(scale=0.1, size=rate // 2), rate)
    soundfile.write(folder / "silent.flac", np.zeros(RATE), RATE)
    soundfile.write(folder / "click.wav", np.full(100, 0.1), RATE)
    soundfile.write(folder / "empty.wav", np.zeros(0), RATE)
    (folder / "broken.wav").write_bytes(b"RIFF\0\0\0\0")
    return folder


def test_in_words_and_as_json(isotrope: Command, whisper: Path, sounds: Path) -> None:
    result = isotrope("scan", "--model", whisper, sounds)
    assert (result.code, result.err) == (0, "")
    assert "75 rows of 7 sounds, 7 layers of up to 16" in result.out  # a frame for every 20 ms
    assert "WhisperForConditionalGeneration reads sound: rows are frames" in result.out
    assert "left out: 2 broken sounds, 1 silent windows, 1 short windows" in result.out
    document = isotrope("scan", "--model", whisper, sounds, "--json").json
    assert document["source"]["modality"] == "audio"
    names = [*(f"encoder.{i}" for i in range(3)), *(f"decoder.{i}" for i in range(4))]
    assert list(document["layer_names"].values()) == names
    by = {(r["measure"], r["layer"]): r for r in document["readings"]}
    assert [by["mean_cosine", layer]["n"] for layer in range(3)] == [75] * 3
    # frames have no types, what the decoder hears has
    assert by["between_share", 2]["value"] is None
    assert "frames of sound" in by["between_share", 2]["reason"]
    assert "frames of sound" not in str(by["between_share", 6]["reason"])


def test_a_speech_model_without_sound_says_so(isotrope: Command, whisper: Path, sounds: Path) -> None:
    only = sounds / "silent.flac"
    assert "none of the sound in silent.flac can be used" in one_sentence(isotrope("scan", "--model", whisper, only))
    said = one_sentence(isotrope("scan", sounds))
    assert "the embedded model reads text and got sound; name a model of sound" in said
