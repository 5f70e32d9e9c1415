"""isotrope study latent-geometry predict: a GLUE average from geometry, and what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli.options import Json, Keywords, derive_options, make_space_options
from isotrope.cli.output import console, print_json
from isotrope.cli.progress import Bar
from isotrope.cli.tables import Column, print_table
from isotrope.errors import InputError

if TYPE_CHECKING:
    from isotrope.studies.latent_geometry.prediction import Predictions


@derive_options
def predict(
    reading: Annotated[Keywords, make_space_options("batch_size device")],
    model: Annotated[str, typer.Argument(help="Hub id, folder or GGUF file.")],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with latent_geometry/ and wikitext-2/.", show_default="$ISOTROPE_DATA"),
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the sequences and quantizers.")] = 0,
    json: Json = False,
) -> None:
    """Predict a GLUE average from each measure of the last layer, with the measure's known skill beside it."""
    import os

    from isotrope.studies.latent_geometry.prediction import predict_glue

    place = data if data is not None else os.environ.get("ISOTROPE_DATA")
    if place is None:
        raise InputError("the prediction needs the authors' files and WikiText-2; name their folder with --data.")
    with Bar(quiet=json) as bar:
        found = predict_glue(model, data=place, seed=seed, **reading, progress=bar)
    if json:
        print_json(found.to_dict())
    else:
        _show(found)


def _show(found: Predictions) -> None:
    """One line for each measure, and in words what that is worth."""
    out = console()
    fitted = f"with the architecture {found.architecture}" if found.architecture else "without an architecture"
    out.print(f"{found.model}: GLUE average from {found.rows:,} tokens of the last layer, {fitted}", style="bold")
    numbers = {"value": 4, "GLUE": 0, "95 % interval": 0, "R²": 2, "r BERT-small": 5, "r RoBERTa": 3}
    columns = [Column("measure"), *(Column(title, right=True, rank=rank) for title, rank in numbers.items())]
    columns.append(Column("error on 13 others", right=True, rank=1))
    best_first = sorted(found.predictions, key=lambda p: p.error)
    rows = [
        [
            p.measure,
            f"{p.value:.4g}",
            f"{100 * p.glue:.1f}" if p.inside else f"({100 * p.glue:.1f})",
            f"{100 * p.low:.0f} to {100 * p.high:.0f}",
            *(f"{v:.2f}" for v in (p.r2, p.r_bert_small, p.r_roberta)),
            f"{100 * p.error:.1f}",
        ]
        for p in best_first
    ]
    print_table(out, columns, rows, [None if p.inside else "dim" for p in best_first])
    best = min((p.error for p in found.predictions), default=float("nan"))
    out.print(
        f"Known skill: on the 13 other models the best measure is off by {100 * best:.1f} points; the plain guess "
        f"{100 * found.guess:.1f}, the mean of the calibration, by {100 * found.guess_error:.1f}; their own mean by "
        f"{100 * found.spread:.1f}, which no measure beats.",
    )
    for warning in found.warnings:
        out.print(f"with care: {warning}", style="dim")
