"""What is wrong with a space, in plain words, from its readings and the table of thresholds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from isotrope.findings import Findings, Reading, Statement, Verdict, in_layer_order
from isotrope.formats.names import describe_place, is_vectors, name_layers
from isotrope.verdict.row_notices import list_notices, say_deciding_rows
from isotrope.verdict.search import judge_search
from isotrope.verdict.thresholds import (
    FEWEST_ROWS,
    QUANTITIES,
    ROWS_PER_DIMENSION,
    THRESHOLDS,
    Threshold,
    find_troubles,
)

_NO_INTERVAL = "How sure cannot be said: there is no interval."
_NEIGHBOURS = "Neighbours were not looked at: --measures moments,neighbours does that."


class LayerScore(NamedTuple):
    """One layer's number to compare with the thresholds, its interval (NaN where none), and where it comes from."""

    value: float
    low: float
    high: float
    reading: Reading

    @property
    def layer(self) -> int | str:
        assert self.reading.layer is not None
        return self.reading.layer


Scores = Mapping[str, Mapping[int | str, LayerScore]]


def judge(findings: Findings) -> Verdict:
    """The verdict on a run: the word for its last layer, what that means, then the other layers, then the rows."""
    scores = _scores(findings)
    cosines = scores["mean_cosine"]
    notices = tuple(list_notices(findings))
    if not cosines:
        text = "No verdict: the mean cosine was not measured, or has no value."
        return Verdict("unknown", (Statement(0, text, sure=False), *notices))
    last = next(layer for layer in reversed(findings.layers) if layer in cosines)
    rows = cosines[last].reading.n
    if rows < FEWEST_ROWS:
        text = f"Too few rows to tell: {rows:,}; give at least {FEWEST_ROWS}, better some thousands."
        return Verdict("too few rows", (Statement(0, text, sure=False), *notices))
    word, statements = _of_last(findings, scores, last)
    if is_vectors(findings):
        word, statements = judge_search(findings, word, statements)
    others = [layer for layer in findings.layers if layer in cosines and layer != last]
    deciding = [say_deciding_rows(findings, layers) for layers in ([last], others)]
    found = (*statements, *deciding[0], *_of_others(findings, scores, others), *deciding[1])
    if not is_vectors(findings):
        return Verdict(word, (*found, *notices))
    # Rows that cannot be used hurt a search first.
    return Verdict(word, (*(s for s in notices if s.level), *found, *(s for s in notices if not s.level)))


def _scores(findings: Findings) -> Scores:
    """By quantity of the table and by layer, what can be compared with a threshold."""
    width = int(findings.source.get("width") or 0)
    scores: dict[str, dict[int | str, LayerScore]] = {}
    for name, quantity in QUANTITIES.items():
        known = [r for r in _readings(findings, quantity.measure) if quantity.is_known(r.n, width, r.null)]
        scale = quantity.scale
        found = [LayerScore(scale(r.value, r.null), scale(r.low, r.null), scale(r.high, r.null), r) for r in known]
        scores[name] = {score.layer: score for score in found}
    return scores


def _readings(findings: Findings, measure: str) -> Iterator[Reading]:
    for r in findings.readings:
        if (r.measure, r.group, r.variant) == (measure, None, "definition") and math.isfinite(r.value):
            yield r


def _troubles(scores: Scores, layer: int | str) -> list[Threshold]:
    return find_troubles({name: of[layer].value for name, of in scores.items() if layer in of})


def _of_last(findings: Findings, scores: Scores, last: int | str) -> tuple[str, list[Statement]]:
    """The word for the last layer, and a statement for each of its troubles."""
    troubles = _troubles(scores, last)
    if not troubles:
        word, statement = _no_trouble(findings, scores, last)
        return word, [statement]
    statements = []
    for t in troubles:
        score = scores[t.measure][last]
        sure, how_sure = _how_sure(findings, [score], t)
        where = f"in {describe_place(findings, last)} {t.meaning} ({_numbers(findings, t.measure, [score])})"
        statements.append(Statement(t.level, f"{t.word.capitalize()}: {where}. {how_sure}", (last,), sure))
    return troubles[0].word, statements


def _of_others(findings: Findings, scores: Scores, others: Sequence[int | str]) -> list[Statement]:
    """A statement for each kind of trouble in the other layers, the worst first; one where there is none."""
    if not others:
        return []
    found: dict[Threshold, list[LayerScore]] = {}
    for layer in others:
        for t in _troubles(scores, layer):
            found.setdefault(t, []).append(scores[t.measure][layer])
    statements = []
    for t, here in sorted(found.items(), key=lambda item: (-item[0].level, THRESHOLDS.index(item[0]))):
        sure, how_sure = _how_sure(findings, here, t)
        layers = tuple(in_layer_order((s.layer for s in here), findings.layers))
        where = name_layers(layers, findings.layers)
        text = f"{where[0].upper()}{where[1:]}: {t.word}, {t.meaning} ({_numbers(findings, t.measure, here)})"
        statements.append(Statement(t.level, f"{text}. {how_sure}", layers, sure))
    if not statements and all(layer in scores["isoscore_share"] for layer in others):
        cosines = _range([scores["mean_cosine"][layer].value for layer in others])
        where = name_layers(others, findings.layers)
        text = f"{where[0].upper()}{where[1:]}: no trouble either (mean cosine {cosines})."
        statements.append(Statement(0, text, tuple(others), sure=_clear(scores, others)))
    return statements


