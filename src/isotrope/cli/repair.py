"""isotrope repair: fit, show, apply and export, one file each."""

from __future__ import annotations

import typer

from isotrope.cli.repair_apply import apply
from isotrope.cli.repair_export import export
from isotrope.cli.repair_fit import fit
from isotrope.cli.repair_show import show

repair = typer.Typer(name="repair", help="Fit a repair once, see what it does, apply it to any rows, take it anywhere.")
for _command in (fit, show, apply, export):
    repair.command()(_command)


@repair.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
