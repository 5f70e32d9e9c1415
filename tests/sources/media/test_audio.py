"""Sound: resampling against the closed form of a sine, windows, masks, and rows against the library's own states."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.errors import InputError
from isotrope.sources.input import Input
from isotrope.sources.media.audio import _blocks, resample, windows
from isotrope.statistics import Collection, Wanted
from testkit.media_models import RATE, random_model, save_sound_model

soundfile = pytest.importorskip("soundfile", reason="needs isotrope[audio]")
pytest.importorskip("soxr", reason="needs isotrope[audio]")


def noise(samples: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(scale=0.1, size=samples).astype(np.float32)


def sine(hertz: float, rate: int, seconds: float = 2.0) -> np.ndarray:
    return (0.5 * np.sin(2 * np.pi * hertz * np.arange(round(seconds * rate)) / rate)).astype(np.float32)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def make(name: str) -> Path:
        if name not in made:
            made[name] = save_sound_model(tmp_path_factory.mktemp(name), name)
        return made[name]

    return make


@pytest.mark.parametrize(("own", "wanted"), [(8_000, 16_000), (44_100, 16_000), (48_000, 16_000), (16_000, 22_050)])
def test_a_sine_stays_a_sine(own: int, wanted: int) -> None:
    given = sine(440.0, own)
    blocks = [(part, own) for part in np.array_split(given, 7)]
    out = np.concatenate(list(resample(iter(blocks), wanted)))
    assert len(out) == 2 * wanted
    inside = slice(wanted // 10, -wanted // 10)  # the ends meet silence
    assert np.abs(out - sine(440.0, wanted))[inside].max() < 1e-4


def test_what_the_lower_rate_cannot_hold_vanishes_and_does_not_fold_back() -> None:
    out = np.concatenate(list(resample(iter([(sine(7_000.0, 16_000), 16_000)]), 8_000)))
    assert np.abs(out[800:-800]).max() < 1e-3


def test_windows_are_cut_anew() -> None:
    parts = np.array_split(np.arange(103, dtype=np.float32), 9)
    found = list(windows(iter(parts), 25))
    assert [len(w) for w in found] == [25, 25, 25, 25, 3]
    np.testing.assert_array_equal(np.concatenate(found), np.arange(103))


@pytest.mark.parametrize("name", ["wav2vec2", "hubert"])
def test_frames_are_those_of_each_sound_alone(name: str, model: Callable[[str], Path], tmp_path: Path) -> None:
    import torch
    from transformers import AutoFeatureExtractor, AutoModel

    lengths = (4_000, 2_400, 4_000)
    for i, length in enumerate(lengths):
        soundfile.write(tmp_path / f"{i}.flac", noise(length, i), RATE, subtype="PCM_24")
    source = Input(model=str(model(name)), text=str(tmp_path)).open()
    assert source.layers == [0, 1, 2]  # the embedding and two blocks
    network, extractor = (
        AutoModel.from_pretrained(model(name)).eval(),
        AutoFeatureExtractor.from_pretrained(model(name)),
    )
    seen = 0
    for batch in source.batches():
        assert batch.rows.token is None
        for number in np.unique(batch.rows.sequence):
            index = int(number) >> 24
            samples = soundfile.read(tmp_path / f"{index}.flac", dtype="float32")[0]
            values = extractor(samples, sampling_rate=RATE, return_tensors="pt").input_values
            with torch.inference_mode():
                states = network(values, output_hidden_states=True).hidden_states
            mine = batch.rows.sequence == number
            assert mine.sum() == (lengths[index] // 10) // 8  # kernels as wide as their strides, 10 and 8
            for label, rows in batch.layers.items():
                np.testing.assert_allclose(rows.numpy()[mine], states[label][0].numpy(), rtol=1e-3, atol=1e-4)
            seen += 1
    assert seen == 3


def test_whisper_encoder_frames_are_real_ones_and_the_decoder_reads_what_it_hears(
    model: Callable[[str], Path], tmp_path: Path
) -> None:
    import torch
    from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration

    lengths = (8_000, 5_000)
    for i, length in enumerate(lengths):
        soundfile.write(tmp_path / f"{i}.wav", noise(length, i), RATE)
    folder = model("whisper")
    source = Input(model=str(folder), text=str(tmp_path)).open()
    names = [*(f"encoder.{i}" for i in range(3)), *(f"decoder.{i}" for i in range(4))]
    assert list(source.layer_names.values()) == names
    encoder, decoder = source.batches()
    # a mel frame for every 160 samples begun, and a state for every two of those
    real = [math.ceil(math.ceil(length / 160) / 2) for length in lengths]
    assert real == [25, 16]
    assert [(encoder.rows.sequence == i << 24).sum() for i in range(2)] == real
    network = WhisperForConditionalGeneration.from_pretrained(folder).eval()
    extractor = WhisperFeatureExtractor.from_pretrained(folder)
    for i in range(2):
        samples = soundfile.read(tmp_path / f"{i}.wav", dtype="float32")[0]
        features = extractor(samples, sampling_rate=RATE, return_tensors="pt").input_features
        heard = [3]
        with torch.inference_mode():
            while len(heard) < 12:
                logits = network(input_features=features, decoder_input_ids=torch.tensor([heard])).logits
                if (token := int(logits[0, -1].argmax())) == 2:
                    break
                heard.append(token)
            out = network(input_features=features, decoder_input_ids=torch.tensor([heard]), output_hidden_states=True)
        mine = decoder.rows.sequence == i << 24
        assert decoder.rows.token[mine].tolist() == heard
        assert decoder.rows.special[mine].tolist() == [True] + [False] * (len(heard) - 1)
        for layer in range(4):
            wanted = out.decoder_hidden_states[layer][0].numpy()
            np.testing.assert_allclose(decoder.layers[3 + layer].numpy()[mine], wanted, rtol=1e-3, atol=1e-4)
        for layer in range(3):
            wanted = out.encoder_hidden_states[layer][0, : real[i]].numpy()
            rows = encoder.layers[layer].numpy()[encoder.rows.sequence == i << 24]
            np.testing.assert_allclose(rows, wanted, rtol=1e-3, atol=1e-4)


def test_silence_short_ends_and_broken_sounds_are_counted(model: Callable[[str], Path], tmp_path: Path) -> None:
    soundfile.write(tmp_path / "long.wav", np.stack([noise(40_400), noise(40_400, 1)], axis=1), RATE)  # 2.525 s
    soundfile.write(tmp_path / "silent.wav", np.zeros(8_000), RATE)
    soundfile.write(tmp_path / "short.wav", noise(800), RATE)
    soundfile.write(tmp_path / "twice.wav", noise(4_000), 8_000)  # half a second at half the rate
    (tmp_path / "broken.mp3").write_text("no sound")
    collection = Collection(Wanted())
    for batch in Input(model=str(model("whisper")), text=str(tmp_path), layers="0,1,2").open().batches():
        collection.update(batch)
    counts = {"sounds": 5, "windows": 6, "broken_sounds": 1, "silent_windows": 1, "short_windows": 1}
    assert dict(collection.counts) == counts
    assert collection.layer(0).moments.n == 50 + 50 + 27 + 25  # windows of a second: 1, 1, 0.525 and 0.5 of one


def test_sounds_are_cut_at_what_a_model_takes_and_nothing_is_lost(tmp_path: Path) -> None:
    """AST takes 1,024 frames of 10 ms, and its processor would cut off what is longer."""
    import transformers

    config = transformers.ASTConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24)
    random_model(config).save_pretrained(tmp_path / "ast")
    transformers.ASTFeatureExtractor().save_pretrained(tmp_path / "ast")
    soundfile.write(tmp_path / "a.wav", noise(25 * RATE), RATE)
    source = Input(model=str(tmp_path / "ast"), text=str(tmp_path / "a.wav")).open()
    batches = list(source.batches())
    assert sum(batch.counts["windows"] for batch in batches) == math.ceil(25 / 10.24)
    # two special tokens, and patches of 16 × 16 every 10 of 128 bands and 1,024 frames
    patches = ((128 - 16) // 10 + 1) * ((1024 - 16) // 10 + 1)
    assert sum(len(batch.rows) for batch in batches) == 3 * (2 + patches)


def test_a_codec_without_hidden_states_says_which_hook_to_name(tmp_path: Path) -> None:
    import transformers

    config = transformers.EncodecConfig(num_filters=2, hidden_size=8, codebook_dim=8, codebook_size=16)
    random_model(config).save_pretrained(tmp_path / "codec")
    transformers.EncodecFeatureExtractor(sampling_rate=RATE).save_pretrained(tmp_path / "codec")
    soundfile.write(tmp_path / "a.wav", noise(RATE), RATE)
    given = {"model": str(tmp_path / "codec"), "text": str(tmp_path / "a.wav")}
    with pytest.raises(InputError, match=r"\(EncodecModel\) gives no hidden states; .* encoder\.layers\.\*"):
        Input(**given).open()


@pytest.mark.parametrize("suffix", ["wav", "flac", "ogg", "mp3"])
def test_kinds_of_files(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.{suffix}"
    soundfile.write(file, sine(440.0, RATE), RATE)
    for held in (str(file), file.read_bytes()):
        blocks, rates = zip(*_blocks(held), strict=True)
        assert set(rates) == {RATE}
        second = np.concatenate(blocks)[RATE // 2 : RATE // 2 + RATE]  # the ends of what was packed may differ
        turns = np.exp(-2j * np.pi * 440.0 * np.arange(RATE) / RATE)
        assert 2 * abs(np.mean(second * turns)) == pytest.approx(0.5, abs=0.01)  # its height
        assert np.std(second) == pytest.approx(0.5 / math.sqrt(2), abs=0.01)  # and there is nothing else


@pytest.mark.parametrize("nested", [True, False])
def test_parquet_with_bytes(model: Callable[[str], Path], tmp_path: Path, nested: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    (tmp_path / "sounds").mkdir()
    paths = [tmp_path / "sounds" / f"{i}.wav" for i in range(3)]
    for i, path in enumerate(paths):
        soundfile.write(path, noise(4_000, i), RATE)
    held = [{"bytes": p.read_bytes(), "path": p.name} if nested else p.read_bytes() for p in paths]
    pq.write_table(pa.table({"sound": held, "said": list("abc")}), tmp_path / "s.parquet")
    (batch,) = Input(model=str(model("hubert")), text=str(tmp_path / "s.parquet"), group_by="said").open().batches()
    (files,) = Input(model=str(model("hubert")), text=str(tmp_path / "sounds")).open().batches()
    np.testing.assert_array_equal(batch.layers[2].numpy(), files.layers[2].numpy())
    assert set(batch.rows.group.tolist()) == set("abc")


def test_a_dataset_of_sounds(model: Callable[[str], Path], tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    (tmp_path / "sounds").mkdir()
    paths = [tmp_path / "sounds" / f"{i}.wav" for i in range(3)]
    for i, path in enumerate(paths):
        soundfile.write(path, noise(4_000, i), RATE)
    made = datasets.Dataset.from_dict({"audio": [str(p) for p in paths], "said": list("abc")})
    made = made.cast_column("audio", datasets.Audio())
    made.save_to_disk(tmp_path / "set")
    (files,) = Input(model=str(model("hubert")), text=str(tmp_path / "sounds")).open().batches()
    for given in (str(tmp_path / "set"), made):
        (batch,) = Input(model=str(model("hubert")), text=given, group_by="said").open().batches()
        np.testing.assert_array_equal(batch.layers[2].numpy(), files.layers[2].numpy())
        assert set(batch.rows.group.tolist()) == set("abc")


def test_a_folder_without_sound_says_so(model: Callable[[str], Path], tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("text")
    with pytest.raises(InputError, match=r"no sound in .*: none of its 1 files ends in \.wav"):
        Input(model=str(model("wav2vec2")), text=str(tmp_path)).open()


def test_token_measures_are_left_out_with_a_reason(model: Callable[[str], Path], tmp_path: Path) -> None:
    import isotrope

    for i in range(3):
        soundfile.write(tmp_path / f"{i}.wav", noise(4_000, i), RATE)
    options: dict[str, Any] = {"measures": "mean_cosine,between_share", "layers": "-1", "sample": 0}
    findings = isotrope.scan(model=model("wav2vec2"), text=tmp_path, **options)
    by = {r.measure: r for r in findings.readings}
    assert np.isfinite(by["mean_cosine"].value)
    assert "frames of sound" in str(by["between_share"].reason)
