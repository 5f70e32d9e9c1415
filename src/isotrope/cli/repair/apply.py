"""isotrope repair apply: repair every row of a file, a store or a model, into a file or back into the store."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli.options import ENGINE, SPACE, Json, Rows, derive_options, make_space_options
from isotrope.cli.output import console, print_json, print_problem
from isotrope.cli.progress import Bar
from isotrope.cli.terminal import describe_engine
from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from isotrope.sources.source import Source
    from isotrope.sources.vectors.stores.address import Address
    from isotrope.sources.vectors.stores.store import Store

#: Endings of files that are tables.
TABLES = (".parquet", ".arrow", ".feather", ".ipc")


@derive_options
def apply(
    reading: Annotated[Input, make_space_options(SPACE)],
    engine: Annotated[Engine, ENGINE],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved repair.")],
    output: Annotated[
        str, typer.Option("--output", "-o", help="New file (.npy, .parquet, .safetensors), or new place in the store.")
    ],
    input: Rows = None,
    output_column: Annotated[
        str | None, typer.Option(help="Name of the repaired vectors in a store.", show_default=False)
    ] = None,
    normalize: Annotated[
        str | None,
        typer.Option(
            help="Divide rows by their length: input, output, both; none for never.",
            show_default="as the repair was fitted",
        ),
    ] = None,
    allow_mismatch: Annotated[
        bool, typer.Option("--allow-mismatch", help="Repair rows too that are unlike those of the fit.")
    ] = False,
    json: Json = False,
) -> None:
    """float32 stays float32. What is written is there whole or not at all, and nothing is written over."""
    from isotrope.cli.inputs import open_space
    from isotrope.repairs import apply_to_file, apply_to_store, load_repair
    from isotrope.repairs.unit_length import check_way
    from isotrope.storage.files import remove_leftovers_of
    from isotrope.storage.locks import reserve_path

    address = _check_output(output, output_column, engine)
    fitted = load_repair(folder)
    if normalize is not None:
        check_way(normalize)
    with (
        nullcontext() if address else reserve_path(output),
        Bar(quiet=json) as bar,
    ):  # stores keep their names themselves
        if address is None:
            remove_leftovers_of(Path(output))
        bar("opening", 0, None)
        with open_space(input, reading, engine, precision="fast", in_order=True) as source:
            notes = list(find_differences(fitted.fitted_on_, source.describe()))
            if fitted.fit_check_ is None and not allow_mismatch:
                notes.append("the repair does not say how long the rows of its fit were, so these are not compared")
            how: dict[str, Any] = {"normalize": normalize, "allow_mismatch": allow_mismatch}

            def tell(done: int, total: int | None) -> None:
                bar(f"repairing {source.unit}", done, total)

            where = output
            if address is None:
                notes += find_lost_columns(source, output)
                rows = apply_to_file(fitted, source.with_progress(tell), output, **how)
            else:
                store = check_same_store(source, address)
                target = store.target(address, output_column, fitted.map_.columns)
                where = target.words
                rows = apply_to_store(fitted, store, target, tell, **how)
                if store.left_out:
                    notes.append(f"{store.left_out:,} rows without a vector were left out")
            engine_used = source.engine
    if json:
        document = {
            "repair": fitted.name,
            "output": where if address is None else str(address),
            "rows": rows,
            "columns": fitted.map_.columns,
            "notes": notes,
            "engine": engine_used,
        }
        print_json(document)
        return
    for note in notes:
        print_problem(f"{note}.")
    console().print(f"{rows:,} rows of {fitted.map_.columns} columns in {where}, repaired by {fitted!r}.")
    for line in describe_engine(engine_used, {}):
        console().print(line, style="dim")


def _check_output(output: str, column: str | None, engine: Engine) -> Address | None:
    """Raise an error for an output that cannot be written; returns its address where it is in a store."""
    from isotrope.sources.vectors.stores.address import parse
    from isotrope.storage.row_files import check_target

    address = parse(output)
    if address is None:
        check_target(Path(output))
        if column is not None:
            raise InputError(f"--output-column ({column!r}) is for stores; leave it out for a file.")
    elif engine.engine != "local":
        raise InputError(
            f"{address} is in a store, and stores are written with --engine local, not {engine.engine}; use that."
        )
    return address


def check_same_store(source: Source, target: Address) -> Store:
    """The store that rows are from, where repaired ones can go back to."""
    store = source.store
    if store is None or store.address.kind != target.kind:
        raise InputError(
            f"{target} takes repaired vectors of its own kind of store alone, with what belongs to each; "
            "write these to a file (.npy, .parquet, .safetensors)."
        )
    return store


def find_lost_columns(source: Source, output: str) -> Iterator[str]:
    """What stands beside the rows and is not written with them."""
    columns, suffix = source.columns, Path(output).suffix.lower()
    if columns is not None and columns.names and suffix != ".parquet":
        names = ", ".join(columns.names[:12]) + (" and others" if len(columns.names) > 12 else "")
        yield f"the columns {names} have no place in a {suffix} file and were left out; a .parquet file keeps them"
    files = [str(file.get("path", "")) for file in source.describe().get("files", [])]
    if columns is None and suffix == ".parquet" and any(file.endswith(TABLES) for file in files):
        yield "only the vectors were written; --engine local keeps the other columns of one kind of table"


def find_differences(fitted_on: Mapping[str, Any], source: Mapping[str, Any]) -> Iterator[str]:
    """Where rows of a model are not of the kind that a repair was fitted on.

    >>> list(find_differences({"sources": [{"model": "bert", "pooling": "mean"}]}, {"model": "bert", "pooling": None}))
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
