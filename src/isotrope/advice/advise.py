"""Advice without labels: for a model and its text, or from the geometry of vectors alone."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from isotrope.advice.advice import Advice
from isotrope.advice.advise_model import LEAST, Progress, advise_model
from isotrope.advice.geometry import compute_geometry, compute_neighbours_kept
from isotrope.errors import InputError
from isotrope.repairs import Centering
from isotrope.repairs.linear import LinearRepair
from isotrope.repairs.softdecay import fit_scale_free_softdecay
from isotrope.sources.input import Input
from isotrope.sources.source import Source
from isotrope.statistics import Moments, MomentsAndSample

#: The maximum number of vectors whose neighbours are compared.
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
    """Advise whether to repair a space, how strongly, and for a model in which layers, without labels.

    Without layers and pooling, a sentence-transformers model is evaluated as it is, in the space "encoded".

    Args:
        model: as for `isotrope.scan`; needs a text.
        text: as for `isotrope.scan`.
        vectors: vectors alone, without a model and a text.
        layers: one choice such as "-1" or "1,-1" (averaged); by default the last layer, or where that is collapsed
            perhaps its average with the first.
        pooling: how tokens become a row, by default the mean.
        seed: seed of all random choices.
        progress: called with a stage, what is done and the total.
        reading: more arguments of `isotrope.scan`, such as column or device.

    Returns:
        The advice with its reasons; its repair is fitted.

    Examples:
        >>> import numpy as np
        >>> rows = np.random.default_rng(0).normal(size=(500, 16))
        >>> advise(vectors=rows).words, advise(vectors=rows + 5).words
        ('leave it alone', 'repair it by Centering')
    """
    tell = progress or (lambda *_: None)
    if vectors is not None:
        if model is not None or text is not None or layers is not None:
            raise InputError("got vectors and also a model, a text or layers; give the vectors alone.")
        return _advise_vectors(Input(vectors=vectors, precision="fast", **reading), seed, tell)
    if text is None:
        raise InputError("got neither vectors nor a text; give one of them, the text with a model.")
    return advise_model(Input(model=model, text=text, pooling=pooling, **reading), layers, seed, tell)


def _advise_vectors(reading: Input, seed: int, tell: Progress) -> Advice:
    """Advise from the geometry of vectors alone."""
    moments, sample = _read_moments(reading.open(), seed, tell)
    if moments.n < LEAST:
        raise InputError(f"got {moments.n:,} rows, expected at least {LEAST} to decide anything; give more rows.")
    if moments.constant:
        raise InputError(f"all {moments.n:,} rows are the same, so there is nothing to advise on.")
    geometry = compute_geometry(moments)
    defect = geometry.repairable
    # Rows whose only defect is their mean need no more than centering.
    repair: LinearRepair = (
        fit_scale_free_softdecay(moments) if geometry.uneven or not defect else Centering().fit(moments)
    )
    neighbours_kept = compute_neighbours_kept(sample, repair.transform(sample))
    reasons = [
        f"In the vectors {defect}, and every such space of the validation gained from a repair."
        if defect
        else f"The vectors are neither collapsed nor in few directions: two rows have a cosine of "
        f"{geometry.mean_cosine:.2f} on average, IsoScore is {geometry.isoscore_share:.0%} of what isotropic rows "
        "give.",
        f"A repair would keep {neighbours_kept:.0%} of each row's ten nearest neighbours.",
        "This advice is based on the shape of the rows alone, which is weaker than evidence from a model and its text.",
    ]
    return Advice(reading, repair if defect else None, "geometry", reasons, geometry, moments.n, seed)


def _read_moments(source: Source, seed: int, tell: Progress) -> tuple[Moments, NDArray[Any]]:
    """Compute the moments of all rows and sample 2,000 rows, in one pass."""
    source = source.with_progress(lambda done, total: tell("reading rows", done, total))
    found = source.reduce(MomentsAndSample.empty_for(source.width, _MOST_ROWS, seed))
    return found.moments, found.sample.values
