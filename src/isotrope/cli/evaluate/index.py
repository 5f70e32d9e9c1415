"""isotrope evaluate index: what compressed and approximate indexes keep of exact search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from isotrope.cli.evaluate.result import (
    IdColumn,
    QueryIdColumn,
    RepairNames,
    ResultFile,
    VectorColumn,
    format_points,
    run_evaluation,
)
from isotrope.cli.options import Json, derive_options
from isotrope.cli.output import console
from isotrope.cli.tables import Column, print_table

if TYPE_CHECKING:
    from rich.console import Console

    from isotrope.evaluation.result import PointDifference
    from isotrope.search.index_result import IndexEvaluation, IndexScore


@derive_options
def index(
    vectors: Annotated[str, typer.Argument(help="Vectors of documents: a file, a folder or a store.")],
    queries: Annotated[
        str | None, typer.Option(help="Vectors of queries.", show_default="vectors held out of the index")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="Judgements, as of BEIR or TREC, for nDCG@10.", show_default=False)
    ] = None,
    recall: Annotated[float, typer.Option(help="Recall that the recommended setting must reach.")] = 0.95,
    k: Annotated[int, typer.Option("--k", help="Neighbours.")] = 10,
    repair: RepairNames = "centering",
    sample: Annotated[int, typer.Option(help="Vectors in the index at most.")] = 20_000,
    column: VectorColumn = None,
    id_column: IdColumn = None,
    query_id_column: QueryIdColumn = None,
    seed: Annotated[int, typer.Option(help="Of samples, training and resamples.")] = 0,
    output: ResultFile = None,
    json: Json = False,
) -> None:
    from isotrope.search.index_fidelity import evaluate_index

    run_evaluation(
        evaluate_index,
        _show,
        repair=repair,
        output=output,
        json=json,
        vectors=vectors,
        queries=queries,
        qrels=qrels,
        recall=recall,
        k=k,
        sample=sample,
        column=column,
        id_column=id_column,
        query_id_column=query_id_column,
        seed=seed,
    )


def _show(found: IndexEvaluation) -> None:
    """A table for each repair, and in words what is recommended."""
    out = console()
    n = found.scores[0].n
    out.print(f"{found.documents:,} vectors, {n:,} queries, {found.k} neighbours by cosine", style="bold")
    out.print(
        "Recall: share of the neighbours that exact search finds on the same vectors (of raw: on the vectors without "
        "the repair). Speed: ratio to float32 on one thread, one query at a time. *: recall differs from that without "
        "the repair beyond chance.",
        style="dim",
    )
    changes = {(d.set, d.repair): d for d in found.differences if d.metric == "recall"}
    for repair in found.by_repair:
        _show_repair(out, found, repair, changes)
    for note in found.notes:
        out.print(f"{note[0].upper()}{note[1:]}.", style="dim")
    for repair, best in found.by_repair.items():
        words = f"no setting reaches a recall of {found.wanted:g}" if best is None else best.words
        out.print(f"{_name_repair(repair)}: {words}.")
    if found.recommendation is not None:
        where = _name_repair(found.recommendation.repair).lower()
        out.print(f"Cheapest for a recall of {found.wanted:g}: {found.recommendation.setting}, {where}.", style="bold")


def _show_repair(
    out: Console, found: IndexEvaluation, repair: str, changes: dict[tuple[str, str], PointDifference]
) -> None:
    """The settings after one repair."""
    rows = [score for score in found.scores if score.repair == repair]
    has_judgements = any(score.ndcg_at_10 == score.ndcg_at_10 for score in rows)
    columns = [Column(_name_repair(repair)), Column(f"recall@{found.k}", right=True)]
    columns += [Column("95 % interval", right=True, rank=2), Column("of raw", right=True, rank=3)]
    columns += [Column("nDCG@10", right=True, rank=1)] if has_judgements else []
    columns += [Column("bytes", right=True), Column("speed", right=True)]
    cells = []
    for score in rows:
        if score.reason is not None:
            cells.append([score.setting, "-", score.reason, *[""] * (len(columns) - 3)])
            continue
        change = changes.get((score.setting, repair))
        star = "*" if change is not None and change.significant else " "
        line = [score.setting, f"{score.recall:.3f}{star}", f"{score.low:.3f} to {score.high:.3f}"]
        line.append(f"{score.recall_of_raw:.3f}")
        line += [format_points(score.ndcg_at_10)] if has_judgements else []
        cells.append([*line, _format_bytes(score), f"{score.speed:.1f}"])
    print_table(out, columns, cells)
    out.print()


def _format_bytes(score: IndexScore) -> str:
    disk = f"+{score.rescoring_bytes:,.0f}" if score.rescoring_bytes else ""
    return f"{score.bytes:,.0f}{disk}"


def _name_repair(repair: str) -> str:
    return "As they are" if repair == "none" else f"After {repair}"
