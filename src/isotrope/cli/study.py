"""isotrope study: the papers' experiments as whole protocols."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from isotrope.cli.group import print_help
from isotrope.cli.options import (
    Json,
    Keywords,
    OptionGroup,
    derive_options,
    make_space_options,
    name_new_folder,
    parse_names,
    parse_numbers,
)
from isotrope.cli.predict import predict
from isotrope.finetuning.settings import Training
from isotrope.studies.options import StudyOptions, Tokens, Unit

if TYPE_CHECKING:
    from isotrope.studies.result import Study

study = typer.Typer(name="study")


#: How the study of uniformity fine-tunes.
_TRAINING = "train_rows epochs learning_rate softdecay_form pretraining_text pretraining_epochs"

_READING = make_space_options("batch_size device")

#: What the command line says differently from the functions of studies.
_CHANGES: dict[str, dict[str, Any]] = {"output": {"default": None}, "models": {"default": None}}


def _select_options(names: str) -> OptionGroup:
    """The options with these names, and those of all studies."""
    return OptionGroup(StudyOptions, f"{names} quick seed output resume", changes=_CHANGES)


study.callback(invoke_without_command=True)(print_help)


@study.command()
@derive_options(after={"seeds": "tasks", "fit_text": "data"})
def uniformity(
    training: Annotated[Keywords, OptionGroup(Training, _TRAINING)],
    reading: Annotated[Keywords, _READING],
    asked: Annotated[Keywords, _select_options("models text data texts tasks")],
    seeds: Annotated[int, typer.Option(help="Seeds of fine-tuning.")] = 5,
    fit_text: Annotated[
        str | None, typer.Option(help="Text to fit flow and whitening on, e.g. sentences of NLI.", show_default="none")
    ] = None,
    simcse_text: Annotated[
        str | None, typer.Option(help="Sentences, one a line, for SimCSE.", show_default="those of the text")
    ] = None,
    simcse_triplets: Annotated[
        str | None, typer.Option(help="NLI triplets for supervised SimCSE, a CSV.", show_default="those of MNLI")
    ] = None,
    json: Json = False,
) -> None:
    """Spectra and uniformity by layer, the theorem's bound, STS, GLUE and what repairs change (Yan et al. 2022)."""
    from isotrope.studies.uniformity import uniformity as run

    more = {"seeds": seeds, "fit_text": fit_text, "simcse_text": simcse_text, "simcse_triplets": simcse_triplets}
    _run(run, "uniformity", asked, training | reading | more, json=json)


@study.command()
@derive_options(after={"maps": "texts", "width": "maps", "blocks": "width", "checkpoints": "blocks"})
def anisotropy(
    reading: Annotated[Keywords, _READING],
    asked: Annotated[Keywords, _select_options("models text images sounds texts")],
    maps: Annotated[str, typer.Option(help="Rows of convolutions: places of maps, or whole maps.")] = "places",
    width: Annotated[int, typer.Option(help="Of the fresh block.")] = 768,
    blocks: Annotated[
        str | None,
        typer.Option(help="Of the models, e.g. 0,3,-1, put under a bias.", show_default="first and middle"),
    ] = None,
    checkpoints: Annotated[
        str | None, typer.Option(help="Of one run in order, whose drift is followed.", show_default="none")
    ] = None,
    json: Json = False,
) -> None:
    """Mean cosine and drift by layer, and blocks under a common bias (Godey et al. 2023)."""
    from isotrope.studies.anisotropy import anisotropy as run

    more = {
        "maps": maps,
        "width": width,
        "blocks": None if blocks is None else parse_numbers(blocks, "the blocks", int),
        "checkpoints": _parse_names(checkpoints),
    }
    _run(run, "anisotropy", asked, reading | more, json=json)


@study.command("norm-variance")
@derive_options(after=dict.fromkeys(("group_by", "column", "merge_types", "max_words", "share"), "texts"))
def norm_variance(
    reading: Annotated[Keywords, _READING],
    asked: Annotated[Keywords, _select_options("models text texts")],
    share: Annotated[float, typer.Option(help="Random share of the texts, 0.01 of BookCorpus in the paper.")] = 1.0,
    max_words: Annotated[int, typer.Option(help="Leave out texts of more words; 0 for none.")] = 63,
    merge_types: Annotated[
        bool, typer.Option("--merge-types/--no-merge-types", help="Count ##ing or Ġing and ing as one type.")
    ] = True,
    column: Annotated[str | None, typer.Option(help="Column of the texts, where there are several.")] = None,
    group_by: Annotated[str | None, typer.Option(help="Study each value of this column, e.g. a language.")] = None,
    json: Json = False,
) -> None:
    """Norm and variance of token types by layer, and what explains them (Yamagiwa and Shimodaira 2024)."""
    from isotrope.studies.norm_variance import norm_variance as run

    chosen = {"share": share, "max_words": max_words, "merge_types": merge_types, "column": column}
    _run(run, "norm-variance", asked, reading | chosen | {"group_by": group_by}, json=json)


@study.command("all")
@derive_options
def all_(
    training: Annotated[Keywords, OptionGroup(Training, "train_rows")],
    reading: Annotated[Keywords, _READING],
    asked: Annotated[Keywords, _select_options("text images sounds data tasks")],
    models: Annotated[list[str] | None, typer.Argument(help="Hub ids, folders or GGUF files.")] = None,
    json: Json = False,
) -> None:
    """All four studies, with one page over them."""
    from isotrope.studies.run_all import all_studies as run

    _run(run, "all", asked | {"models": models}, training | reading, json=json)


