"""isotrope build: an embedder from any language model, by the advice alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from isotrope.cli.options import Json, Keywords, derive_options, make_advice_options
from isotrope.cli.output import echo, print_json
from isotrope.cli.progress import Bar, print_warnings

_SPACE = make_advice_options(
    "revision gguf_file column split", default="mean", help="mean, cls, last, max, weightedmean.", shown=None
)


@derive_options
def build(
    model: Annotated[str, typer.Argument(help="Hub id, folder or GGUF file.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to write.", show_default=False)],
    text: Annotated[
        str, typer.Option(help="Text of the kind that will be embedded: a file, folder, dataset id, or -.")
    ],
    reading: Annotated[Keywords, _SPACE],
    normalize: Annotated[
        bool, typer.Option("--normalize/--no-normalize", help="Divide rows by their length at the end.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")] = False,
    json: Json = False,
) -> None:
    """
    Nothing needs a label: the text says what will be embedded. The folder's README.md says what was done and measured.
    """
    from isotrope.advice.build import build as make
    from isotrope.cli.advise import show

    with Bar(quiet=json) as bar, print_warnings():
        advice = make(
            output,
            model=model,
            text=text,
            normalize=normalize,
            overwrite=overwrite,
            seed=seed,
            **reading,
            progress=bar,
        )
    if json:
        print_json(advice.to_dict() | {"folder": str(output)})
        return
    show(advice)
    echo(f'\nWritten to {output}/: SentenceTransformer("{output}") loads it; its README.md says what was done.')
