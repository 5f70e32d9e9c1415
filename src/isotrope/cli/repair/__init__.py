"""isotrope repair: fit, show, apply and export, one file each."""

from __future__ import annotations

import typer

from isotrope.cli.options import print_help
from isotrope.cli.repair.apply import apply
from isotrope.cli.repair.export import export
from isotrope.cli.repair.fit import fit
from isotrope.cli.repair.show import show

repair = typer.Typer(name="repair", help="Fit a repair once, see what it does, apply it to any rows, take it anywhere.")
for _command in (fit, show, apply, export):
    repair.command()(_command)
repair.callback(invoke_without_command=True)(print_help)
