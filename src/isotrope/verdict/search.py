"""What hurts search in a set of vectors, the worst first, each with one action and the command that verifies it."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence

from isotrope.findings import Findings, Reading, Statement
from isotrope.formats.names import is_vectors
from isotrope.verdict.thresholds import DUPLICATES, SEARCH_THRESHOLDS, Threshold

#: Words of search that say whether neighbours can be trusted: without them a narrow cone is no harm to search.
_NEIGHBOURS_FAIL = ("hubs", "never found", "no contrast")

#: Words for cones that raise the cosines of unrelated rows far above 0.
_CONES = ("collapsed", "narrow")

#: What to do about a cone that does not hurt search.
CALIBRATE = "isotrope calibrate"

#: Fewer rows than this say nothing about search.
_FEWEST_ROWS = 1_000

_ACTIONS = {
    "hubs": "Look at the rows found most often, and try what advise says",
    "never found": "Look at these rows, and try what advise says",
    "no contrast": "Check that the right model embedded the right texts",
    "near-duplicates": "Remove or merge them before they are indexed",
    "metric mismatch": "Divide each row by its length, or search by the metric of the model's card",
    "outliers": "Look at these rows: broken texts and other languages are usual",
    "islands": "Raise the number of links of a graph index (M of HNSW), or search exactly",
}


def judge_search(findings: Findings, word: str, statements: Sequence[Statement]) -> tuple[str, list[Statement]]:
    """The word and the statements on vectors, from those on their space: what hurts search most comes first.

    A narrow cone alone is no harm where neighbours were looked at and nothing is wrong with them: it takes a calibrated
    threshold, not a repair.
    """
    found = list(_find_troubles(findings))
    about_search = [_say(findings, t, r) for t, r in found]
    words = [t.word for t, _ in found]
    rest = list(statements)
    if _is_cone_alone(word, statements) and _has_neighbours(findings) and not set(words) & {*_NEIGHBOURS_FAIL}:
        word, rest = "narrow", [_say_narrow(findings, statements[0])]
    everything = [*_say_duplicates(findings), *about_search]
    worst = max((s.level for s in rest), default=0)
    for t, _ in found:
        if t.level > worst:
            word, worst = t.word, t.level
    return word, [*everything, *(s for s in rest if s.level or not about_search)]


def _find_troubles(findings: Findings) -> Iterator[tuple[Threshold, Reading]]:
    """The thresholds of search that a reading reaches, in the order of the table, with the reading."""
    if not is_vectors(findings):
        return
    for t in SEARCH_THRESHOLDS:
        reading = _find_reading(findings, t.measure)
        if reading is not None and reading.n >= _FEWEST_ROWS and t.applies(reading.value):
            yield t, reading


def _find_reading(findings: Findings, measure: str) -> Reading | None:
    kind = (measure, None, "definition")
    found = [r for r in findings.readings if (r.measure, r.group, r.variant) == kind and math.isfinite(r.value)]
    return found[-1] if found else None


def _say(findings: Findings, t: Threshold, r: Reading) -> Statement:
    """One statement: the word, what it means, the numbers, how sure, the action and how to verify it."""
    end = r.low if t.worse > 0 else r.high
    sure = t.applies(end)
    how_sure = "Sure" if sure else "Not sure" if math.isfinite(end) else "No interval"
    numbers = f"{t.measure.replace('_', ' ')} {r.value:.3f}, isotropic rows give {r.null:.3f}, {r.n:,} rows"
    gate = f"{t.measure} {'>=' if t.worse > 0 else '<='} {t.value:g}"
    verify = f"isotrope scan {_name_input(findings)} --fail-on '{gate}'"
    text = f"{t.word.capitalize()}: {t.meaning} ({numbers}). {how_sure}. {_ACTIONS[t.word]}; then `{verify}`."
    return Statement(t.level, text, tuple(findings.layers[-1:]), sure)


def _say_duplicates(findings: Findings) -> Iterator[Statement]:
    count, rows = findings.counts.get("duplicate_rows", 0), findings.counts.get("rows", 0)
    if not count or not rows:
        return
    share = count / rows
    level = max((t.level for t in DUPLICATES if t.applies(share)), default=0)
    error = findings.counts.get("duplicate_rows_error", 0)
    about = f"about {count:,} ± {2 * error:,}" if error else f"{count:,}"
    groups = findings.rows.get("duplicates", [])
    largest = f"; row {groups[0]['id']} is there {groups[0]['size']:,} times" if groups else ""
    yield Statement(
        level,
        f"Duplicates: {about} of {rows:,} rows ({100 * share:.2g} %) repeat an earlier row{largest}. Keep one of each; "
        f"then `isotrope scan {_name_input(findings)}` counts none.",
    )


def _say_narrow(findings: Findings, cone: Statement) -> Statement:
    """The statement on a cone that does not hurt search."""
    cosine, hubs, contrast = (
        _find_reading(findings, name) for name in ("mean_cosine", "hub_share", "relative_contrast")
    )
    assert cosine is not None
    assert hubs is not None
    assert contrast is not None
    text = (
        f"Narrow: cosines of unrelated rows are high (mean cosine {cosine.value:.3f}), but the order of neighbours "
        f"does not suffer (hub share {hubs.value:.3f}, relative contrast {contrast.value:.2f}). Calibrate a threshold: "
        f"`{CALIBRATE} {_name_input(findings)} --false-accept 1e-4`. Whether a repair helps besides depends on the "
        f"model: `isotrope advise {_name_input(findings)}`."
    )
    return Statement(1, text, cone.layers, cone.sure)


def _is_cone_alone(word: str, statements: Sequence[Statement]) -> bool:
    return word in _CONES and len(statements) == 1


def _has_neighbours(findings: Findings) -> bool:
    """Whether the neighbours of enough rows were looked at."""
    readings = [_find_reading(findings, name) for name in ("hub_share", "antihub_share", "relative_contrast")]
    return is_vectors(findings) and all(r is not None and r.n >= _FEWEST_ROWS for r in readings)


def _name_input(findings: Findings) -> str:
    """The file that was scanned, as an argument of a command."""
    files = findings.source.get("files") or []
    path = files[0].get("path") if len(files) == 1 and isinstance(files[0], dict) else None
    return shlex.quote(str(path)) if path else "VECTORS"
