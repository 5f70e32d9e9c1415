"""Images as a model's input: read, made upright and RGB, and prepared by the model's own processor."""

from __future__ import annotations

import inspect
import os
from collections import Counter
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

from isotrope.errors import InputError, MissingExtra, describe_error
from isotrope.sources.media.clips import Clip
from isotrope.sources.media.corpus import Item, as_file
from isotrope.sources.models.load import Loaded

UNIT = "images"

#: Pixels beyond which an image is not unpacked; Pillow warns from about there on.
MOST_PIXELS = 90_000_000

#: Bytes beyond which a file is not looked at.
MOST_BYTES = 1 << 30


def clips(loaded: Loaded, item: Item, counts: Counter[str]) -> Iterator[Clip]:
    """One clip for an image; none for one that cannot be read, which is counted."""
    counts[UNIT] += 1
    image = read(item.data)
    if image is None:
        counts["broken_images"] += 1
        return
    yield Clip(item.id, item.group, _inputs(loaded, image))


def read(data: Any) -> Any | None:
    """An upright RGB image from a path, bytes or an image; None where it cannot be read.

    >>> from PIL import Image
    >>> read(Image.new("L", (4, 3))).mode, read(b"no image")
    ('RGB', None)
    """
    try:
        from PIL import Image, ImageOps
    except ImportError:
        raise MissingExtra("pillow", "vision", "reading images") from None
    try:
        image = data if isinstance(data, Image.Image) else Image.open(_open_image(data))
        if image.width * image.height > MOST_PIXELS:  # told from its header, before anything is unpacked
            return None
        return ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError, SyntaxError, TypeError, AttributeError, Image.DecompressionBombError):
        return None


def _open_image(data: Any) -> Any:
    """The bytes of an image in memory: of a file, Pillow would ask for as many as a header claims."""
    file = as_file(data)
    if not isinstance(file, str):
        return file
    if os.path.getsize(file) > MOST_BYTES:
        raise ValueError("a file too large for an image")
    return BytesIO(Path(file).read_bytes())


def _inputs(loaded: Loaded, image: Any) -> dict[str, Any]:
    import torch

    try:
        made = loaded.processor(images=[image], return_tensors="pt") if _of_library(loaded) else loaded.processor(image)
    except (TypeError, ValueError) as error:
        reason = describe_error(error)
        raise InputError(
            f"the processor of {loaded.name} cannot prepare an image ({reason}); check its files."
        ) from error
    if isinstance(made, torch.Tensor):
        return {"pixel_values": made if made.ndim == 4 else made[None]}
    pixels = made["pixel_values"]
    return {"pixel_values": pixels} | ({"noise": _in_order(loaded, pixels)} if _hides(loaded) else {})


def _hides(loaded: Loaded) -> bool:
    """Whether a model leaves out the patches that get the most noise and mixes the others, as ViTMAE does."""
    masks = hasattr(loaded.config, "mask_ratio") and isinstance(getattr(loaded.config, "patch_size", None), int)
    return masks and "noise" in inspect.signature(loaded.model.forward).parameters


def _in_order(loaded: Loaded, pixels: Any) -> Any:
    """Noise (1, patches) that leaves patches where they are; the share that is left out was set to none on loading."""
    import torch

    size = loaded.config.patch_size
    return torch.arange((pixels.shape[-2] // size) * (pixels.shape[-1] // size))[None]


def _of_library(loaded: Loaded) -> bool:
    """Whether the processor is one of transformers, and not a plain function from an image to a tensor."""
    return hasattr(loaded.processor, "to_dict")
