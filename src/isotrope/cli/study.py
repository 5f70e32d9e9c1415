"""isotrope study: the papers' experiments as whole protocols."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

import typer

from isotrope.cli import space_options as space
from isotrope.cli.predict import predict

if TYPE_CHECKING:
    from isotrope.studies.result import Study

study = typer.Typer(name="study", help="Repeat a paper's experiments on your models, its numbers beside yours.")

_Number = TypeVar("_Number", int, float)

Models: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Hub ids, folders or GGUF files, with commas between.", show_default="embedded all-MiniLM-L6-v2"),
]
Text: TypeAlias = Annotated[
    str | None, typer.Option(help="Text file, folder, dataset id.", show_default="Python manual")
]
Data: TypeAlias = Annotated[Path | None, typer.Option(help="Folder of the data sets.", show_default="$ISOTROPE_DATA")]
Texts: TypeAlias = Annotated[int | None, typer.Option(help="At most so many texts.", show_default="all")]
Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Minutes instead of hours: less of everything.")]
Seed: TypeAlias = Annotated[int, typer.Option(help="Of all that is drawn.")]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", "-o", help="Folder to write.", show_default="a new one")
]
Tasks: TypeAlias = Annotated[
    str | None, typer.Option(help="Of GLUE, e.g. rte,cola, or none.", show_default="all that the data holds")
]
_TRAINING = "Training"
TrainRows: TypeAlias = Annotated[
    int | None, typer.Option(help="Training rows to use.", show_default="all", rich_help_panel=_TRAINING)
]
Epochs: TypeAlias = Annotated[int, typer.Option(help="At most.", rich_help_panel=_TRAINING)]
LearningRate: TypeAlias = Annotated[float, typer.Option(help="Of the model.", rich_help_panel=_TRAINING)]
Resume: TypeAlias = Annotated[bool, typer.Option("--resume", help="Go on with a stopped study.")]


@study.callback(invoke_without_command=True)
def _options(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@study.command()
def uniformity(
    models: Models = None,
    text: Text = None,
    data: Data = None,
    texts: Texts = None,
    tasks: Tasks = None,
    seeds: Annotated[int, typer.Option(help="Seeds of fine-tuning.")] = 5,
    train_rows: TrainRows = None,
    epochs: Epochs = 3,
    learning_rate: LearningRate = 2e-5,
    quick: Quick = False,
    seed: Seed = 0,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    output: Output = None,
    resume: Resume = False,
    json: space.Json = False,
) -> None:
    """Spectra and uniformity by layer, the theorem's bound, STS, GLUE and what repairs change (Yan et al. 2022)."""
    given = locals()
    from isotrope.studies.uniformity import uniformity as run

    _run(run, "uniformity", given | {"tasks": _listed(tasks)})


@study.command()
def anisotropy(
    models: Models = None,
    text: Text = None,
    images: Annotated[
        str | None, typer.Option(help="For models of images: folder, dataset.", show_default="none")
    ] = None,
    sounds: Annotated[
        str | None, typer.Option(help="For models of sounds: folder, dataset.", show_default="none")
    ] = None,
    texts: Texts = None,
    width: Annotated[int, typer.Option(help="Of the fresh block.")] = 768,
    blocks: Annotated[
        str | None,
        typer.Option(help="Of the models, e.g. 0,3,-1, put under a bias.", show_default="first and middle"),
    ] = None,
    quick: Quick = False,
    seed: Seed = 0,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    output: Output = None,
    resume: Resume = False,
    json: space.Json = False,
) -> None:
    """Mean cosine and drift by layer, and blocks under a common bias (Godey et al. 2023)."""
    given = locals()
    from isotrope.studies.anisotropy import anisotropy as run

    _run(run, "anisotropy", given | {"blocks": None if blocks is None else _numbers(blocks, "blocks", int)})


@study.command("norm-variance")
def norm_variance(
    models: Models = None,
    text: Text = None,
    texts: Texts = None,
    quick: Quick = False,
    seed: Seed = 0,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    output: Output = None,
    resume: Resume = False,
    json: space.Json = False,
) -> None:
    """Norm and variance of token types by layer, and what explains them (Yamagiwa and Shimodaira 2024)."""
    given = locals()
    from isotrope.studies.norm_variance import norm_variance as run

    _run(run, "norm-variance", given)


@study.command("all")
def all_(
    models: Annotated[list[str] | None, typer.Argument(help="Hub ids, folders or GGUF files.")] = None,
    text: Text = None,
    data: Data = None,
    tasks: Tasks = None,
    train_rows: TrainRows = None,
    quick: Quick = False,
    seed: Seed = 0,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    output: Output = None,
    resume: Resume = False,
    json: space.Json = False,
) -> None:
    """All four studies, with one page over them."""
    given = locals()
    from isotrope.studies.run_all import all_studies as run

    _run(run, "all", given | {"tasks": _listed(tasks)})


