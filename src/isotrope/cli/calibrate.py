"""isotrope calibrate: which cosine to use as a cut-off, and how sure that is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from isotrope.cli.options import ENDPOINT, OWN_POOLING, Json, check_new, derive_options, make_space_options
from isotrope.cli.output import console, echo, print_json
from isotrope.cli.progress import Bar, print_warnings
from isotrope.options import find_changes
from isotrope.sources.input import Input

if TYPE_CHECKING:
    from isotrope.search.calibration import Calibration

_LABELS, _OTHER, _WHAT = "Labels", "Another space", "What to calibrate"

_SPACE = make_space_options(
    f"model {ENDPOINT} revision gguf_file text vectors column "
    "pooling layers max_length batch_size device trust_remote_code",
    pooling={"shown": OWN_POOLING},
)


@derive_options
def calibrate(
    reading: Annotated[Input, _SPACE],
    input: Annotated[str | None, typer.Argument(metavar="VECTORS", help="Documents as vectors.")] = None,
    queries: Annotated[
        str | None, typer.Option(help="Vectors of queries; with --model their texts.", rich_help_panel=_WHAT)
    ] = None,
    false_accept: Annotated[
        float | None,
        typer.Option(
            help="Share of random pairs that may pass.",
            show_default="1e-4, or the smallest supported power of ten",
            rich_help_panel=_WHAT,
        ),
    ] = None,
    documents: Annotated[
        int | None,
        typer.Option(help="Documents that one query is compared with.", show_default="all", rich_help_panel=_WHAT),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(
            help="Table of pairs: id1, id2, label; with --model sentence1, sentence2, score.", rich_help_panel=_LABELS
        ),
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Relevance judgements of queries, as of BEIR or TREC.", rich_help_panel=_LABELS)
    ] = None,
    precision_at: Annotated[
        float | None, typer.Option(help="Precision that the threshold must have.", rich_help_panel=_LABELS)
    ] = None,
    recall_at: Annotated[
        float | None, typer.Option(help="Recall that the threshold must have.", rich_help_panel=_LABELS)
    ] = None,
    match_from: Annotated[
        float | None,
        typer.Option(help="Grade from which on a pair matches.", show_default="1", rich_help_panel=_LABELS),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            help="Ids of vectors: a column, or FILE or FILE:COLUMN with one for each row.",
            show_default="_id or id, else row numbers",
            rich_help_panel=_LABELS,
        ),
    ] = None,
    query_id_column: Annotated[
        str | None,
        typer.Option(help="The same for queries.", show_default="the same column", rich_help_panel=_LABELS),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="The same rows in another space, as vectors.", rich_help_panel=_OTHER)
    ] = None,
    repair: Annotated[
        Path | None, typer.Option(help="A saved repair, in place of --to.", rich_help_panel=_OTHER)
    ] = None,
    cutoff: Annotated[
        float | None, typer.Option(help="Cut-off here that is carried to the other space.", rich_help_panel=_OTHER)
    ] = None,
    sample: Annotated[int, typer.Option(help="Rows that random pairs are made of.", rich_help_panel=_WHAT)] = 10_000,
    seed: Annotated[int, typer.Option(help="Of the sample, the pairs and their split.", rich_help_panel=_WHAT)] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File for the calibration, as JSON.", show_default=False)
    ] = None,
    json: Json = False,
) -> None:
    """
    Without labels, a threshold is for a rate of false accepts of random pairs; with labels, for a precision or recall.
    """
    from isotrope.cli.inputs import resolve_input
    from isotrope.search.calibrate import calibrate as compute

    check_new(output, "file")
    given = {name: value for name, value in find_changes(resolve_input(input, reading)).items() if value is not None}
    with Bar(quiet=json) as bar, print_warnings():
        found = compute(
            **given,
            queries=queries,
            pairs=pairs,
            qrels=qrels,
            false_accept=false_accept,
            precision_at=precision_at,
            recall_at=recall_at,
            documents=documents,
            to=to,
            repair=repair,
            cutoff=cutoff,
            id_column=id_column,
            query_id_column=query_id_column,
            match_from=match_from,
            sample=sample,
            seed=seed,
            progress=bar,
        )
    if output is not None:
        found.save(output)
    if json:
        print_json(found.to_dict())
        return
    out = console()
    lines = describe_calibration(found)
    out.print(Text(lines[0], style="bold"))
    for line in lines[1:]:
        out.print(Text(line))
    if output is not None:
        echo(f"\nWritten to {output}; isotrope.Calibration.load reads it.")


def describe_calibration(found: Calibration) -> list[str]:
    """Describe a calibration in a few sentences, the threshold first."""
    asked, background = found.asked, found.background
    how = "by a generalized Pareto tail" if asked.method == "tail" else "by their quantile"
    rate = f"{asked.false_accept:.3g}"
    lines = [
        f"Accept from a cosine of {float(asked):.4f} on: {rate} of random pairs reach it.",
        f"The threshold of this rate lies between {asked.low:.4f} and {asked.high:.4f} in 95 of 100 other samples of "
        f"as many rows ({how}; {background.pairs:,} pairs of {background.rows:,} rows, worth "
        f"{round(background.compute_effective(asked.false_accept)):,} independent ones).",
        f"A query without a match, against {found.documents:,} documents, gets a false accept with a chance of "
        f"{found.query_false_accept:.1%} ({found.documents * asked.false_accept:.3g} are expected).",
        _describe_separation(found),
    ]
    for each in found.certified:
        lines.append(
            f"For a {each.goal} of {each.wanted:g}, accept from {each.value:.4f} on: on {each.pairs:,} held-out pairs "
            f"the {each.goal} is {each.reached:.3f} ({each.low:.3f} to {each.high:.3f} in 95 of 100 other sets of "
            f"pairs), with precision {each.precision:.3f} and recall {each.recall:.3f}."
        )
    if found.labelled is not None:
        label = found.labelled
        lines.append(
            f"{label['matches']:,} of {label['pairs']:,} labelled pairs match: area under the ROC curve "
            f"{label['auc']:.3f}; expected calibration error {label['ece_before']:.3f} with cosines as probabilities, "
            f"{label['ece_after']:.3f} after isotonic regression."
        )
    if (carried := found.transfer) is not None:
        lines.append(
            f"The cut-off {carried.before:g} becomes {carried.after:.4f} in the other space ({carried.low:.4f} to "
            f"{carried.high:.4f}): {carried.share:.3g} of random pairs pass both; {carried.kept:.1%} of those that "
            f"pass here pass there, and {carried.disagree:.2g} of all pairs are decided differently."
        )
    return lines


def _describe_separation(found: Calibration) -> str:
    there = found.separation
    if there is None:
        return "There are too few documents to say whether best matches stand out from the background."
    facts = (
        f"the best document scores {there.best:.4f} in the median, the best unrelated one would score "
        f"{there.background:.4f} (overlap {there.overlap:.2f}, {there.low:.2f} to {there.high:.2f})."
    )
    words = {
        "yes": "Best matches stand out from the background",
        "partly": "Best matches stand out from the background in part",
        "no": "No threshold separates best matches from the background",
    }
    return f"{words[there.answer]}: {facts}"
