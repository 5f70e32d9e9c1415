"""Judged rows: rows of documents and of queries with judgements, searched and scored without and with repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from isotrope.evaluation.metrics import Mean, Vector
from isotrope.evaluation.ranking import DEPTH, NOTHING, Ranking, score_rankings, search
from isotrope.evaluation.result import RetrievalEvaluation, RetrievalScore, list_differences
from isotrope.evaluation.run_files import check_run_files, write_run_files
from isotrope.evaluation.significance import PairedComparison, compare
from isotrope.evaluation.treatments import OWN, RAW, EvaluatedSystem, Treatment
from isotrope.pipeline import Progress
from isotrope.sources.source import Source
from isotrope.sources.text.encoder import Rows


@dataclass(frozen=True, eq=False)
class JudgedRows:
    """Rows of documents and of queries, and which documents are relevant for which query.

    Attributes:
        name: Of the set.
        documents: Ids, in the order of the rows.
        judgements: For each query, in the order of its rows, the relevance of documents by id.
        notes: What to know about the set.
        source: The rows of the documents.
        queries: The rows of the queries, (n, d).
        same_ids: Whether a query must not find the document of its own id, as in BEIR.
    """

    name: str
    documents: Sequence[str]
    judgements: Mapping[str, Mapping[str, int]]
    notes: Sequence[str]
    source: Source
    queries: Rows
    same_ids: bool = True

    def blocks(self) -> Iterator[Rows]:
        """Read the rows of the documents, a few at a time."""
        return (batch.layers[0] for batch in self.source.batches())

    def search(self, treatment: Treatment) -> Ranking:
        """Find the nearest documents of each query after a treatment of all rows."""
        with np.errstate(over="ignore", invalid="ignore"):  # rows that are not finite; the notes count them
            return search(
                treatment(self.queries), map(treatment, self.blocks()), self.documents, DEPTH, self.find_own()
            )

    def find_own(self) -> NDArray[np.int64]:
        """For each query the number of the document that it must not find, or NOTHING, (n,)."""
        number = {name: i for i, name in enumerate(self.documents)} if self.same_ids else {}
        return np.array([number.get(query, NOTHING) for query in self.judgements], dtype=np.int64)

    def number_judgements(self) -> list[dict[int, int]]:
        """The relevance of documents for each query, by the documents' numbers."""
        number = {name: i for i, name in enumerate(self.documents)}
        # A document without a row has no number, but counts as one that was not found.
        return [
            {number.get(name, NOTHING - 1 - i): relevance for i, (name, relevance) in enumerate(judgement.items())}
            for judgement in self.judgements.values()
        ]


def evaluate_judged_rows(
    rows: JudgedRows,
    treatments: Sequence[Treatment],
    system: EvaluatedSystem,
    *,
    seed: int,
    run_files: str | Path | None,
    tell: Progress,
) -> RetrievalEvaluation:
    """Search with each treatment, score the rankings, compare them and write them; provenance is left to the caller.

    Args:
        rows: The documents and queries.
        treatments: No repair first, then repairs, which are fitted on the documents unless they are fitted already.
        system: Where the rows come from.
        seed: Seed of resamples and permutations.
        run_files: New folder for run files of TREC, None for none.
        tell: Called with a stage, what is done and the total.
    """
    if run_files is not None:
        check_run_files(run_files, [*rows.judgements, *rows.documents])
    notes = [*rows.notes, *_not_finite("documents", rows.blocks()), *_not_finite("queries", [rows.queries])]
    judged = rows.number_judgements()
    by_query: dict[str, dict[str, Vector]] = {}
    rankings, fitted = {}, []
    for treatment in treatments:
        tell(f"searching with {treatment.name}", 0, None)
        fitted.append(treatment.fit(rows.source, OWN, f"the documents of {rows.name}"))
        rankings[treatment.name] = rows.search(fitted[-1])
        by_query[treatment.name] = score_rankings(rankings[treatment.name].documents, judged)
    comparisons = {
        metric: compare({name: Mean(by[metric]) for name, by in by_query.items()}, seed=seed, items=rows.name)
        for metric in by_query[RAW]
    }
    if run_files is not None:
        write_run_files(run_files, rankings, list(rows.judgements), rows.documents)
    return RetrievalEvaluation(
        [_make_score(rows.name, comparisons, treatment, system) for treatment in fitted],
        list_differences({RAW: {rows.name: comparisons}}),
        len(rows.documents),
        notes,
        list(rows.judgements),
        by_query,
    )


def _not_finite(what: str, blocks: Iterable[Rows]) -> list[str]:
    """A note about rows with NaN or infinity, where there are any."""
    count = sum(int(np.count_nonzero(~np.isfinite(rows).all(axis=1))) for rows in blocks)
    return [f"the rows of {count:,} {what} hold NaN or infinity and take no part in any search"] if count else []


def _make_score(
    name: str, comparisons: Mapping[str, PairedComparison], treatment: Treatment, system: EvaluatedSystem
) -> RetrievalScore:
    scores = {metric: found.scores[treatment.name] for metric, found in comparisons.items()}
    main = scores["ndcg_at_10"]
    facts: dict[str, Any] = treatment.describe(system)
    return RetrievalScore(
        set=name,
        low=100 * main.low,
        high=100 * main.high,
        n=main.n,
        **facts | {metric: 100 * score.value for metric, score in scores.items()},
    )
