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
        typer.Option(help="Folder with latent_geometry/, wikitext-2/, ptb/.", show_default="$ISOTROPE_DATA"),
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
    kind = found.architecture or "no architecture of the calibration"
    out.print(
        f"{found.model} ({kind}): GLUE average from {found.rows:,} tokens of the last layer, quantized by "
        f"{found.quantizer}",
        style="bold",
    )
    numbers = {"value": 4, "GLUE": 0, "95 % interval": 0, "R²": 2, "r BERT-small": 6, "r RoBERTa": 5}
    columns = [Column("regression"), *(Column(title, right=True, rank=rank) for title, rank in numbers.items())]
    columns += [Column("error, new architecture", right=True, rank=1), Column("error on 13 others", right=True, rank=3)]
    rows = [
        [
            p.regression,
            f"{p.value:.4g}",
            f"{100 * p.glue:.1f}" if p.inside else "–",
            f"{100 * p.low:.0f} to {100 * p.high:.0f}" if p.inside else "–",
            *(f"{v:.2f}" for v in (p.r2, p.r_bert_small, p.r_roberta)),
            f"{100 * p.cross_error:.1f}",
            f"{100 * p.error:.1f}",
        ]
        for p in found.predictions
    ]
    print_table(out, columns, rows, [None if p.inside else "dim" for p in found.predictions])
    if found.choice is None:
        out.print("No measure is inside what its regression has seen: there is no prediction.")
    else:
        p = found.choice
        out.print(
            f"Chosen by leaving out one architecture at a time: {p.regression}, {100 * p.glue:.1f} ({100 * p.low:.0f} "
            f"to {100 * p.high:.0f}), off by {100 * p.cross_error:.1f} points on an architecture that it has not seen; "
            f"the mean of the calibration by {100 * found.guess_cross_error:.1f}.",
        )
    best = min((p.error for p in found.predictions), default=float("nan"))
    out.print(
        f"Known skill: on the 13 other models the best measure is off by {100 * best:.1f} points; the plain guess "
        f"{100 * found.guess:.1f}, the mean of the calibration, by {100 * found.guess_error:.1f}; their own mean by "
        f"{100 * found.spread:.1f}{', which no measure beats' if best > found.spread else ''}.",
    )
    for warning in found.warnings:
        out.print(f"with care: {warning}", style="dim")
