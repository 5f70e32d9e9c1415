"""isotrope repair fit: fit a repair in one pass, and save it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli import engine_options
from isotrope.cli import space_options as space

if TYPE_CHECKING:
    from isotrope.repairs import Repair

_PARAMETERS = "Parameters of the repair"

#: Options and the parameter that each sets, under the names that repairs give it.
_OPTIONS = {
    "alpha": ("alpha",),
    "form": ("form",),
    "strength": ("strength",),
    "dimensions": ("n_components",),
    "directions": ("n_directions", "directions"),
    "clusters": ("clusters",),
    "tolerance": ("tolerance",),
    "reference_rows": ("reference_rows",),
    "normalize": ("normalize",),
    "scaled": ("scaled",),
    "steps": ("steps",),
    "hidden": ("hidden",),
    "epochs": ("epochs",),
    "seed": ("seed",),
}


def fit(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder to save the repair in; a new one.")],
    with_: Annotated[
        str, typer.Option("--with", help="softdecay, whitening, all-but-the-top, centering, clusters, flow.")
    ],
    input: Annotated[
        str | None, typer.Argument(help="Vectors, a text, a model, or the run folder of a scan; found out.")
    ] = None,
    alpha: Annotated[
        float | None, typer.Option(help="How strongly softdecay bends, below 0.", rich_help_panel=_PARAMETERS)
    ] = None,
    form: Annotated[
        str | None,
        typer.Option(help="softdecay: shifted, clipped, paper; whitening: pca, zca.", rich_help_panel=_PARAMETERS),
    ] = None,
    strength: Annotated[
        float | None, typer.Option(help="How much of whitening, 0 to 1.", rich_help_panel=_PARAMETERS)
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option(help="Directions that whitening keeps.", rich_help_panel=_PARAMETERS)
    ] = None,
    directions: Annotated[
        int | None, typer.Option(help="Directions that are taken out.", rich_help_panel=_PARAMETERS)
    ] = None,
    clusters: Annotated[int | None, typer.Option(help="Clusters at most.", rich_help_panel=_PARAMETERS)] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(help="Directions below this share of the strongest are dropped.", rich_help_panel=_PARAMETERS),
    ] = None,
    reference_rows: Annotated[
        int | None, typer.Option(help="softdecay as for so many rows.", rich_help_panel=_PARAMETERS)
    ] = None,
    normalize: Annotated[
        bool | None,
        typer.Option(
            "--normalize", help="Divide rows by their length, here and when applied.", rich_help_panel=_PARAMETERS
        ),
    ] = None,
    scaled: Annotated[
        bool | None, typer.Option("--scaled", help="centering of rows' directions.", rich_help_panel=_PARAMETERS)
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Steps of a flow.", rich_help_panel=_PARAMETERS)] = None,
    hidden: Annotated[int | None, typer.Option(help="Width of a flow's networks.", rich_help_panel=_PARAMETERS)] = None,
    epochs: Annotated[int | None, typer.Option(help="Times a flow sees each row.", rich_help_panel=_PARAMETERS)] = None,
    seed: Annotated[int | None, typer.Option(help="Of what is drawn.", rich_help_panel=_PARAMETERS)] = None,
    model: space.Model = None,
    revision: space.Revision = None,
    text: space.Text = None,
    vectors: space.Vectors = None,
    column: space.Column = None,
    split: space.Split = None,
    pooling: space.Pooling = None,
    layer: space.OneLayer = None,
    max_length: space.MaxLength = None,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    trust_remote_code: space.TrustRemoteCode = False,
    bad_files: space.BadFiles = "stop",
    engine: engine_options.Engine = "local",
    address: engine_options.Address = None,
    workers: engine_options.Workers = None,
    gpus_per_worker: engine_options.GpusPerWorker = 0.0,
    json: space.Json = False,
) -> None:
    """Fit a repair on rows in one pass, and save it in a folder."""
    given = locals()
    from isotrope.cli.engine_text import engine_words
    from isotrope.cli.output import console, echo_json
    from isotrope.cli.terminal import Bar, warnings_told
    from isotrope.engines.engine import engine_of
    from isotrope.errors import StoreError
    from isotrope.runs.run import Run
    from isotrope.sources.progress import watched
    from isotrope.storage.files import remove_leftovers_of
    from isotrope.storage.locks import reserve_path

    fitted = chosen(with_, {name: given[name] for name in _OPTIONS if given[name] is not None})
    fit_rows = fitted.fit if not normalize or "normalize" in fitted.get_params() else fitted.fit_unit_rows
    where, read = engine_of(None), {}
    if output.exists():
        raise StoreError(f"{str(output)!r} is there already, and is never written over; give a new folder with -o.")
    with reserve_path(output):
        remove_leftovers_of(output)
        if input is not None and Run(input).finished:
            space.refuse_reading(given, f"the run {input!r}")
            with warnings_told():
                _fit_on_run(fitted, fit_rows, input, layer)
        else:
            with Bar(quiet=json) as bar:
                bar("opening", 0, None)
                with space.open_space(given, precision="fast") as source, warnings_told():
                    fit_rows(watched(source, lambda done, total: bar(f"reading {source.unit}", done, total)))
                    where, read = engine_of(source), source.describe()
        if normalize:
            fitted.normalizes_ = "output" if "normalize" in fitted.get_params() else "both"
        fitted.save(output)
    if json:
        import json as library

        document = facts(fitted) | {"output": str(output), "engine": where}
        echo_json(library.dumps(document, indent=1, ensure_ascii=False))
        return
    out = console()
    out.print(f"{fitted!r} from {fitted.map_.width} to {fitted.map_.columns} columns, {described(fitted.fitted_on_)}.")
    print_safety(out, fitted)
    for line in engine_words(where, read):
        out.print(line, style="dim", soft_wrap=True)
    out.print(f"Saved in {output}/: isotrope repair show {output} says what it does.")


def chosen(name: str, options: Mapping[str, Any]) -> Repair:
    """The repair of that name with the options given; one that has no effect on it is refused.

    >>> chosen("softdecay", {"alpha": -0.4})
    SoftDecay(alpha=-0.4)
    """
    from isotrope.errors import InputError
    from isotrope.repairs import REPAIRS

    kind = REPAIRS.get(name)
    known = kind().get_params()
    sets = {option: next((p for p in names if p in known), None) for option, names in _OPTIONS.items()}
    parameters = {}
    for option, value in options.items():
        parameter = sets[option]
        if parameter is None and option == "normalize":  # rows are divided before any other repair sees them
            continue
        if parameter is None:
            takes = ", ".join(f"--{_dashed(o)}" for o, p in sets.items() if p is not None) or "no options"
            raise InputError(f"--{_dashed(option)} has no effect on {name}, which takes {takes}; leave it out.")
        parameters[parameter] = value
    return kind(**parameters)


def _dashed(option: str) -> str:
    return option.replace("_", "-")


def _fit_on_run(fitted: Repair, fit_rows: Callable[[Any], Repair], folder: str, layer: str | None) -> None:
    """Fit on what a scan has left in its folder: moments for a linear repair, the sample of rows for others.

    fit_rows: the method of the repair that does it.
    """
    from isotrope.errors import InputError
    from isotrope.repairs import saved_summary
    from isotrope.repairs.linear import LinearRepair

    wanted, source = space.run_layer(folder, layer)
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


def print_safety(out: Any, fitted: Repair) -> None:
    """What a repair does to lengths, how searches survive rounding, and what is risky, a line each."""
    from isotrope.repairs import find_risks

    words = {"input": "before the repair", "output": "after the repair", "both": "before and after the repair"}
    if fitted.normalizes_ in words:
        out.print(f"Rows are divided by their length {words[fitted.normalizes_]}.", soft_wrap=True)
    if fitted.query_rounding_ is not None:
        out.print(str(fitted.query_rounding_), soft_wrap=True)
    for risk in find_risks(fitted):
        out.print(f"Note: {risk}", soft_wrap=True)


def facts(fitted: Repair) -> dict[str, Any]:
    """What a fitted repair is, as plain data."""
    from isotrope.repairs import Gains, find_risks
    from isotrope.repairs.linear import LinearRepair

    rounding = fitted.query_rounding_
    return {
        "repair": fitted.name,
        "parameters": fitted.get_params(),
        "width": fitted.map_.width,
        "columns": fitted.map_.columns,
        "fitted_on": fitted.fitted_on_,
        "normalize": fitted.normalizes_,
        "query_rounding": None if rounding is None else rounding.to_dict(),
        "gain_summary": Gains.of(fitted).to_dict() if isinstance(fitted, LinearRepair) else None,
        "risks": find_risks(fitted),
    }


def described(fitted_on: Mapping[str, Any]) -> str:
    """In words what a repair was fitted on.

    >>> described({"rows": 5, "zero_rows": 2, "sources": [{"model": "bert", "pooling": "mean", "layers": [6]}]})
    'fitted on 5 rows (2 of zeros left out) of bert, layer 6, pooling mean'
    """
    words = f"fitted on {fitted_on['rows']:,} rows"
    left_out = {"of zeros": fitted_on.get("zero_rows"), "not finite": fitted_on.get("nonfinite_rows")}
    if any(left_out.values()):
        words += f" ({', '.join(f'{n:,} {what}' for what, n in left_out.items() if n)} left out)"
    return words + "".join(f" of {_source(source)}" for source in fitted_on.get("sources", []))


def _source(source: Mapping[str, Any]) -> str:
    if source.get("model") is None:
        return ", ".join(str(file.get("path", file)) for file in source.get("files", [])[:3]) or "vectors"
    over = f" over {source['corpus']['name']}" if "corpus" in source else ""
    layers = ", ".join(map(str, source.get("layers", [])))
    return f"{source['model']}{over}, layer {layers}, " + (
        f"pooling {source['pooling']}" if source.get("pooling") else "tokens as rows"
    )
