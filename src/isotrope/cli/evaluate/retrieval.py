"""isotrope evaluate retrieval: search without and with repairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli.evaluate.result import (
    VECTORS,
    IdColumn,
    QueryIdColumn,
    RepairNames,
    ResamplingSeed,
    ResultFile,
    VectorColumn,
    describe_change,
    format_interval,
    format_score,
    make_evaluation_options,
    print_heading,
    run_evaluation,
)
from isotrope.cli.options import ENGINE, ROWS, Json, Keywords, derive_options
from isotrope.cli.output import console, echo
from isotrope.cli.tables import Column, print_table

if TYPE_CHECKING:
    from isotrope.evaluation.result import RetrievalEvaluation

#: Columns of the table: score and heading.
_COLUMNS = (
    ("recall_at_10", "recall@10"),
    ("recall_at_100", "recall@100"),
    ("mrr_at_10", "MRR@10"),
)

_SPACE = make_evaluation_options(
    layers={"shown": "last"}, pooling="mean, cls, last, max, first+last, sbert-wk, mean:1+-1."
)


@derive_options(after={"query_prompt": "model", "document_prompt": "query_prompt"})
def retrieval(
    reading: Annotated[Keywords, _SPACE],
    engine: Annotated[Keywords, ENGINE],
    data: Annotated[
        Path | None,
        typer.Option(help="Folder with corpus.jsonl, queries.jsonl and qrels, as of BEIR.", show_default=False),
    ] = None,
    documents: Annotated[
        str | None,
        typer.Option(help="Vectors of documents, in place of --data.", rich_help_panel=VECTORS, show_default=False),
    ] = None,
    queries: Annotated[
        str | None, typer.Option(help="Vectors of queries.", rich_help_panel=VECTORS, show_default=False)
    ] = None,
    qrels: Annotated[
        Path | None,
        typer.Option(help="Judgements, as of BEIR or TREC.", rich_help_panel=VECTORS, show_default=False),
    ] = None,
    column: VectorColumn = None,
    id_column: IdColumn = None,
    query_id_column: QueryIdColumn = None,
    split: Annotated[str, typer.Option(help="Which judgements: the name of a file in qrels.")] = "test",
    repair: RepairNames = "none",
    fit_text: Annotated[
        str, typer.Option(help="Text that repairs are fitted on: a file, or own, the documents.")
    ] = "own",
    query_prompt: Annotated[str, typer.Option(help="Before each query, e.g. 'query: '.", rich_help_panel=ROWS)] = "",
    document_prompt: Annotated[
        str, typer.Option(help="Before each document, e.g. 'passage: '.", rich_help_panel=ROWS)
    ] = "",
    run_files: Annotated[
        Path | None,
        typer.Option(help="New folder for rankings as run files of TREC, one for each repair.", show_default=False),
    ] = None,
    seed: ResamplingSeed = 0,
    output: ResultFile = None,
    json: Json = False,
) -> None:
    from isotrope.evaluation.retrieval import evaluate_retrieval

    run_evaluation(
        evaluate_retrieval,
        _show,
        repair=repair,
        output=output,
        json=json,
        data=data,
        documents=documents,
        queries=queries,
        qrels=qrels,
        column=column,
        id_column=id_column,
        query_id_column=query_id_column,
        run_files=run_files,
        split=split,
        fit_text=fit_text,
        query_prompt=query_prompt,
        document_prompt=document_prompt,
        seed=seed,
        **reading,
        **engine,
    )
    if run_files is not None and not json:
        echo(f"Rankings: {run_files}/ (run files of TREC)")


def _show(found: RetrievalEvaluation) -> None:
    """A line for each repair, and in words what the repairs change."""
    out = console()
    first = found.scores[0]
    what = f"{first.n:,} queries over {found.documents:,} documents of {first.set}, by cosine, scores × 100"
    print_heading(out, found.scores, what, "the documents")
    changes = {(d.metric, d.repair): d for d in found.differences}
    columns = [Column("repair"), Column("nDCG@10", right=True), Column("95 % interval", right=True, rank=1)]
    columns += [Column(heading, right=True, rank=2 + index) for index, (_, heading) in enumerate(_COLUMNS)]
    rows = []
    for score in found.scores:
        main, *others = (
            format_score(getattr(score, metric), changes.get((metric, score.repair)))
            for metric in ("ndcg_at_10", *dict(_COLUMNS))
        )
        rows.append([score.repair, main, format_interval(score), *others])
    print_table(out, columns, rows)
    if changes:
        legend = f"* differs beyond chance: p below 0.05 after Holm's correction for {len(changes)} comparisons."
        out.print(legend, style="dim")
    for score in found.scores[1:]:
        out.print(f"nDCG@10, {describe_change(changes['ndcg_at_10', score.repair])}")
    for note in found.notes:
        out.print(f"{note}.", style="dim")
