"""isotrope repair: fit, apply and show, one file each."""

from __future__ import annotations

import typer

from isotrope.cli.repair_apply import apply
from isotrope.cli.repair_fit import fit
from isotrope.cli.repair_show import show

repair = typer.Typer(
    name="repair",
    help="Fit a repair once, see what it does, apply it to any rows.",
    no_args_is_help=True,
)
for _command in (fit, show, apply):
    repair.command()(_command)
