"""isotrope repair fit: fit a repair in one pass, and save it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli.options import ENGINE, SPACE, Json, OptionGroup, check_new, derive_options, make_space_options
from isotrope.cli.output import console, print_json
from isotrope.cli.progress import Bar, print_warnings
from isotrope.cli.repair.show import describe_fit, describe_repair, print_safety
from isotrope.cli.terminal import describe_engine
from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.options import find_changes, list_options, option
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from isotrope.repairs import Repair

#: Options that repairs call otherwise.
_NAMES = {"dimensions": ("n_components",), "directions": ("n_directions", "directions")}


@dataclass(frozen=True, kw_only=True)
class Parameters:
    """Parameters of repairs; None leaves the repair's own default."""

    alpha: float | None = option(None, "How strongly softdecay bends, below 0.", type=float)
    form: str | None = option(None, "softdecay: shifted, clipped, paper; whitening: pca, zca.")
    strength: float | None = option(None, "How much of whitening, 0 to 1.", type=float)
    dimensions: int | None = option(None, "Directions that whitening keeps.", type=int)
    directions: int | None = option(None, "Directions that are taken out.", type=int)
    clusters: int | None = option(None, "Clusters at most.", type=int)
    tolerance: float | None = option(None, "Directions below this share of the strongest are dropped.", type=float)
    reference_rows: int | None = option(None, "softdecay as for so many rows.", type=int)
    normalize: bool | None = option(None, "Divide rows by their length, here and when applied.", type=bool)
    scaled: bool | None = option(None, "centering of rows' directions.", type=bool)
    steps: int | None = option(None, "Steps of a flow.", type=int)
    hidden: int | None = option(None, "Width of a flow's networks.", type=int)
    epochs: int | None = option(None, "Times a flow sees each row.", type=int)
    seed: int | None = option(None, "Of what is drawn.", type=int)


@derive_options
def fit(
    parameters: Annotated[Parameters, OptionGroup(Parameters, panel="Parameters of the repair")],
    reading: Annotated[Input, make_space_options(f"{SPACE} bad_files")],
    engine: Annotated[Engine, ENGINE],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to save the repair in; a new one.")],
    with_: Annotated[
        str, typer.Option("--with", help="softdecay, whitening, all-but-the-top, centering, clusters, flow.")
    ],
    input: Annotated[
        str | None, typer.Argument(help="Vectors, a text, a model, or the run folder of a scan; found out.")
    ] = None,
    json: Json = False,
) -> None:
    from isotrope.cli.inputs import check_unused, open_space
    from isotrope.runs.run import Run
    from isotrope.storage.files import remove_leftovers_of
    from isotrope.storage.locks import reserve_path

    fitted, normalize = make_repair(with_, find_changes(parameters)), parameters.normalize
    fit_rows = fitted.fit if not normalize or "normalize" in fitted.get_params() else fitted.fit_unit_rows
    where: dict[str, Any] = {"name": "local"}
    read: dict[str, Any] = {}
    check_new(output, "folder")
    with reserve_path(output):
        remove_leftovers_of(output)
        if input is not None and Run(input).finished:
            check_unused(reading, f"the run {input!r}")
            with print_warnings():
                _fit_on_run(fitted, fit_rows, input, reading.layers)
        else:
            with Bar(quiet=json) as bar:
                bar("opening", 0, None)
                with open_space(input, reading, engine, precision="fast") as source, print_warnings():
                    fit_rows(source.with_progress(lambda done, total: bar(f"reading {source.unit}", done, total)))
                    where, read = source.engine, source.describe()
        if normalize:
            fitted.normalizes_ = "output" if "normalize" in fitted.get_params() else "both"
        fitted.save(output)
    if json:
        document = describe_repair(fitted) | {"output": str(output), "engine": where}
        print_json(document)
        return
    out = console()
    out.print(
        f"{fitted!r} from {fitted.map_.width} to {fitted.map_.columns} columns, {describe_fit(fitted.fitted_on_)}."
    )
    print_safety(out, fitted)
    for line in describe_engine(where, read):
        out.print(line, style="dim")
    out.print(f"Saved in {output}/: isotrope repair show {output} says what it does.")


def make_repair(name: str, options: Mapping[str, Any]) -> Repair:
    """Make the repair of that name; an option that has no effect on it is an error.

    >>> make_repair("softdecay", {"alpha": -0.4})
    SoftDecay(alpha=-0.4)
    """
    from isotrope.repairs import REPAIRS

    kind = REPAIRS.get(name)
    known = kind().get_params()
    names = {asked: _NAMES.get(asked, (asked,)) for asked in list_options(Parameters)}
    sets = {asked: next((p for p in possible if p in known), None) for asked, possible in names.items()}
    parameters = {}
    for asked, value in options.items():
        parameter = sets[asked]
        if parameter is None and asked == "normalize":  # rows are divided before any other repair sees them
            continue
        if parameter is None:
            takes = ", ".join(f"--{_flag(other)}" for other, p in sets.items() if p is not None) or "no options"
            raise InputError(f"--{_flag(asked)} has no effect on {name}, which takes {takes}; leave it out.")
        parameters[parameter] = value
    return kind(**parameters)


def _flag(option: str) -> str:
    return option.replace("_", "-")


def _fit_on_run(fitted: Repair, fit_rows: Callable[[Any], Repair], folder: str, layer: str | None) -> None:
    """Fit on what a scan has left in its folder: moments for a linear repair, the sample of rows for others.

    fit_rows: the method of the repair that does it.
    """
    from isotrope.cli.inputs import find_run_layer
    from isotrope.repairs import saved_summary
    from isotrope.repairs.linear import LinearRepair

    wanted, source = find_run_layer(folder, layer)
    summary = saved_summary(folder, wanted)
    if isinstance(fitted, LinearRepair):
        fit_rows(summary)
    elif summary.sample is None:
        raise InputError(
            f"{fitted.name} is fitted on rows, and the run {folder!r} kept none; give the rows themselves."
        )
    else:
        fit_rows(summary.sample)
    fitted.name_sources([source])  # statistics do not say whose they are; the run does
