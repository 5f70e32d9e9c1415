"""isotrope repair: fit, show, apply and export, one file each."""

from isotrope.cli.group import make_group

COMMANDS = {
    "fit": "Fit a repair on rows in one pass, and save it in a folder.",
    "show": "Show what a repair does: its gains, and every measure before and after it.",
    "apply": "Apply a saved repair to rows, in their order and in constant memory, and write them.",
    "export": "Write a linear repair for another library, which applies it without isotrope.",
}

repair = make_group("repair", COMMANDS, package=__name__)
