"""Makes the pictures of the README from real runs: python docs/pictures.py RUN docs/images/scan.svg"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from isotrope.cli import terminal
from isotrope.runs.run import Run


class Recorder(Console):
    """A console that wraps long lines, which a terminal does by itself."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*objects, **options | {"soft_wrap": False})


def main(run: str, picture: str) -> None:
    recorder = Recorder(record=True, width=118, highlight=False, force_terminal=True, file=io.StringIO())
    terminal.console = lambda **_: recorder  # type: ignore[assignment]
    terminal.show_findings(Run(run).findings(), None)
    Path(picture).parent.mkdir(parents=True, exist_ok=True)
    drawing = recorder.export_svg(title="isotrope scan")
    drawing = re.sub(
        r"@font-face \{.*?\}\s*", "", drawing, flags=re.DOTALL
    )  # no request to anywhere: any monospaced font
    Path(picture).write_text(drawing, encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