def _how_sure(findings: Findings, here: Sequence[LayerScore], t: Threshold) -> tuple[bool, str]:
    """Whether every interval lies beyond the threshold, and that in words."""
    ends = [s.low if t.worse > 0 else s.high for s in here]
    if not all(map(math.isfinite, ends)):
        return False, _NO_INTERVAL
    short = [s for s, end in zip(here, ends, strict=True) if not t.applies(end)]
    side = "below" if t.worse > 0 else "above"
    if not short:
        return True, f"Sure: no 95 % interval reaches {side} {t.value}."
    if len(here) == 1:
        return False, f"Not sure: its 95 % interval reaches {side} {t.value}."
    where = name_layers(in_layer_order((s.layer for s in short), findings.layers), findings.layers)
    return False, f"Not sure of {where}: the 95 % interval reaches {side} {t.value}."


def _numbers(findings: Findings, name: str, here: Sequence[LayerScore]) -> str:
    """The numbers behind a word, and what isotropic rows would give."""
    readings = [s.reading for s in here]
    text = f"{QUANTITIES[name].title} {_range([r.value for r in readings])}, isotropic rows give"
    if name != "mean_cosine":
        return f"{text} {_range([r.null for r in readings])}"
    drift = {r.layer: r.value for r in _readings(findings, "drift_share")}
    worst = max(readings, key=lambda r: r.value).layer
    share = f"; the common mean holds {100 * drift[worst]:.0f} % of the squared length" if worst in drift else ""
    return f"{text} 0{share}"


def _no_trouble(findings: Findings, scores: Scores, last: int | str) -> tuple[str, Statement]:
    """Healthy, where there is enough to say so."""
    cosine, share, hubs = (scores[name].get(last) for name in QUANTITIES)
    assert cosine is not None
    width, rows = int(findings.source.get("width") or 0), cosine.reading.n
    cone = f"no common direction in {describe_place(findings, last)} (mean cosine {_range([cosine.value])})"
    if rows <= ROWS_PER_DIMENSION * width:
        text = f"No trouble seen, but {rows:,} rows for {width:,} dimensions are too few to call it healthy: {cone}."
        return "too few rows", Statement(0, text, (last,), sure=False)
    if share is None:
        why = (
            "in one dimension there is no shape to judge" if width == 1 else "how the spread is shared was not measured"
        )
        return "unknown", Statement(0, f"{cone[0].upper()}{cone[1:]}; {why}.", (last,), sure=False)
    spread = f"many directions share the spread ({_numbers(findings, 'isoscore_share', [share])})"
    if hubs is None:
        looked = any(r.n >= 1_000 for r in _readings(findings, "hub_share"))
        parts, neighbours = f"{cone}, and {spread}", "" if looked else f" {_NEIGHBOURS}"
    else:
        parts, neighbours = f"{cone}, {spread}, and no hubs ({_numbers(findings, 'hubness', [hubs])})", ""
    sure, how_sure = _how_sure_of_health(scores, last)
    return "healthy", Statement(0, f"Healthy: {parts}. {how_sure}{neighbours}", (last,), sure)


def _how_sure_of_health(scores: Scores, last: int | str) -> tuple[bool, str]:
    """Whether every interval stays clear of the thresholds, and that in words."""
    if not all(math.isfinite(end) for end in chain(*_ends(scores, [last]).values())):
        return False, _NO_INTERVAL
    if not _clear(scores, [last]):
        return False, "Not sure: a 95 % interval reaches a threshold."
    return True, "Sure: no 95 % interval reaches a threshold."


def _clear(scores: Scores, layers: Sequence[int | str]) -> bool:
    """Whether there are intervals, and none reaches a threshold; hubness is left out, because it has no interval."""
    ends = _ends(scores, layers)
    return all(
        math.isfinite(end) and not any(t.applies(end) for t in THRESHOLDS if t.measure == name)
        for name, nearest in ends.items()
        for end in nearest
    )


def _ends(scores: Scores, layers: Sequence[int | str]) -> dict[str, list[float]]:
    """By measure, the end of each interval that is nearest to trouble."""
    return {
        "mean_cosine": [scores["mean_cosine"][layer].high for layer in layers],
        "isoscore_share": [scores["isoscore_share"][layer].low for layer in layers],
    }


def _range(values: Sequence[float]) -> str:
    """The least and the greatest value: "0.061 to 0.274"."""
    shown = [f"{round(v, 3) + 0.0:.3f}" for v in (min(values), max(values))]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"
