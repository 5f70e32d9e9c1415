"""isotrope catalogue: what each measure is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from isotrope.cli.options import Json
from isotrope.cli.output import console, print_json
from isotrope.cli.tables import Column, print_table

if TYPE_CHECKING:
    from isotrope.measures import Measure


def catalogue(
    name: Annotated[str | None, typer.Argument(help="A measure, or a group.", show_default="all")] = None,
    json: Json = False,
) -> None:
    from isotrope.measures import GROUPS, MEASURES, get, select

    chosen = list(MEASURES) if name is None else select(name) if name in GROUPS else [get(name)]
    if json:
        print_json([describe_measure(m) for m in chosen])
    elif len(chosen) == 1:
        _show_one(chosen[0])
    else:
        _show_all(chosen)


def describe_measure(m: Measure) -> dict[str, Any]:
    """All that there is to say about a measure, as plain data."""
    return {
        "name": m.name,
        "title": m.title,
        "needs": m.needs,
        "group": m.group,
        "says": m.says,
        "formula": m.formula,
        "range": _format_range(m),
        "better": m.better,
        "invariant": sorted(m.invariant),
        "interval": m.estimate,
        "interval_at_n": m.estimate and m.at_n,
        "interval_words": _describe_interval(m),
        "variants": ["definition", *m.variants],
        "blind": m.blind,
        "wrong": m.wrong or None,
        "paper": m.paper,
    }


def _format_range(m: Measure) -> str:
    """The range in words, for many rows of a usual width where it depends on them."""
    low, high = (round(end, 6) + 0.0 for end in m.bounds(10**9, 768))
    words = f"{low:.4g} to {high:.4g}".replace("inf", "∞")
    return f"{words} for d = 768 and endless rows" if callable(m.range) else words


def _describe_interval(m: Measure) -> str:
    if not m.estimate:
        return "none"
    return "95 %, over sequences" + (", of the value at this number of rows" if m.at_n else "")


def _show_one(m: Measure) -> None:

    out = console()
    out.print(Text.assemble((m.title, "bold"), f"  ({m.name})"))
    rows = [
        ("says", m.says),
        ("formula", m.formula),
        ("range", _format_range(m)),
        ("better", m.better or "neither way"),
        ("unchanged by", ", ".join(sorted(m.invariant)) or "nothing"),
        ("interval", _describe_interval(m)),
        ("variants", ", ".join(["definition", *m.variants])),
        ("blind to", m.blind),
        ("known wrong", m.wrong),
        ("paper", m.paper),
        ("from", m.needs),
        ("group", m.group or "none: it needs two spaces, isotrope.measures." + m.name + "(X, Z)"),
    ]
    for label, value in filter(lambda row: row[1], rows):
        out.print(Text.assemble((f"  {label:>12}  ", "dim"), value))


def _show_all(chosen: list[Measure]) -> None:

    columns = [
        Column("measure"),
        Column("group", rank=2),
        Column("better", rank=1),
        Column("what it says", wraps=24),
    ]
    out = console()
    rows = [[m.name, m.group or "-", m.better or "-", m.says] for m in sorted(chosen, key=_find_order)]
    print_table(out, columns, rows)
    out.print("\nisotrope catalogue NAME shows one of them whole.", style="dim")


def _find_order(m: Measure) -> int:
    from isotrope.measures import GROUPS

    return GROUPS.index(m.group) if m.group is not None else len(GROUPS)
