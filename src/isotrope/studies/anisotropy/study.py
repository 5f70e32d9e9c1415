"""Anisotropy of layers, drift, and blocks under a common bias: the protocol of Godey et al. 2023."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.media.feature_maps import MAPS
from isotrope.studies.anisotropy.attention_variants import measure_variants
from isotrope.studies.anisotropy.blocks import measure_blocks, measure_fresh_block, measure_signs
from isotrope.studies.anisotropy.checkpoints import measure_checkpoints, name_checkpoints
from isotrope.studies.anisotropy.layers import BY_LAYER, join_layers, measure_layers
from isotrope.studies.model_blocks import check_block_width, check_blocks
from isotrope.studies.options import StudyOptions
from isotrope.studies.result import Study
from isotrope.studies.runner import repeat_for_models, run_study

PAPER = "Godey, de la Clergerie and Sagot 2023, Is Anisotropy Inherent to Transformers?"


def anisotropy(
    *,
    output: str | Path,
    images: str | Path | None = None,
    sounds: str | Path | None = None,
    texts: int | None = None,
    width: int = 768,
    blocks: Sequence[int] | None = None,
    maps: str = "places",
    checkpoints: Sequence[str | Path] | None = None,
    **common: Any,
) -> Study:
    """Mean cosine and drift of every layer, and fresh and trained blocks under a common bias.

    Args:
        output: the folder for tables, figures and runs.
        images: what image models read, as for a scan.
        sounds: what audio models read, as for a scan.
        texts: the most texts, images or sounds to read.
        width: the width of the fresh block, 768 as in BERT.
        blocks: blocks of the models by number, negative ones from the end; None for the first and the middle one.
        maps: what the rows of a convolution are, which the paper leaves open: the "places" of a map, each a row of
            channels, or the "whole" map as one row for each image.
        checkpoints: hub ids or folders of one text model in the order of its training, whose drift and attention are
            followed; none by default.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`.

    References:
        Godey, de la Clergerie and Sagot 2023, Is Anisotropy Inherent to Transformers?
    """
    options = StudyOptions(output=output, images=images, sounds=sounds, texts=texts, **common)
    check_block_width(width)
    if maps not in MAPS:
        raise InputError(f"the rows of maps are {' or '.join(MAPS)}, not {maps!r}.")
    experiments = repeat_for_models(options, {"layers": partial(measure_layers, maps=maps)})
    experiments |= {
        "all layers": partial(join_layers, options),
        "fresh block": partial(measure_fresh_block, options, width),
        "fresh block signs": partial(measure_signs, options, width),
        "attention variants": partial(measure_variants, options, width),
    }
    experiments |= repeat_for_models(options, {"blocks": partial(measure_blocks, numbers=blocks)})
    if checkpoints:
        name_checkpoints(checkpoints)
        experiments["checkpoints"] = partial(measure_checkpoints, options, checkpoints)
    media = {"images": str(images) if images else None, "sounds": str(sounds) if sounds else None}
    chosen = {"maps": maps, "checkpoints": [str(one) for one in checkpoints or ()]}
    settings = {"width": width, "blocks": None if blocks is None else list(blocks), **chosen, **media}
    return run_study("anisotropy", PAPER, experiments, options, settings, partial(_prepare, options, blocks))


def _prepare(options: StudyOptions, blocks: Sequence[int] | None) -> None:
    """Raise an error for blocks that a model does not have; say how long reading will take."""
    for model in options.names if blocks and not options.resume else ():
        loaded = options.input(model).load(options.modality(model))
        check_blocks(loaded, blocks or ())
    options.announce(",".join(BY_LAYER), 1.0)
