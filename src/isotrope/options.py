"""Options: fields of dataclasses that carry their default and help, from which the command line is built.

To add an option to `isotrope scan`, declare it once, as a field of `ScanOptions`, of `isotrope.sources.input.Input`
or of `isotrope.engines.engine.Engine`: the command has it then. Add it to the signature of `isotrope.scan`, which stays
explicit and only fills these dataclasses; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any


def option(
    default: Any,
    help: str,
    *,
    panel: str | None = None,
    flags: tuple[str, ...] = (),
    type: type | None = None,
    shown: str | None = None,
) -> Any:
    """Declare a field of a dataclass that is an option of the command line too.

    Args:
        default: The default value.
        help: What `--help` says.
        panel: The heading of `--help` that it stands under.
        flags: How it is written, by default `--` and the name of the field.
        type: The type of its value on the command line, by default that of the default value, or text.
        shown: What `--help` gives as the default where that is None.
    """
    metadata = {"help": help, "panel": panel, "flags": flags, "type": type, "shown": shown}
    return field(default=default, metadata=metadata)


def list_options(kind: type) -> dict[str, Field[Any]]:
    """List the fields of a dataclass that are options, by name.

    >>> list(list_options(ScanOptions))
    ['measures', 'queries', 'sample', 'seed', 'variant', 'output', 'resume', 'keep', 'checkpoint_every']
    """
    return {f.name: f for f in fields(kind) if "help" in f.metadata}


def find_changes(instance: Any, names: Collection[str] | None = None) -> dict[str, Any]:
    """Find the fields of a dataclass instance, or those named, that differ from their defaults.

    >>> find_changes(ScanOptions(seed=3))
    {'seed': 3}
    """
    found = {f.name: getattr(instance, f.name) for f in fields(instance) if names is None or f.name in names}
    return {name: value for name, value in found.items() if value != getattr(type(instance), name)}


_WHAT = "What to measure"
_RUN = "Run"


@dataclass(frozen=True, kw_only=True)
class ScanOptions:
    """What a scan measures, and what it writes."""

    measures: str | list[str] | None = option(
        None,
        "Groups or names, see isotrope catalogue.",
        panel=_WHAT,
        shown="moments,tokens,sequences; of vectors moments,search",
    )
    queries: Any = option(None, "Queries that search the rows: vectors, or texts for a model.", panel=_WHAT, type=str)
    sample: int = option(20_000, "Rows kept for intervals and spectra of sequences.", panel=_WHAT)
    seed: int = option(0, "Which rows, and which share of the texts, are sampled.", panel=_WHAT)
    variant: str = option("definition", "Also by this definition, where a measure has it: published.", panel=_WHAT)
    output: str | Path | None = option(None, "Run folder to write.", panel=_RUN, flags=("--output", "-o"), type=Path)
    resume: bool = option(False, "Go on with a stopped run.", panel=_RUN)
    keep: str = option(
        "summary",
        "Statistics that stay in the run folder: none, summary (for later commands) or all (exact).",
        panel=_RUN,
    )
    checkpoint_every: float = option(60.0, "Seconds between checkpoints.", panel=_RUN)
