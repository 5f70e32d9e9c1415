"""isotrope evaluate: whether a repair, or a way of training, helps on real tasks, one file each."""

from __future__ import annotations

import typer

from isotrope.cli.evaluate.glue import glue
from isotrope.cli.evaluate.retrieval import retrieval
from isotrope.cli.evaluate.sts import sts

evaluate = typer.Typer(name="evaluate", help="Score a model on real tasks, without and with repairs, or fine-tuned.")
for _command in (sts, retrieval, glue):
    evaluate.command()(_command)


@evaluate.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
