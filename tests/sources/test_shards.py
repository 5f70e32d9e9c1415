"""Shards, one after another, are the batches of the whole pass, for every kind of source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from isotrope.engines.ray.merge_tree import merge
from isotrope.engines.ray.replica import reduce_shard
from isotrope.sources.batch import Batch
from isotrope.sources.input import Input
from isotrope.sources.source import Source, batches_per_shard
from isotrope.statistics import Collection, Wanted
from testkit.media_models import save_image_model, save_sound_model
from testkit.models import save_model, texts

ROWS = np.random.default_rng(0).normal(size=(2003, 5)).astype(np.float32)


def _vectors(folder: Path) -> Input:
    return Input(vectors=ROWS, batch_size=10)


def _tokens(folder: Path) -> Input:
    pytest.importorskip("transformers")
    lines = texts(131)
    return Input(model=save_model(folder / "bert", "bert"), text=lines, batch_size=4)


def _pooled(folder: Path) -> Input:
    pytest.importorskip("transformers")
    return Input(model=save_model(folder / "bert", "bert"), text=texts(45), batch_size=1, pooling="mean", in_order=True)


def _images(folder: Path) -> Input:
    image = pytest.importorskip("PIL.Image")
    pytest.importorskip("transformers")
    (folder / "pictures").mkdir()
    for i in range(21):
        pixels = np.random.default_rng(i).integers(0, 255, (30, 30, 3), dtype=np.uint8)
        image.fromarray(pixels).save(folder / f"pictures/{i:02d}.png")
    (folder / "pictures/07.png").write_text("broken")
    (folder / "pictures/20.png").write_text("broken")
    return Input(model=save_image_model(folder / "vit", "vit"), text=folder / "pictures", batch_size=2)


def _sounds(folder: Path) -> Input:
    soundfile = pytest.importorskip("soundfile")
    pytest.importorskip("transformers")
    (folder / "sounds").mkdir()
    for i in range(6):
        wave = np.random.default_rng(i).normal(size=4000 + 800 * (i % 2)) * 0.1
        soundfile.write(folder / f"sounds/{i}.wav", wave, 16000)
    return Input(model=save_sound_model(folder / "wav2vec2", "wav2vec2"), text=folder / "sounds", batch_size=1)


EVERY = [_vectors, _tokens, _pooled, _images, _sounds]


@pytest.fixture(scope="module", params=EVERY)
def source(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Source:
    return request.param(tmp_path_factory.mktemp("source")).open()


def _count_shards(source: Source) -> int:
    assert source.total is not None
    return -(-source.total // source.shard_size)


def _shards(source: Source) -> list[list[Batch]]:
    return [list(source.shard(number)) for number in range(_count_shards(source))]


def _plain(value: Any) -> np.ndarray:
    return np.asarray(value.cpu() if hasattr(value, "cpu") else value)


def test_the_batches_of_the_whole_pass(source: Source) -> None:
    whole = [batch for batch in source.batches() if batch.layers]
    shards = _shards(source)
    assert len(shards) > 1
    parts = [batch for shard in shards for batch in shard if batch.layers]
    assert len(whole) == len(parts)
    for one, other in zip(whole, parts, strict=True):
        np.testing.assert_array_equal(one.rows.sequence, other.rows.sequence)
        assert one.layers.keys() == other.layers.keys()
        for layer, rows in one.layers.items():
            np.testing.assert_array_equal(_plain(rows), _plain(other.layers[layer]))
    assert not list(source.shard(len(shards) + 3))


def test_in_any_order_and_what_was_counted(source: Source) -> None:
    wanted = Wanted(tokens=True, sequences=True, sample=40)
    whole = source.reduce(Collection(wanted))
    count = _count_shards(source)
    found: dict[int, Collection] = {}
    bars: Any = None
    for number in reversed(range(count)):
        found[number] = reduce_shard(Collection(wanted), len(source.layers), source.shard(number), bars)
        bars = found[number].sample_bars()  # rows that cannot stay are not even kept, and the sample is the same
    total = merge(*(found[number] for number in range(count)))
    assert total.counts == whole.counts
    assert total.shards == count
    assert total.summaries.keys() == whole.summaries.keys()
    for key, summary in whole.summaries.items():
        mine, theirs = total.summaries[key].sample, summary.sample
        assert mine is not None
        assert theirs is not None
        assert mine.sequences == theirs.sequences
        np.testing.assert_array_equal(mine.values, theirs.values)
        np.testing.assert_allclose(total.summaries[key].moments.mean, summary.moments.mean, rtol=1e-9, atol=1e-12)


def test_a_full_sample_keeps_others_small() -> None:
    source = Input(vectors=ROWS, batch_size=3).open()
    wanted = Wanted(sample=30)
    first = merge(*(reduce_shard(Collection(wanted), 1, source.shard(number), None) for number in range(12)))
    plain, told = (reduce_shard(Collection(wanted), 1, source.shard(12), bars) for bars in (None, first.sample_bars()))
    samples = [other.layer(0).sample for other in (plain, told, first + plain, first + told)]
    kept, few, one, other = (sample.values for sample in samples if sample is not None)
    assert len(kept) == 30
    assert len(few) < 10
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "lines",
    [
        [line if i % 3 else "\u200b" for i, line in enumerate(texts(90))],
        [*texts(128), *["\u200b"] * 20],
        [*texts(128), *["\u200b"] * 128, *texts(5)],
    ],
    ids=["some", "the last window", "a window between"],
)
def test_texts_without_tokens_are_counted_once(lines: list[str], tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    source = Input(model=save_model(tmp_path / "gpt2", "gpt2"), text=lines, batch_size=2).open()
    whole: dict[str, int] = {}
    for batch in source.batches():
        for name, count in batch.counts.items():
            whole[name] = whole.get(name, 0) + count
    parts: dict[str, int] = {}
    for batch in (batch for shard in _shards(source) for batch in shard):
        for name, count in batch.counts.items():
            parts[name] = parts.get(name, 0) + count
    assert whole == parts
    assert whole["texts"] == len(lines)
    assert whole["texts_without_tokens"] == sum(line == "\u200b" for line in lines)


def test_only_the_input_decides() -> None:
    sizes = [batches_per_shard(n) for n in range(1, 10_000, 7)]
    assert sizes == sorted(sizes)
    assert {size & (size - 1) for size in sizes} == {0}
    assert all(-(-n // batches_per_shard(n)) >= 32 for n in range(128, 4000, 13))
