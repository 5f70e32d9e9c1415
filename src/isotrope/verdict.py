"""What is wrong with a space, in plain words, from its readings and one table of thresholds."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
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


#: The one table of what the words mean. Of the words for one measure a layer gets the worst that applies.
THRESHOLDS = (
    Threshold(
        "collapsed",
        3,
        "mean_cosine",
        0.9,
        "nearly all rows point the same way",
        "SmolLM2-135M's middle layers, mean-pooled over 644 WikiText sentences, stand at 0.95 to 0.995 "
        "(layers 10, 15, 20): sentences differ in the second or third decimal.",
    ),
    Threshold(
        "narrow",
        2,
        "mean_cosine",
        0.5,
        "the rows lie in a narrow cone",
        "Between SmolLM2-135M's last layer, mean-pooled (0.79), and what all-MiniLM-L6-v2 shows anywhere (at "
        "most 0.27); its tokens stand at 0.46 to 0.55, on both sides of the line.",
    ),
    Threshold(
        "leaning",
        1,
        "mean_cosine",
        0.2,
        "the rows lean to one side",
        "Godey et al. find every layer of every speech model at 0.2 or more; the contrastively trained "
        "all-MiniLM-L6-v2 stays below it in all layers of tokens but one (0.06 to 0.18, layer 5 at 0.27).",
    ),
    Threshold(
        "few directions",
        2,
        "effective_rank_share",
        0.1,
        "a few directions carry nearly all of the spread around the mean",
        "Effective rank of the covariance over that of isotropic rows of the same number and width; "
        "all-MiniLM-L6-v2 keeps 0.30 to 0.49 in its layers of tokens.",
    ),
)

#: Which way each of the measures in the table is worse: 1 where more is, -1 where less is.
_WORSE = {"mean_cosine": 1, "effective_rank_share": -1}

#: Below this many rows for each dimension the spread cannot be told from noise.
ROWS_PER_DIMENSION = 1.0

#: Fewer rows than this say nothing of a space.
FEWEST_ROWS = 40


_NO_INTERVAL = "How sure cannot be said: there is no interval."


class _Score(NamedTuple):
    """One layer's number to hold against the thresholds, its interval (NaN where none), and where it comes from."""

    value: float
    low: float
    high: float
    reading: Reading

    @property
    def layer(self) -> int | str:
        assert self.reading.layer is not None
        return self.reading.layer


def judge(findings: Findings) -> Verdict:
    """The verdict on a run: the worst word that applies to any layer, and a sentence for each kind of trouble."""
    cosines, shares = _cosines(findings), _rank_shares(findings)
    if not cosines:
        text = "No verdict: the mean cosine was not measured, or has no value."
        return Verdict("unknown", (Statement(0, text, sure=False), *_notices(findings)))
    rows = min(s.reading.n for s in cosines)
    if rows < FEWEST_ROWS:
        text = f"Too few rows to tell: {rows:,}; give at least {FEWEST_ROWS}, better some thousands."
        return Verdict("too few rows", (Statement(0, text, sure=False), *_notices(findings)))
    troubles = [
        *_troubles(findings, "mean_cosine", cosines, _cone_numbers(findings)),
        *_troubles(findings, "effective_rank_share", shares, _rank_numbers),
    ]
    if troubles:
        troubles.sort(key=lambda trouble: -trouble[1].level)
        return Verdict(troubles[0][0], (*(s for _, s in troubles), *_notices(findings)))
    word, statement = _no_trouble(findings, cosines, shares, rows)
    return Verdict(word, (statement, *_notices(findings)))


def _cosines(findings: Findings) -> list[_Score]:
    return [_Score(r.value, r.low, r.high, r) for r in _readings(findings, "mean_cosine")]


def _rank_shares(findings: Findings) -> list[_Score]:
    """The effective rank of each layer over what isotropic rows would give, where there are rows enough to tell."""
    enough = ROWS_PER_DIMENSION * int(findings.source.get("width") or 0)
    return [
        _Score(r.value / r.null, r.low / r.null, r.high / r.null, r)
        for r in _readings(findings, "effective_rank_eigenvalues")
        if r.n > enough and r.null > 0
    ]


