"""Sounds as a model's input: read, mixed to one channel, resampled, cut in windows and turned into features."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.errors import InputError, MissingExtra, describe_error
from isotrope.sources.media.clips import Clip
from isotrope.sources.media.corpus import Item, as_file
from isotrope.sources.models.load import Loaded

UNIT = "sounds"

#: Seconds at which sounds are cut unless the model takes a fixed length, and below which an end is left out.
WINDOW, SHORTEST = 20.0, 0.1

#: What processors call the length that a model takes, and its unit in seconds: EnCodec's, Whisper's, CLAP's, AST's.
_FIXED = {"chunk_length_s": 1.0, "chunk_length": 1.0, "max_length_s": 1.0, "max_length": 0.01}

#: How processors are asked which part of their features is sound.
_MASK = "return_attention_mask"

#: A window whose largest sample is below this (80 dB below full scale) is silence.
SILENCE = 1e-4

#: Rates in Hz that are believed: resampling from one beyond them would make millions of samples of a few.
SLOWEST, FASTEST = 1_000, 1_000_000

#: Samples that are read together, of all channels.
_BLOCK = 1 << 16

#: Windows of one sound that can be told apart.
_WINDOWS = 1 << 24

Samples = NDArray[np.float32]


def clips(loaded: Loaded, item: Item, counts: Counter[str]) -> Iterator[Clip]:
    """A clip for each window of a sound; windows of silence, short ends and broken sounds are counted."""
    counts[UNIT] += 1
    rate, seconds = find_rate(loaded), _find_window(loaded)
    whole = False
    try:
        for number, window in enumerate(windows(resample(_blocks(item.data), rate), round(seconds * rate))):
            whole = True
            counts["windows"] += 1
            if len(window) < SHORTEST * rate:
                counts["short_windows"] += 1
            elif np.abs(window).max() < SILENCE:
                counts["silent_windows"] += 1
            else:
                yield _clip(loaded, item, number, window, rate)
    except _Broken:
        whole = False
    if not whole:  # broken, or a file without a single sample
        counts["broken_sounds"] += 1


class _Broken(Exception):
    """A sound that cannot be read, or not to its end."""


def _blocks(data: Any) -> Iterator[tuple[Samples, int]]:
    """Blocks of samples in one channel, with their rate, of a file, bytes, or a pair of samples and their rate."""
    if isinstance(data, tuple):
        samples, rate = data
        yield _mono(np.asarray(samples, np.float32).reshape(len(samples), -1)), int(rate)
        return
    try:
        import soundfile
    except (ImportError, OSError):  # the latter where the library it wraps is missing
        raise MissingExtra("soundfile", "audio", "reading sound") from None
    try:
        with soundfile.SoundFile(as_file(data)) as file:
            if not SLOWEST <= file.samplerate <= FASTEST:
                raise _Broken(f"a rate of {file.samplerate} Hz")
            while len(block := file.read(max(_BLOCK // file.channels, 1), dtype="float32", always_2d=True)):
                yield _mono(block), file.samplerate
    except (soundfile.SoundFileError, OSError, TypeError, ValueError) as error:
        raise _Broken(str(error)) from error


def _mono(block: Samples) -> Samples:
    """The mean of the channels, (n, c) -> (n,)."""
    mixed: Samples = block.mean(axis=1, dtype=np.float32)
    if not np.isfinite(mixed).all():
        raise _Broken("samples that are no numbers")
    return mixed


def resample(blocks: Iterator[tuple[Samples, int]], rate: int) -> Iterator[Samples]:
    """The same sound at another rate, block by block, as if it were resampled whole.

    >>> list(resample(iter([(np.zeros(2, np.float32), 16000)]), 16000))
    [array([0., 0.], dtype=float32)]
    """
    stream, last = None, None
    for block, own in blocks:
        if own == rate:
            yield block
            continue
        if stream is None:
            try:
                import soxr
            except ImportError:
                raise MissingExtra("soxr", "audio", f"resampling sound from {own:,} to {rate:,} Hz") from None
            stream = soxr.ResampleStream(own, rate, 1, dtype="float32")
        if last is not None:
            yield stream.resample_chunk(last)
        last = block
    if stream is not None and last is not None:
        yield stream.resample_chunk(last, last=True)


def windows(blocks: Iterator[Samples], size: int) -> Iterator[Samples]:
    """Blocks cut anew, each `size` samples but for the last.

    >>> [w.tolist() for w in windows(iter([np.arange(3), np.arange(3, 7)]), 5)]
    [[0, 1, 2, 3, 4], [5, 6]]
    """
    waiting: list[Samples] = []
    count = 0
    for block in blocks:
        waiting.append(block)
        count += len(block)
        if count >= size:
            joined = np.concatenate(waiting)
            whole = len(joined) - len(joined) % size
            yield from joined[:whole].reshape(-1, size)
            waiting, count = [joined[whole:]], len(joined) - whole
    if count:
        yield np.concatenate(waiting)


def find_rate(loaded: Loaded) -> int:
    """The rate that a model wants."""
    rate = getattr(loaded.processor, "sampling_rate", None)
    if not isinstance(rate, int):
        raise InputError(
            f"the processor of {loaded.name} says no sampling rate; add it to its preprocessor_config.json, as in "
            '"sampling_rate": 16000.'
        )
    return rate


def _find_window(loaded: Loaded) -> float:
    """Seconds at which sounds are cut: what the model takes, where it takes a fixed length."""
    for name, second in _FIXED.items():
        length = getattr(loaded.processor, name, None)
        if isinstance(length, (int, float)) and length > 0:
            return float(length) * second
    return WINDOW


def _clip(loaded: Loaded, item: Item, number: int, window: Samples, rate: int) -> Clip:
    asked: dict[str, Any] = {"sampling_rate": rate, "return_tensors": "pt"}
    taken = inspect.signature(loaded.processor).parameters.values()
    if any(p.name == _MASK or p.kind is p.VAR_KEYWORD for p in taken):  # not EnCodec's
        asked[_MASK] = True
    try:
        made = loaded.processor(window, **asked)
    except (TypeError, ValueError) as error:
        reason = describe_error(error)
        raise InputError(f"the processor of {loaded.name} cannot prepare sound ({reason}); check its files.") from error
    mask = made.get("attention_mask")
    name = next(name for name in made if not name.endswith("_mask"))
    share = 1.0 if mask is None else float(mask.sum()) / mask.shape[-1]
    return Clip(item.id * _WINDOWS + number, item.group, {name: made[name]}, share)
