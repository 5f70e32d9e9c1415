"""isotrope evaluate: whether a repair, or a way of training, helps on real tasks, one file each."""

from __future__ import annotations

import typer

from isotrope.cli.evaluate.glue import glue
from isotrope.cli.evaluate.retrieval import retrieval
from isotrope.cli.evaluate.sts import sts
from isotrope.cli.options import print_help

evaluate = typer.Typer(name="evaluate", help="Score a model on real tasks, without and with repairs, or fine-tuned.")
for _command in (sts, retrieval, glue):
    evaluate.command()(_command)
evaluate.callback(invoke_without_command=True)(print_help)
