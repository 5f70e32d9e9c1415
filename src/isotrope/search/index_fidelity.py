"""Index fidelity: what compressed and approximate indexes keep of exact search, without and with repairs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from isotrope.compute.threads import limit_threads
from isotrope.errors import InputError
from isotrope.evaluation.judged_vectors import Qrels, VectorSet, open_vectors
from isotrope.evaluation.metrics import Mean, Vector
from isotrope.evaluation.result import PointDifference, list_differences
from isotrope.evaluation.significance import PairedComparison, compare
from isotrope.evaluation.treatments import RAW, parse_treatments
from isotrope.pipeline import Progress
from isotrope.repairs import Repair
from isotrope.search.faiss_index import import_faiss, use_one_thread
from isotrope.search.index_data import read_index_data
from isotrope.search.index_recall import compute_ndcg, compute_recall
from isotrope.search.index_result import IndexEvaluation, IndexScore, recommend
from isotrope.search.index_trials import IndexTrial, TreatmentTrial, try_treatment
from isotrope.sources.input import Input
from isotrope.sources.vectors.row_ids import Ids
from isotrope.storage.provenance import describe_provenance, record_start


def evaluate_index(
    vectors: Any,
    *,
    queries: Any = None,
    qrels: Qrels = None,
    recall: float = 0.95,
    k: int = 10,
    repairs: Sequence[str | Path | Repair] = ("centering",),
    sample: int = 20_000,
    column: str | None = None,
    id_column: Ids = None,
    query_id_column: Ids = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> IndexEvaluation:
    """Measure what indexes keep of exact search by cosine, and recommend the cheapest that keeps enough.

    Indexes are built by faiss from unit rows, and searched on one thread: float16, int8, sign codes without and with
    rescoring, product quantization, fewer dimensions, HNSW and IVF, see `isotrope.search.index_settings`. Each is built
    from the vectors as they are and after each repair.

    Args:
        vectors: the documents, as an array or a file of any kind that a scan reads.
        queries: vectors of queries; by default, rows that are held out of the index.
        qrels: judgements, as for `isotrope.evaluate_retrieval`; they add nDCG@10.
        recall: the recall that a recommended setting must reach with the lower end of its interval.
        k: how many neighbours.
        repairs: names with settings, folders of saved repairs, or repairs; fitted on the vectors.
        sample: vectors in the index at most.
        column: the array or column of vectors, where files have several.
        id_column, query_id_column: ids that judgements name, as for `isotrope.evaluate_retrieval`.
        seed: seed of samples, repairs, training and resamples.
        progress: called with a stage, what is done and the total.

    Returns:
        Recall with its 95 % interval, bytes and speed of each setting, and a recommendation.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(600, 16))
        >>> found = evaluate_index(rows, repairs=[])
        >>> found.scores[0].setting, found.scores[0].recall
        ('float32', 1.0)
    """
    started, tell = record_start(), progress or (lambda *_: None)
    faiss = import_faiss()
    _check_numbers(recall, k, sample)
    treatments = parse_treatments(repairs, seed=seed, of_vectors=True)
    reading = Input(column=column)
    asked = None if queries is None else open_vectors(reading, queries)
    given = VectorSet(open_vectors(reading, vectors), asked, qrels, id_column, query_id_column)
    for treatment in treatments:
        treatment.check_width(given.documents.width)
    tell("reading vectors", 0, None)
    data = read_index_data(given, k, sample, seed)
    with use_one_thread(), limit_threads():
        trials = [try_treatment(treatment, data, k, seed, tell) for treatment in treatments]
        scores, differences = _score_trials(trials, trials[0], k, seed)
    settings = {"seed": seed, "k": k, "sample": sample, "recall": recall, "faiss": faiss.__version__, "threads": 1}
    return IndexEvaluation(
        wanted=recall,
        k=k,
        documents=len(data.rows),
        scores=scores,
        differences=differences,
        recommendation=recommend(scores, recall),
        by_repair={t.repair: recommend((s for s in scores if s.repair == t.repair), recall) for t in trials},
        notes=data.notes,
        provenance=describe_provenance(started, settings | given.describe(), 0),
    )


def _check_numbers(recall: float, k: int, sample: int) -> None:
    if not 0 < recall <= 1:
        raise InputError(f"got the wanted recall {recall:g}, expected a share above 0 and at most 1, such as 0.95.")
    if k < 1:
        raise InputError(f"got k {k}, expected at least 1 neighbour.")
    if sample <= k:
        raise InputError(f"got a sample of {sample:,} vectors, expected more than the {k} neighbours.")


def _score_trials(
    trials: Sequence[TreatmentTrial], raw: TreatmentTrial, k: int, seed: int
) -> tuple[list[IndexScore], list[PointDifference]]:
    """Score every setting, with intervals over queries, and compare repairs where they have the same setting."""
    has_judgements = raw.data.judged is not None
    values: dict[str, dict[str, dict[str, Vector]]] = {}
    for treated in trials:
        for trial in treated.trials:
            if trial.reason is None:
                scored = {
                    "recall": compute_recall(treated.rows, treated.queries, treated.exact[:, :k], trial.found[:, :k])
                }
                if has_judgements:
                    scored["ndcg_at_10"] = compute_ndcg(trial.found, raw.data)
                for metric, one in scored.items():
                    values.setdefault(trial.setting, {}).setdefault(metric, {})[treated.repair] = one
    compared = {
        setting: {metric: _compare(by_repair, seed) for metric, by_repair in by_metric.items()}
        for setting, by_metric in values.items()
    }
    of_raw = {setting: by for setting, by in compared.items() if all(RAW in one.scores for one in by.values())}
    scores = [_make_score(treated, trial, raw, compared, k) for treated in trials for trial in treated.trials]
    return scores, list_differences({RAW: of_raw})


def _compare(by_repair: Mapping[str, Vector], seed: int) -> PairedComparison:
    return compare({repair: Mean(one) for repair, one in by_repair.items()}, seed=seed, items="queries")


def _make_score(
    treated: TreatmentTrial,
    trial: IndexTrial,
    raw: TreatmentTrial,
    compared: Mapping[str, Mapping[str, PairedComparison]],
    k: int,
) -> IndexScore:
    n = len(treated.queries)
    if trial.reason is not None:
        nothing = (math.nan,) * 9
        return IndexScore(treated.repair, trial.family, trial.setting, *nothing, n, trial.reason)
    by_metric = {metric: found.scores[treated.repair] for metric, found in compared[trial.setting].items()}
    recall, ndcg = by_metric["recall"], by_metric.get("ndcg_at_10")
    return IndexScore(
        treated.repair,
        trial.family,
        trial.setting,
        recall=recall.value,
        low=recall.low,
        high=recall.high,
        recall_of_raw=float(np.mean(compute_recall(raw.rows, raw.queries, raw.exact[:, :k], trial.found[:, :k]))),
        ndcg_at_10=math.nan if ndcg is None else 100 * ndcg.value,
        bytes=trial.bytes,
        rescoring_bytes=trial.rescoring_bytes,
        queries_per_second=1 / trial.seconds,
        speed=treated.trials[0].seconds / trial.seconds,
        n=n,
    )
