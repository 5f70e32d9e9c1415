"""Record the goldens again: `python tests/goldens/record.py [findings] [help] [names]`.

Run it only after a deliberate change, and read the difference before it is committed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from goldens import FOLDER


def _write(path: Path, data: dict[str, Any]) -> None:
    """Write JSON with one line for each entry, or for each item where the entry is a list, so that changes are seen."""
    entries = []
    for name, value in data.items():
        written = _dump(value)
        if isinstance(value, list):
            written = "[\n  " + ",\n  ".join(map(_dump, value)) + "\n ]"
        entries.append(f" {_dump(name)}: {written}")
    path.write_text("{\n" + ",\n".join(entries) + "\n}\n", encoding="utf-8")
    print(path.relative_to(FOLDER.parents[1]))


def _dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def record_findings() -> None:
    """Scan the five inputs and write what was found."""
    from goldens.fingerprint import fingerprint
    from goldens.inputs import GOLDENS, one_thread
    from goldens.plain import to_plain

    for name, golden in GOLDENS.items():
        with tempfile.TemporaryDirectory() as folder, one_thread("torch" in golden.needs):
            found = to_plain(golden.scan(Path(folder)))
        _write(FOLDER / "findings" / f"{name}.json", {"fingerprint": fingerprint(golden.needs), **found})


def record_help() -> None:
    """Write what `--help` says of every command."""
    from goldens.help_texts import write_help

    print(write_help(FOLDER / "help.txt").relative_to(FOLDER.parents[1]))


def record_names() -> None:
    """Write the public names and their signatures."""
    from goldens.public_names import describe_names

    _write(FOLDER / "public_names.json", describe_names())


KINDS = {"findings": record_findings, "help": record_help, "names": record_names}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"{', '.join(KINDS)}; all of them by default")
    for kind in parser.parse_args().kinds or KINDS:
        if kind not in KINDS:
            parser.error(f"there is no kind {kind!r}; choose from {', '.join(KINDS)}.")
        KINDS[kind]()