_latent = typer.Typer(name="latent-geometry", help="Whether geometry foretells GLUE (Marbut, Chandler and Wheeler).")
_latent.command()(predict)
study.add_typer(_latent)


@_latent.callback(invoke_without_command=True)
@derive_options(
    after={
        "levels": "tasks",
        "seeds": "levels",
        "foreign": "seeds",
        "others": "foreign",
        "sequences": "others",
        "tokens": "sequences",
        "sweep": "tokens",
        "initialisation": "sweep",
    }
)
def latent_geometry(
    context: typer.Context,
    training: Annotated[Keywords, OptionGroup(Training, "train_rows epochs learning_rate max_length")],
    reading: Annotated[Keywords, _READING],
    asked: Annotated[Keywords, _select_options("models text data tasks")],
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
    sequences: Annotated[
        Unit | None, typer.Option(help="What is sampled.", show_default="lines of PTB and WikiText-2, else sentences")
    ] = None,
    tokens: Annotated[Tokens, typer.Option(help="Of which a sequence has 3 to 50.")] = "scikit-learn",
    sweep: Annotated[
        str | None, typer.Option(help="Codebooks and cells to try, e.g. 2x64,8x256.", show_default="none")
    ] = None,
    initialisation: Annotated[
        bool, typer.Option("--initialisation", help="Try fresh weights scaled by geometry.")
    ] = False,
    json: Json = False,
) -> None:
    """Table 2 from the authors' files; then your models under more and more noise, measured and fine-tuned."""
    if context.invoked_subcommand is not None:
        return
    from isotrope.studies.latent_geometry import latent_geometry as run

    more = {
        "levels": None if levels is None else parse_numbers(levels, "the shares of noise", float),
        "seeds": seeds,
        "foreign": foreign,
        "others": _parse_names(others) or [],
        "sequences": sequences,
        "tokens": tokens,
        "sweep": _parse_names(sweep),
        "initialisation": initialisation,
    }
    _run(run, "latent-geometry", asked, training | reading | more, json=json)


def _parse_names(text: str | None) -> list[str] | None:
    """Names with commas between; the word none for no name at all."""
    return None if text is None else [] if text == "none" else parse_names(text)


#: What a study can go on from: finished parts, finished scans and their checkpoints.
_KEPT = ("parts/*/part.json", "runs/*/findings.json", "runs/*/checkpoint/*/state.json")


def _run(run: Callable[..., Any], name: str, asked: Keywords, more: Keywords, *, json: bool) -> None:
    """Carry out a study, and print what it found.

    Args:
        run: The function of the study.
        name: Its name.
        asked: The options of `StudyOptions` that it takes.
        more: Its other arguments.
        json: Whether to print JSON.
    """
    from isotrope.cli.output import echo, print_json
    from isotrope.cli.progress import Bar, advise_on_folder, advise_when_stopped, print_warnings
    from isotrope.errors import InputError

    given = asked | more
    output, models = given.pop("output"), given.pop("models")
    if "tasks" in given:
        given["tasks"] = _parse_names(given["tasks"])
    if given["resume"] and output is None:
        raise InputError("there is nothing to resume without the study's folder; name it with -o.")
    folder = output or name_new_folder("isotrope-studies", name)
    chosen = parse_names(models) if isinstance(models, str) else models or []
    advise = advise_when_stopped(lambda: advise_on_folder(folder, *_KEPT, *(f"*/{name}" for name in _KEPT)))
    with advise, Bar(quiet=json) as bar, print_warnings():
        found = run(output=folder, models=chosen, progress=bar, say=None if json else _print_note, **given)
    studies = found if isinstance(found, list) else [found]
    if json:
        data = [one.to_dict() for one in studies]
        print_json(data[0] if not isinstance(found, list) else {"studies": data})
        return
    for one in studies:
        _show(one)
    page = "study.html" if not isinstance(found, list) else "studies.html"
    echo(f"\nResults: {folder}/ ({page}, parts/ with every table as CSV and JSON, runs/)")


def _print_note(text: str) -> None:
    """What people at a terminal want to know before it starts."""
    from isotrope.cli.output import console

    out = console(stderr=True)
    if out.is_terminal:
        out.print(f"{text}.", style="dim", soft_wrap=True)


_STYLES = {"contradicts": "red", "misprint": "yellow", "agrees": "green", "undecided": "cyan", "note": "dim"}


#: Outcomes whose name is not what people read.
_WORDS = {"undecided": "not decided"}


def _show(found: Study) -> None:
    """What the paper says and what was found, contradictions first."""
    from rich.text import Text as Line

    from isotrope.cli.output import console

    out = console()
    out.print(f"{found.name}: {found.paper}", style="bold", soft_wrap=True)
    for part, claim in found.ranked_claims:
        where = f", {claim.where}" if claim.where else ""
        evidence = f" [{claim.evidence}]" if claim.evidence else ""
        line = f"{_WORDS.get(claim.outcome, claim.outcome)} ({part}{where}): {claim.text}{evidence}"
        out.print(Line(line, _STYLES[claim.outcome]), soft_wrap=True)
