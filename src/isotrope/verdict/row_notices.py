"""What a verdict says about single rows: which decide it, which are far too short, and which were left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from isotrope.findings import Findings, Statement, in_layer_order
from isotrope.formats.names import is_vectors, name_layers, name_rows
from isotrope.verdict.thresholds import get


def say_deciding_rows(findings: Findings, layers: Sequence[int | str]) -> list[Statement]:
    """A statement for each handful of rows that decides the word of some of these layers."""
    found: dict[tuple[Any, ...], list[int | str]] = {}
    for layer in layers:
        rows = [row for row in _extreme(findings) if row["layer"] == layer and row.get("without") is not None]
        if rows:
            key = (rows[0]["without"], *((row["id"], row.get("position")) for row in rows))
            found.setdefault(key, []).append(layer)
    return [_say_deciding(findings, deciding, key[0]) for key, deciding in found.items()]


def _say_deciding(findings: Findings, layers: Sequence[int | str], without: str) -> Statement:
    rows = [row for row in _extreme(findings) if row["layer"] == layers[-1] and row.get("without") is not None]
    one = len(rows) == 1
    times = [row["times_median"] for row in rows]
    low, high = _times(min(times)), _times(max(times))
    names = name_rows(findings, rows, len(rows))
    last = findings.layers[-1]
    where = "" if is_vectors(findings) or list(layers) == [last] else f" in {name_layers(layers, findings.layers)}"
    text = (
        f"{'One row decides' if one else f'{len(rows)} rows decide'} this{where}: {names} "
        f"{'is' if one else 'are'} {low if low == high else f'{low} to {high}'} times as long as the median row. "
        f"Without {'it' if one else 'them'}: {without}."
    )
    return Statement(get("far longer").level, text, tuple(layers))


def list_notices(findings: Findings) -> Iterator[Statement]:
    """What to know about the rows themselves."""
    counts = findings.counts
    together = ", in all layers together" if len(findings.layers) > 1 else ""
    if short := counts.get("short_rows", 0):
        t = get("far shorter")
        rows = [row for row in _extreme(findings) if row["times_median"] < 1.0]
        text = f"{_count(short, 'row')} shorter than {t.value:g} of the median length{together}"
        yield Statement(t.level, f"Far shorter: {text} ({name_rows(findings, rows, short)}).")
    zero, nonfinite = counts.get("zero_rows", 0), counts.get("nonfinite_rows", 0)
    if zero or nonfinite:
        parts = [_count(zero, "zero row")] if zero else []
        parts += [f"{_count(nonfinite, 'row')} with NaN or infinity"] if nonfinite else []
        yield Statement(1, f"Left out: {' and '.join(parts)}{together}.")
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


def _extreme(findings: Findings) -> list[Mapping[str, Any]]:
    """Rows that are far longer or shorter than the median, layers in order."""
    rows = findings.rows.get("extreme", [])
    order = in_layer_order((row["layer"] for row in rows), findings.layers)
    return sorted(rows, key=lambda row: order.index(row["layer"]))


def _times(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" + ("" if number == 1 else "s")
