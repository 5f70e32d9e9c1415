"""What stands on top of a report: the verdict, the three numbers that carry it, and what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from isotrope.findings import Findings, Reading
from isotrope.formats.names import name_layer
from isotrope.measures import MEASURES, get
from isotrope.verdict.thresholds import THRESHOLDS, level_of

#: What a source may have read, and what it may have counted and left out.
_UNITS = ("texts", "images", "sounds")
_LEFT_OUT = ("broken_images", "broken_sounds", "silent_windows", "short_windows", "skipped_shards")

#: Verdicts that say nothing of the space.
NO_JUDGEMENT = ("unknown", "too few rows")


def find_level(findings: Findings) -> int | None:
    """How bad the verdict is, 0 to 3; None where it says nothing of the space."""
    if findings.verdict.word in NO_JUDGEMENT:
        return None
    return level_of(findings.verdict.word)


def strip_word(text: str, word: str) -> str:
    """A sentence of the verdict below its word, which it need not say again.

    >>> strip_word("Leaning: in layer 5 the rows lean to one side.", "leaning")
    'In layer 5 the rows lean to one side.'
    """
    start = f"{word.capitalize()}: "
    rest = text.removeprefix(start)
    return rest if rest == text else f"{rest[:1].upper()}{rest[1:]}"


def list_numbers(findings: Findings) -> list[dict[str, Any]]:
    """The three numbers that carry the verdict, each of the last layer that has it.

    >>> import numpy as np
    >>> from isotrope import scan
    >>> found = scan(vectors=np.random.default_rng(0).normal(size=(500, 8)) + 3.0)
    >>> [number["measure"] for number in list_numbers(found)]
    ['mean_cosine', 'isoscore', 'drift_share']
    """
    found = list(_of_last(findings, _order(findings)))[:3]
    return [_describe_number(r, findings) for r in found]


def list_headlines() -> list[str]:
    """The measures that may stand at the top of a report, the most important first."""
    ranks = {m.name: m.headline for m in MEASURES if m.headline is not None}
    return sorted(ranks, key=ranks.__getitem__)


def _order(findings: Findings) -> Iterator[str]:
    deciding = [t.measure.removesuffix("_share") for t in THRESHOLDS if t.word == findings.verdict.word]
    yield from deciding
    yield from list_headlines()
    yield from dict.fromkeys(r.measure for r in findings.readings)


def _of_last(findings: Findings, names: Iterator[str]) -> Iterator[Reading]:
    """Of each measure the reading of the last layer that has a value."""
    for name in dict.fromkeys(names):
        of = [
            r
            for r in findings.readings
            if (r.measure, r.group, r.variant) == (name, None, "definition") and math.isfinite(r.value)
        ]
        if of:
            yield of[-1]


def _relative_value(r: Reading) -> float:
    """The value, as a share of what isotropic rows give where the measure's record says so, as in the verdict."""
    return r.value / r.null if get(r.measure).relative and r.null > 0 else r.value


def _describe_number(r: Reading, findings: Findings) -> dict[str, Any]:
    m = get(r.measure)
    where = "" if len(findings.layers) < 2 or r.layer is None else f"layer {name_layer(findings, r.layer)}"
    null = f"isotropic rows give {in_few_digits(r.null)}" if math.isfinite(r.null) else ""
    interval = (
        f"95 % interval {in_few_digits(r.low)} to {in_few_digits(r.high)}"
        if math.isfinite(r.low) and math.isfinite(r.high)
        else "no interval"
    )
    share = 1.0 - _relative_value(r) if m.better == "higher" else r.value
    return {
        "measure": r.measure,
        "title": m.title,
        "value": r.value,
        "text": in_few_digits(r.value),
        "where": where,
        "interval": interval,
        "null": null,
        "says": m.says,
        "worse": min(1.0, max(0.0, share)) if math.isfinite(share) else None,
    }


def in_few_digits(value: float) -> str:
    """A number as people read it: three digits, and none that are not needed.

    >>> [in_few_digits(v) for v in (0.27412, 12.34, 12345.6, 0.0, 3.9e-5, -3.9e-5)]
    ['0.274', '12.3', '12,346', '0', 'under 0.001', 'under 0.001 below 0']
    """
    if 0 < abs(value) < 0.001:
        return "under 0.001" if value > 0 else "under 0.001 below 0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}".replace("-", "−") if value else "0"


def list_facts(findings: Findings) -> list[tuple[str, str]]:
    """Model, corpus, date, rows and layers, as label and text."""
    source = findings.source
    found = [("Model", _model(findings))]
    if corpus := source.get("corpus"):
        found.append(("Corpus", str(corpus.get("name", "unnamed"))))
    if source.get("pooling"):
        found.append(("Pooling", str(source["pooling"])))
    found.append(("Date", str(findings.provenance.get("started", ""))[:10] or "unknown"))
    found.append(("Rows", "".join(describe_rows(findings))))
    if left := describe_left_out(findings):
        found.append(("Left out", left))
    count = len(findings.layers)
    found.append(("Layers", f"{count} × {describe_width(source)}") if count > 1 else ("Width", describe_width(source)))
    return found


def describe_rows(findings: Findings) -> tuple[str, str]:
    """How many rows were measured, and of what: " of 7 images", empty where a row is one of these."""
    most = max((r.n for r in findings.readings if r.layer is not None and r.group is None), default=0)
    units = [f" of {findings.counts[unit]:,} {unit}" for unit in _UNITS if unit in findings.counts]
    return f"{most:,}", units[0] if units and not findings.source.get("pooling") else ""


def describe_left_out(findings: Findings) -> str:
    """What a source counted and left out, in words; empty where there is nothing."""
    return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name in _LEFT_OUT if (n := findings.counts.get(name)))


def describe_width(source: dict[str, Any]) -> str:
    """The width of rows; layers of images and sounds may differ in it."""
    up_to = "up to " if source.get("modality", "text") != "text" and len(source.get("layers", ())) > 1 else ""
    return f"{up_to}{source.get('width', 'unknown')}"


def _model(findings: Findings) -> str:
    revision = f" at {findings.revision[:12]}" if findings.revision else ""
    return f"{findings.title}{revision}" if findings.model else "none: vectors that were there already"
