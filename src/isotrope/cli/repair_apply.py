"""isotrope repair apply: repair every row of a file or of a model, into a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from isotrope.cli import engine_options
from isotrope.cli import one_space as space


def apply(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved repair.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write: .npy, .parquet or .safetensors.")],
    input: Annotated[str | None, typer.Argument(help="Vectors, a text, or a model; found out from its kind.")] = None,
    model: space.Model = None,
    revision: space.Revision = None,
    text: space.Text = None,
    vectors: space.Vectors = None,
    column: space.Column = None,
    split: space.Split = None,
    pooling: space.Pooling = None,
    layer: space.OneLayer = None,
    max_length: space.MaxLength = None,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    trust_remote_code: space.TrustRemoteCode = False,
    engine: engine_options.Engine = "local",
    address: engine_options.Address = None,
    workers: engine_options.Workers = None,
    gpus_per_worker: engine_options.GpusPerWorker = 0.0,
    json: space.Json = False,
) -> None:
    """Apply a saved repair to rows, in their order and in constant memory, and write them to a file.

    float32 stays float32. The file is there whole or not at all, and nothing is written over.
    """
    given = locals()
    from isotrope.cli.engine_words import engine_words
    from isotrope.cli.terminal import Bar, console
    from isotrope.engines.choosing import engine_of
    from isotrope.repairs import apply_to_file, load_repair
    from isotrope.row_files import refuse_target
    from isotrope.sources.watched import watched

    refuse_target(output)
    fitted = load_repair(folder)
    with Bar(quiet=json) as bar:
        bar("opening", 0, None)
        with space.open_space(given, precision="fast", in_order=True) as source:
            notes = list(differences(fitted.fitted_on_, source.describe()))
            telling = watched(source, lambda done, total: bar(f"repairing {source.unit}", done, total))
            rows = apply_to_file(fitted, telling, output)
            where = engine_of(source)
    if json:
        import json as library

        columns = fitted.map_.columns
        document = {"repair": fitted.name, "output": str(output), "rows": rows, "columns": columns, "notes": notes}
        document["engine"] = where
        typer.echo(library.dumps(document, indent=1, ensure_ascii=False))
        return
    for note in notes:
        console(stderr=True).print(f"isotrope: {note}.", soft_wrap=True)
    console().print(f"{rows:,} rows of {fitted.map_.columns} columns in {output}, repaired by {fitted!r}.")
    for line in engine_words(where, {}):
        console().print(line, style="dim", soft_wrap=True)


def differences(fitted_on: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[str]:
    """Where rows of a model are not of the kind that a repair was fitted on.

    >>> list(differences({"sources": [{"model": "bert", "pooling": "mean"}]}, {"model": "bert", "pooling": None}))
    ['the repair was fitted with pooling mean, these rows have pooling none']
    """
    for before in fitted_on.get("sources", []):
        if before.get("model") is None or source.get("model") is None:
            continue
        for key in ("model", "layers", "pooling"):
            old, new = (_words(facts.get(key)) for facts in (before, source))
            if old != new:
                yield f"the repair was fitted with {key} {old}, these rows have {key} {new}"


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "none")