_latent = typer.Typer(name="latent-geometry", help="Whether geometry foretells GLUE (Marbut, Chandler and Wheeler).")
_latent.command()(predict)
study.add_typer(_latent)


@_latent.callback(invoke_without_command=True)
def latent_geometry(
    context: typer.Context,
    models: Models = None,
    text: Text = None,
    data: Data = None,
    tasks: Tasks = None,
    levels: Annotated[
        str | None, typer.Option(help="Shares of noise, e.g. 0,0.05,0.2.", show_default="ten from 0 to 1")
    ] = None,
    seeds: Annotated[int, typer.Option(help="Seeds of noise and training.")] = 3,
    foreign: Annotated[
        str | None, typer.Option(help="Model of the same width whose input embeddings are tried.", show_default="none")
    ] = None,
    others: Annotated[
        str | None, typer.Option(help="Checkpoints of the models' kinds, taken as they are.", show_default="none")
    ] = None,
    train_rows: TrainRows = None,
    epochs: Epochs = 3,
    learning_rate: LearningRate = 2e-5,
    max_length: Annotated[int, typer.Option(help="Tokens at which texts are cut.", rich_help_panel=_TRAINING)] = 128,
    quick: Quick = False,
    seed: Seed = 0,
    batch_size: space.BatchSize = None,
    device: space.Device = "auto",
    output: Output = None,
    resume: Resume = False,
    json: space.Json = False,
) -> None:
    """Table 2 from the authors' files; then your models under more and more noise, measured and fine-tuned."""
    given = locals()
    if context.invoked_subcommand is not None:
        return
    from isotrope.studies.latent_geometry import latent_geometry as run

    del given["context"]
    given["levels"] = None if levels is None else _numbers(levels, "shares of noise", float)
    _run(run, "latent-geometry", given | {"tasks": _listed(tasks), "others": _listed(others) or []})


def _listed(text: str | None) -> list[str] | None:
    """Names with commas between; the word none for no name at all."""
    from isotrope.cli.evaluate.text import listed

    return None if text is None else [] if text == "none" else listed(text)


def _numbers(text: str, what: str, kind: type[_Number]) -> list[_Number]:
    from isotrope.errors import InputError

    try:
        return [kind(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"got the {what} {text!r}, expected numbers with commas between.") from None


#: What a study can go on from: finished parts, finished scans and their checkpoints.
_KEPT = ("parts/*/part.json", "runs/*/findings.json", "runs/*/checkpoint/*/state.json")


def _run(run: Any, name: str, given: dict[str, Any]) -> None:
    """Carry a study out, and say what it found."""
    from isotrope.cli.evaluate.text import listed
    from isotrope.cli.interrupts import advise_on_folder, advise_when_stopped
    from isotrope.cli.output import echo, echo_json
    from isotrope.cli.result_folder import fresh_folder
    from isotrope.cli.terminal import Bar, warnings_told
    from isotrope.errors import InputError

    given = dict(given)
    json, output, models = given.pop("json"), given.pop("output"), given.pop("models")
    if given["resume"] and output is None:
        raise InputError("there is nothing to resume without the study's folder; name it with -o.")
    folder = output or fresh_folder("isotrope-studies", name)
    chosen = listed(models) if isinstance(models, str) else models or []
    advise = advise_when_stopped(lambda: advise_on_folder(folder, *_KEPT, *(f"*/{name}" for name in _KEPT)))
    with advise, Bar(quiet=json) as bar, warnings_told():
        found = run(output=folder, models=chosen, progress=bar, say=None if json else _say, **given)
    studies = found if isinstance(found, list) else [found]
    if json:
        import json as library

        data = [one.to_dict() for one in studies]
        echo_json(library.dumps(data[0] if not isinstance(found, list) else {"studies": data}, allow_nan=False))
        return
    for one in studies:
        _show(one)
    page = "study.html" if not isinstance(found, list) else "studies.html"
    echo(f"\nResults: {folder}/ ({page}, parts/ with every table as CSV and JSON, runs/)")


def _say(text: str) -> None:
    """What people at a terminal want to know before it starts."""
    from isotrope.cli.output import console

    out = console(stderr=True)
    if out.is_terminal:
        out.print(f"{text}.", style="dim", soft_wrap=True)


_STYLES = {"contradicts": "red", "misprint": "yellow", "agrees": "green", "note": "dim"}


def _show(found: Study) -> None:
    """What the paper says and what was found, contradictions first."""
    from rich.text import Text as Line

    from isotrope.cli.output import console

    out = console()
    out.print(f"{found.name}: {found.paper}", style="bold", soft_wrap=True)
    for part, claim in found.ranked_claims:
        where = f", {claim.where}" if claim.where else ""
        out.print(Line(f"{claim.outcome} ({part}{where}): {claim.text}", _STYLES[claim.outcome]), soft_wrap=True)
