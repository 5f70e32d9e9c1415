"""What is wrong with a space, in plain words, from its readings and one table of thresholds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from isotrope.findings import Findings, Reading, Statement, Verdict, in_layer_order


class Threshold(NamedTuple):
    """From `value` of `measure` on, in the worse direction, a layer is called `word`; `evidence` says why there."""

    word: str
    level: int
    measure: str
    value: float
    meaning: str
    evidence: str


#: The one table of what the words mean. Lower levels come first; a layer gets the worst word that applies.
THRESHOLDS = (
    Threshold(
        "leaning",
        1,
        "mean_cosine",
        0.2,
        "rows lean to one side",
        "Speech and text models of Godey et al. 2024 lie above 0.2 in nearly all layers; the contrastively trained "
        "all-MiniLM-L6-v2 stays below it as sentence vectors.",
    ),
    Threshold(
        "narrow",
        2,
        "mean_cosine",
        0.5,
        "rows lie in a narrow cone",
        "SmolLM2-135M's last layer stands at 0.80; removing the cone gains 20 points of STS-B there, while at "
        "all-MiniLM-L6-v2's level the same repair costs points.",
    ),
    Threshold(
        "collapsed",
        3,
        "mean_cosine",
        0.9,
        "nearly all rows point the same way",
        "SmolLM2-135M's middle layers stand at 0.999: differences between tokens hide in the third decimal.",
    ),
    Threshold(
        "few directions",
        2,
        "effective_rank_share",
        0.1,
        "a few directions carry nearly all of the spread around the mean",
        "Effective rank of the covariance over that of isotropic rows of the same number and width; healthy sentence "
        "encoders keep more than a third.",
    ),
)

#: Below this many rows for each dimension the spectrum cannot be told from noise.
ROWS_PER_DIMENSION = 1.0

#: Fewer rows than this say nothing of a space.
FEWEST_ROWS = 40


def judge(findings: Findings) -> Verdict:
    """The verdict on a run: the worst word that applies to any layer, and a sentence for each kind of trouble."""
    cosines = {r.layer: r for r in findings.readings if r.measure == "mean_cosine" and r.group is None}
    if not cosines:
        return Verdict("unknown", (Statement(0, "No verdict: mean_cosine was not among the measures.", sure=False),))
    few = [r for r in cosines.values() if r.n < FEWEST_ROWS]
    if few:
        text = f"Too few rows to tell: {few[0].n:,}; give at least {FEWEST_ROWS}, better some thousands."
        return Verdict("too few rows", (Statement(0, text, sure=False),))
    statements = [*_cones(findings, cosines), *_few_directions(findings), *_notices(findings)]
    statements.sort(key=lambda s: -s.level)
    worst = max((s.level for s in statements), default=0)
    width = int(findings.source.get("width") or 0)
    enough = min(r.n for r in cosines.values()) >= ROWS_PER_DIMENSION * width
    if worst == 0:
        word = "healthy" if enough else "too few rows"
        rows = min(r.n for r in cosines.values())
        text = (
            f"Healthy: {_span(findings, list(cosines.values()))} has no common direction (mean cosine "
            f"{_range(list(cosines.values()))})."
            if enough
            else f"No cone is visible, but {rows:,} rows for {width:,} dimensions are too few to call it healthy."
        )
        return Verdict(word, (Statement(0, text, tuple(cosines), sure=enough), *statements))
    words = {t.level: t.word for t in THRESHOLDS if t.measure == "mean_cosine"}
    cone = max((s.level for s in statements if s.text.startswith(_CONE)), default=0)
    return Verdict(words[cone] if cone >= worst or cone > 0 else "few directions", tuple(statements))


_CONE = "Cone"


def _cones(findings: Findings, cosines: dict[int | str | None, Reading]) -> list[Statement]:
    """One statement for each threshold of the mean cosine that some layers pass."""
    levels = sorted((t for t in THRESHOLDS if t.measure == "mean_cosine"), key=lambda t: -t.value)
    left = [r for r in cosines.values() if math.isfinite(r.value)]
    found = []
    for t in levels:
        here = [r for r in left if r.value >= t.value]
        left = [r for r in left if r.value < t.value]
        if here:
            unsure = [r for r in here if math.isfinite(r.low) and r.low < t.value]
            layers = tuple(in_layer_order((r.layer for r in here if r.layer is not None), findings.layers))
            text = (
                f"{_CONE}: in {_span(findings, here)} {t.meaning} (mean cosine {_range(here)}; "
                f"isotropic rows give 0){_because(findings, here)}."
            )
            if unsure:
                text += f" Layer {unsure[0].layer} is close to the threshold {t.value}."
            found.append(Statement(t.level, text, layers, sure=not unsure))
    return found


def _because(findings: Findings, cone: Sequence[Reading]) -> str:
    """What makes the cone, where the drift says so."""
    worst = max(cone, key=lambda r: r.value)
    for r in findings.readings:
        if (r.measure, r.layer, r.group) == ("drift_share", worst.layer, None) and math.isfinite(r.value):
            return f", and the common mean holds {100 * r.value:.0f} % of their squared length"
    return ""


def _few_directions(findings: Findings) -> list[Statement]:
    threshold = next(t for t in THRESHOLDS if t.measure == "effective_rank_share")
    hits = [
        r
        for r in findings.readings
        if r.measure == "effective_rank_eigenvalues"
        and r.group is None
        and math.isfinite(r.value)
        and math.isfinite(r.null)
        and r.n > int(findings.source.get("width") or 0)
        and r.value / r.null < threshold.value
    ]
    if not hits:
        return []
    worst = min(hits, key=lambda r: r.value / r.null)
    layers = tuple(in_layer_order((r.layer for r in hits if r.layer is not None), findings.layers))
    text = (
        f"Few directions: in {_span(findings, hits)} {threshold.meaning} (effective rank "
        f"{worst.value:.1f} in layer {worst.layer}, isotropic rows give {worst.null:.0f})."
    )
    return [Statement(threshold.level, text, layers)]


def _notices(findings: Findings) -> list[Statement]:
    """What the user should know of the rows themselves."""
    counts, found = findings.counts, []
    left_out = [
        f"{counts[name]:,} {what}"
        for name, what in (("zero_rows", "zero rows"), ("nonfinite_rows", "rows with NaN or infinity"))
        if counts.get(name)
    ]
    if left_out:
        found.append(Statement(0, f"Left out: {' and '.join(left_out)} (counted in all layers)."))
    if counts.get("truncated_texts"):
        text = (
            f"Cut short: {counts['truncated_texts']:,} of {counts.get('texts', 0):,} texts were longer than the "
            f"limit, {counts.get('truncated_tokens', 0):,} tokens left out."
        )
        found.append(Statement(0, text))
    return found


def _span(findings: Findings, readings: Sequence[Reading]) -> str:
    """Layers in words: "layers 3 to 28", "layer 0", "all 7 layers", "the space"."""
    layers = in_layer_order((r.layer for r in readings if r.layer is not None), findings.layers)
    if len(findings.layers) == 1:
        return "the space"
    if len(layers) == len(findings.layers):
        return f"all {len(layers)} layers"
    at = [findings.layers.index(layer) for layer in layers]
    if len(layers) == 1:
        return f"layer {layers[0]}"
    if at == list(range(at[0], at[-1] + 1)):
        return f"layers {layers[0]} to {layers[-1]}"
    return "layers " + ", ".join(map(str, layers))


def _range(readings: Sequence[Reading]) -> str:
    low, high = min(r.value for r in readings), max(r.value for r in readings)
    return f"{low:.3f}" if f"{low:.3f}" == f"{high:.3f}" else f"{low:.3f} to {high:.3f}"
