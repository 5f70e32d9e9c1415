"""What a scan of all layers over images or sound costs over reading them and the plain forward passes.

Plain passes and scans alternate; the ratio of their medians is printed. The bars are those of text: 1.15 with moment
and token measures, 1.30 with sequence measures and intervals too. Readings after the pass take the same time however
much was read, so that their seconds stand beside the ratio, and with them the ratio of the pass alone.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

import numpy as np

from isotrope.pipeline import compute_findings, resolve_measures
from isotrope.sources.media.corpus import open_media
from isotrope.sources.media.source import MediaSource
from isotrope.sources.models.load import Loaded
from isotrope.statistics import Collection
from machine import describe, seconds

KINDS = {
    "moments and tokens": ("moments,tokens", 0, 1.15),
    "and sequences and intervals": ("moments,tokens,sequences", 20_000, 1.30),
}


def images(count: int) -> MediaSource:
    """Noise in the size of photographs, read by a model of the ViT-small shape; random weights take the same time."""
    import torch
    from PIL import Image
    from transformers import ViTConfig, ViTImageProcessorPil, ViTModel

    torch.manual_seed(0)
    model = ViTModel(ViTConfig(hidden_size=384, num_attention_heads=6, intermediate_size=1536), add_pooling_layer=False)
    rng = np.random.default_rng(0)
    held = [Image.fromarray(rng.integers(0, 255, (375, 500, 3), dtype=np.uint8)) for _ in range(count)]
    loaded = Loaded(model.eval(), None, "ViT-small shape", modality="image", processor=ViTImageProcessorPil())
    return MediaSource(loaded, open_media(held, "image"))


def sounds(count: int) -> MediaSource:
    """Five seconds of noise each, heard by a model of the wav2vec 2.0 base shape."""
    import torch
    from transformers import Wav2Vec2Config, Wav2Vec2FeatureExtractor, Wav2Vec2Model

    torch.manual_seed(0)
    held = [(np.random.default_rng(i).normal(scale=0.1, size=80_000), 16_000) for i in range(count)]
    model = Wav2Vec2Model(Wav2Vec2Config()).eval()
    loaded = Loaded(model, None, "wav2vec 2.0 shape", modality="audio", processor=Wav2Vec2FeatureExtractor())
    return MediaSource(loaded, open_media(held, "audio"))


def plain(source: MediaSource) -> None:
    """Reading and the forward passes alone."""
    for clips, _ in source._clips():
        source._run(clips)


def scan(source: MediaSource, measures: str, sample: int) -> tuple[float, float]:
    """Seconds of the pass, and of the readings after it."""
    options = resolve_measures(measures, sample=sample)
    held: list[Any] = []
    passed = seconds(lambda: held.append(source.reduce(Collection(options.wanted))))
    return passed, seconds(lambda: compute_findings(held[0], source, options, lambda *_: None))


#: What is read, and how much of it: some 50,000 patches, and some 16,000 frames.
SOURCES = {"images": (images, 256), "sounds": (sounds, 64)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=None, help="images, or windows of sound")
    parser.add_argument("--only", choices=SOURCES, default=None)
    arguments = parser.parse_args()
    print(describe())
    for name, (make, count) in SOURCES.items():
        if arguments.only not in (None, name):
            continue
        source = make(arguments.count or count)
        plains: list[float] = []
        scans: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
        plain(source)
        for _ in range(arguments.rounds):
            plains.append(seconds(lambda s=source: plain(s)))
            for kind, (measures, sample, _) in KINDS.items():
                scans[kind].append(scan(source, measures, sample))
        base = statistics.median(plains)
        print(f"\n{source.loaded.name}, {source.total} {name}, {len(source.layers)} layers of {source.width}")
        print(f"  plain forward with hidden states: {base:.2f} s")
        for kind, (_, _, bar) in KINDS.items():
            ratio = statistics.median(map(sum, scans[kind])) / base
            passed, after = (statistics.median(times) for times in zip(*scans[kind], strict=True))
            print(f"  scan, {kind}: ratio {ratio:.3f} (bar {bar:.2f}: {'met' if ratio <= bar else 'MISSED'})")
            print(f"    the pass alone {passed / base:.3f}, then {after:.2f} s of readings")


if __name__ == "__main__":
    main()
