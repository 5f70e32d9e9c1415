"""Makes one page per repair from its class: python docs/repair_pages.py"""

from __future__ import annotations

import inspect
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from api import body, call

from isotrope.repairs import REPAIRS, Repair
from isotrope.repairs.linear import LinearRepair

PAGES = Path(__file__).parent / "repairs"


def page(kind: type[Repair]) -> str:
    """The page of one repair, in Markdown."""
    if issubclass(kind, LinearRepair):
        fitted = "one pass over any number of rows, piece by piece too, or moments"
        what = "one affine map x -> (x − b) W, unless rows are scaled or normalised first"
    else:
        fitted = "rows in memory or a sample of 20,000 rows"
        what = "a map that is not linear"
    facts = [
        ("on the command line", f"`isotrope repair fit INPUT --with {kind.name} -o DIR`"),
        ("in an evaluation", f"`isotrope evaluate sts --repair {kind.name}`"),
        ("fitted on", fitted),
        ("what it is", what),
    ]
    lines = [f"# {kind.__name__}", "", "```python", call(f"isotrope.{kind.__name__}", kind), "```", ""]
    lines += [body(inspect.getdoc(kind) or ""), "", "| | |", "|---|---|"]
    lines += [f"| {label} | {words} |" for label, words in facts]
    lines += ["", "What all repairs share, and when they hurt: [repairs](../repairs.md)."]
    return "\n".join(lines) + "\n"


def main() -> None:
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.iterdir():
        old.unlink()
    for kind in REPAIRS:
        (PAGES / f"{kind.name}.md").write_text(page(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