def _readings(findings: Findings, measure: str) -> Iterator[Reading]:
    for r in findings.readings:
        if (r.measure, r.group, r.variant) == (measure, None, "definition") and math.isfinite(r.value):
            yield r


def _troubles(
    findings: Findings, measure: str, scores: Sequence[_Score], numbers: Callable[[Sequence[_Score]], str]
) -> Iterator[tuple[str, Statement]]:
    """A word and a statement for each threshold of a measure that some layers pass."""
    worse, left = _WORSE[measure], list(scores)
    for t in (t for t in THRESHOLDS if t.measure == measure):  # the worst stands first
        here = [s for s in left if worse * s.value >= worse * t.value]
        left = [s for s in left if worse * s.value < worse * t.value]
        if here:
            sure, how_sure = _how_sure(findings, here, t)
            text = f"{t.word.capitalize()}: in {_span(findings, here)} {t.meaning} ({numbers(here)}). {how_sure}"
            layers = tuple(in_layer_order((s.layer for s in here), findings.layers))
            yield t.word, Statement(t.level, text, layers, sure)


def _how_sure(findings: Findings, here: Sequence[_Score], t: Threshold) -> tuple[bool, str]:
    """Whether every interval lies beyond the threshold, and that in words."""
    worse = _WORSE[t.measure]
    ends = [s.low if worse > 0 else s.high for s in here]
    if not all(map(math.isfinite, ends)):
        return False, _NO_INTERVAL
    short = [s for s, end in zip(here, ends, strict=True) if worse * end < worse * t.value]
    side = "below" if worse > 0 else "above"
    if not short:
        return True, f"Sure: no 95 % interval reaches {side} {t.value}."
    if len(here) == 1:
        return False, f"Not sure: its 95 % interval reaches {side} {t.value}."
    where = layers_text(in_layer_order((s.layer for s in short), findings.layers), findings.layers)
    return False, f"Not sure of {where}: the 95 % interval reaches {side} {t.value}."


def _cone_numbers(findings: Findings) -> Callable[[Sequence[_Score]], str]:
    drift = {r.layer: r.value for r in _readings(findings, "drift_share")}

    def numbers(here: Sequence[_Score]) -> str:
        text = f"mean cosine {_range([s.value for s in here])}, isotropic rows give 0"
        worst = max(here, key=lambda s: s.value).layer
        if worst in drift:
            text += f"; the common mean holds {100 * drift[worst]:.0f} % of the squared length"
        return text

    return numbers


def _rank_numbers(here: Sequence[_Score]) -> str:
    worst = min(here, key=lambda s: s.value).reading
    return f"effective rank {worst.value:.1f}, isotropic rows give {worst.null:.0f}"


def _no_trouble(
    findings: Findings, cosines: Sequence[_Score], shares: Sequence[_Score], rows: int
) -> tuple[str, Statement]:
    """Healthy, where there is enough to say so."""
    layers = tuple(in_layer_order((s.layer for s in cosines), findings.layers))
    width = int(findings.source.get("width") or 0)
    cone = f"no common direction in {_span(findings, cosines)} (mean cosine {_range([s.value for s in cosines])})"
    if rows <= ROWS_PER_DIMENSION * width:
        text = f"No trouble seen, but {rows:,} rows for {width:,} dimensions are too few to call it healthy: {cone}."
        return "too few rows", Statement(0, text, layers, sure=False)
    if not shares:
        text = f"{cone[0].upper()}{cone[1:]}; whether few directions carry the spread was not measured."
        return "unknown", Statement(0, text, layers, sure=False)
    spread = _range([s.value for s in shares], percent=True)
    sure, how_sure = _how_sure_of_health(cosines, shares)
    text = f"Healthy: {cone}, and the spread has {spread} of the effective rank of isotropic rows. {how_sure}"
    return "healthy", Statement(0, text, layers, sure)


