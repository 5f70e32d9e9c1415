"""What a page shows of single rows: those to look at by name, and the histogram of cosines."""

from __future__ import annotations

from typing import Any

from isotrope.findings import Findings

#: What a table of a page shows of a row.
_FIELDS = (
    *("id", "row", "text", "times_median", "group", "size", "equal"),
    *("occurrences", "nearest", "cosine", "outlier_score"),
)


def pack_rows(findings: Findings) -> dict[str, Any]:
    """Pack the rows to look at by kind, and the cosines; nothing where rows were not compared with each other."""
    if "examined_rows" not in findings.counts:
        return {"rows": {}, "cosines": None}
    return {
        "rows": {
            kind: [{name: row[name] for name in _FIELDS if name in row} for row in rows]
            for kind, rows in findings.rows.items()
        },
        "cosines": _pack_cosines(findings),
    }


def _pack_cosines(findings: Findings) -> dict[str, Any] | None:
    """The bins of both histograms, and the cut-offs."""
    table = findings.tables.get("cosines")
    if table is None:
        return None
    parts = {str(kind): part for kind, part in table.groupby("kind", sort=False)}
    bins = parts["background"]
    made: dict[str, Any] = {"low": bins["low"].tolist(), "high": bins["high"].tolist()}
    made |= {kind: parts[kind]["count"].tolist() for kind in ("background", "nearest")}
    cuts = parts.get("cut-off", bins.iloc[:0])
    made["cutoffs"] = cuts[["share", "low"]].to_numpy().tolist()
    return made
