"""Advice without labels, for a model and its text or for vectors alone."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from isotrope.advice.advice import Advice
from isotrope.advice.advise_model import LEAST, Progress, advise_model
from isotrope.advice.geometry import geometry
from isotrope.advice.neighbours import kept
from isotrope.advice.scale_free_softdecay import bend
from isotrope.errors import InputError
from isotrope.repairs import Centering
from isotrope.repairs.linear import LinearRepair
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.statistics import Moments, MomentsAndSample

#: Rows of vectors whose neighbours are looked at.
_MOST_ROWS = 2_000


def advise(
    *,
    model: Any = None,
    text: Any = None,
    vectors: Any = None,
    layers: str | None = None,
    pooling: str | None = None,
    seed: int = 0,
    progress: Progress | None = None,
    **reading: Any,
) -> Advice:
    """Whether to repair a space, how strongly, and for a model in which layers; nothing needs a label.

    model and text, as for `isotrope.scan`, or vectors alone. layers: one choice such as "-1" or "1,-1" (averaged), by
    default the last layer or, where that is collapsed, perhaps its average with the first. pooling: by default the
    mean; without layers and pooling a sentence-transformers model is taken as it is, the space "encoded". reading: more
    of `isotrope.scan`'s arguments, such as column or device.

    >>> import numpy as np
    >>> rows = np.random.default_rng(0).normal(size=(500, 16))
    >>> advise(vectors=rows).words, advise(vectors=rows + 5).words
    ('leave it alone', 'repair it by Centering')
    """
    tell = progress or (lambda *_: None)
    if vectors is not None:
        if model is not None or text is not None or layers is not None:
            raise InputError("got vectors and also a model, a text or layers; give the vectors alone.")
        return _of_vectors(Input(vectors=vectors, precision="fast", **reading), seed, tell)
    if text is None:
        raise InputError("got neither vectors nor a text; give one of them, the text with a model.")
    return advise_model(Input(model=model, text=text, pooling=pooling, **reading), layers, seed, tell)


def _of_vectors(reading: Input, seed: int, tell: Progress) -> Advice:
    moments, sample = _read(reading.open(), seed, tell)
    if moments.n < LEAST:
        raise InputError(f"got {moments.n:,} rows, expected at least {LEAST} to decide anything; give more rows.")
    if moments.constant:
        raise InputError(f"all {moments.n:,} rows are the same, so there is nothing to advise on.")
    seen = geometry(moments)
    wrong = seen.repairable
    # Rows that lean to one side and are even otherwise need no more than their mean taken away.
    repair: LinearRepair = bend(moments) if seen.uneven or not wrong else Centering().fit(moments)
    same = kept(sample, repair.transform(sample))
    reasons = [
        f"In the vectors {wrong}, and every space like this that was tried gained from a repair."
        if wrong
        else f"The vectors are neither collapsed nor in few directions: two rows have a cosine of "
        f"{seen.mean_cosine:.2f} on average, IsoScore is {seen.isoscore_share:.0%} of what isotropic rows give.",
        f"A repair would keep {same:.0%} of each row's ten nearest neighbours.",
        "This is told from the shape of the rows alone, which is weaker than evidence from a model and its text.",
    ]
    return Advice(reading, repair if wrong else None, "geometry", reasons, seen, moments.n, seed)


def _read(source: Source, seed: int, tell: Progress) -> tuple[Moments, NDArray[Any]]:
    """Moments of all rows, and 2,000 of the rows, in one pass."""
    source = source.with_progress(lambda done, total: tell("reading rows", done, total))
    found = source.reduce(MomentsAndSample.empty_for(source.width, _MOST_ROWS, seed))
    return found.moments, found.sample.values