def _how_sure_of_health(cosines: Sequence[_Score], shares: Sequence[_Score]) -> tuple[bool, str]:
    """Whether every interval stays clear of the thresholds, and that in words."""
    ends = {"mean_cosine": [s.high for s in cosines], "effective_rank_share": [s.low for s in shares]}
    if not all(math.isfinite(end) for some in ends.values() for end in some):
        return False, _NO_INTERVAL
    if any(_WORSE[t.measure] * end >= _WORSE[t.measure] * t.value for t in THRESHOLDS for end in ends[t.measure]):
        return False, "Not sure: a 95 % interval reaches a threshold."
    return True, "Sure: no 95 % interval reaches a threshold."


def _notices(findings: Findings) -> Iterator[Statement]:
    """What to know of the rows themselves."""
    counts = findings.counts
    zero, nonfinite = counts.get("zero_rows", 0), counts.get("nonfinite_rows", 0)
    if zero or nonfinite:
        parts = [_count(zero, "zero row")] if zero else []
        parts += [f"{_count(nonfinite, 'row')} with NaN or infinity"] if nonfinite else []
        several = ", in all layers together" if len(findings.layers) > 1 else ""
        yield Statement(1, f"Left out: {' and '.join(parts)}{several}.")
    if counts.get("rows_without_vector"):
        yield Statement(0, f"Left out: {_count(counts['rows_without_vector'], 'row')} without a vector.")
    if layer := findings.source.get("softdecay"):
        yield Statement(
            0,
            "Restored: the SoftDecay layer with which the model was saved "
            f"(alpha {layer['alpha']:.4g}, form {layer['form']}, {layer['where']}).",
        )
    for file in findings.source.get("files") or []:
        if isinstance(file, dict) and "note" in file:
            yield Statement(0, str(file["note"]))
    if left_out := findings.source.get("left_out"):
        shown = ", ".join(list(left_out)[:3]) + (f" and {len(left_out) - 3:,} more" if len(left_out) > 3 else "")
        yield Statement(1, f"Left out: {_count(len(left_out), 'file')} that cannot be read ({shown}).")
    if counts.get("truncated_texts"):
        cut, texts = counts["truncated_texts"], counts.get("texts", 0)
        tokens = counts.get("truncated_tokens", 0)
        yield Statement(0, f"Cut short: {cut:,} of {_count(texts, 'text')}, {_count(tokens, 'token')} left out.")


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def _span(findings: Findings, scores: Sequence[_Score]) -> str:
    """Layers in words: "layers 3 to 28", "layer 0", "all 7 layers", "the space"."""
    layers = in_layer_order((s.layer for s in scores), findings.layers)
    if len(findings.layers) == 1:
        return "the space"
    if len(layers) == len(findings.layers):
        return f"all {len(layers)} layers"
    return layers_text(layers, findings.layers)


def layers_text(layers: Sequence[int | str], order: Sequence[int | str]) -> str:
    """Layers in words, three or more in a row as a stretch.

    >>> layers_text([0, 2, 3, 4, 7], range(9))
    'layers 0, 2 to 4 and 7'
    """
    stretches: list[list[int | str]] = []
    for layer in layers:
        if stretches and order.index(layer) == order.index(stretches[-1][-1]) + 1:
            stretches[-1].append(layer)
        else:
            stretches.append([layer])
    words = [[f"{some[0]} to {some[-1]}"] if len(some) > 2 else [str(layer) for layer in some] for some in stretches]
    *most, last = chain(*words)
    many = "s" if len(layers) > 1 else ""
    return f"layer{many} {', '.join(most)} and {last}" if most else f"layer{many} {last}"


def _range(values: Sequence[float], *, percent: bool = False) -> str:
    """The least and the greatest value: "0.061 to 0.274"."""
    shown = [f"{100 * v:.0f} %" if percent else f"{round(v, 3) + 0.0:.3f}" for v in (min(values), max(values))]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"
