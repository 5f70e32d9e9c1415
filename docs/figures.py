"""Makes the page of figures with pictures from real runs: python docs/figures.py RUN [RUN]

The first RUN: a scan of all-MiniLM-L6-v2 with --measures all. The second: a scan of SmolLM2-135M-Instruct.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from isotrope.drawing.style import use_style
from isotrope.figures import FIGURES, FigureRecord, draw
from isotrope.figures.record import NEEDS

PAGE = Path(__file__).parent / "figures.md"
PICTURES = Path(__file__).parent / "images" / "figures"

#: Dots to an inch of the page's pictures, and the colours of each: sharp on a screen, and small.
_DOTS, _COLOURS = 140, 96

#: Those that are drawn of the second run too, because a collapsed space looks different.
_TWICE = ("drift", "pca", "squared-norms", "uniformity")

_HEAD = """# Figures for print

```bash
isotrope figure RUN norm-variance --layer 6 -o fig.pdf     # or .svg, .png
isotrope figure RUN mean_cosine -o fig.pdf                 # any measure over the layers
isotrope figure --list                                     # what each shows, answers and needs
```

A figure is drawn from the run folder alone, with matplotlib (`pip install 'isotrope[figures]'`): 3.25 inches wide, a
column, or 6.75, a page; no letter below 7 points; colours that people with any colour vision tell apart. Letters are
letters in PDF and SVG; points of large scatters are pixels, so that files stay small. The same run gives the same file.
Where a few tokens or rows lie far from all others, axes end where the others do; triangles at the edge and a line
above say how many lie outside, which, and how far. A least-squares line is always of all points.
The command prints a caption. `isotrope.figures.draw(run, name)` gives matplotlib's `Figure`, and
`findings.plot("mean_cosine")` its `Axes`.

Pictures are of all-MiniLM-L6-v2 over the Python manual; where there is a second one, it is of SmolLM2-135M-Instruct.
Written by `docs/figures.py`.
"""


def entry(record: FigureRecord) -> str:
    """What there is to say of one figure, in Markdown."""
    needs = [NEEDS[need][0] for need in record.needs]
    needs += ["readings of " + ", ".join(f"`{m}`" for m in record.measures)] if record.measures else []
    layer = f" Of the {record.layer} layer unless `--layer` names another." if record.layer else ""
    pictures = [f"![{record.name}](images/figures/{record.name}.png)"]
    if second(record.name).exists():
        pictures.append(f"![{record.name}, SmolLM2](images/figures/{second(record.name).name})")
    lines = [f"## {record.name}", "", " ".join(pictures), "", f"{record.shows}{layer}", ""]
    lines += [f"Answers {record.answers}. Needs {'; '.join(needs) or 'four layers or more'}."]
    return "\n".join(lines) + "\n"


def second(name: str) -> Path:
    """The picture of a collapsed space."""
    return PICTURES / f"{name}.smollm2.png"


def page() -> str:
    """The whole page, in Markdown."""
    return "\n".join([_HEAD, *(entry(record) for record in sorted(FIGURES, key=lambda record: record.name))])


def picture(run: str, name: str, path: Path) -> None:
    """A small PNG of a figure."""
    from PIL import Image

    file = io.BytesIO()
    made = draw(run, name)
    with use_style():
        made.savefig(file, format="png", dpi=_DOTS)
    Image.open(file).convert("RGB").quantize(_COLOURS).save(path, optimize=True)


def main(healthy: str, collapsed: str | None = None) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.iterdir():
        old.unlink()
    for name in FIGURES.names():
        picture(healthy, name, PICTURES / f"{name}.png")
    for name in _TWICE if collapsed else ():
        picture(collapsed, name, second(name))
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
