"""Evaluation on a retrieval set: scores of exact search by cosine, without and with repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from isotrope.engines.engine import Engine
from isotrope.evaluation.beir import RetrievalSet, open_set
from isotrope.evaluation.metrics import Mean, Vector
from isotrope.evaluation.ranking import DEPTH, NOTHING, score_rankings, search
from isotrope.evaluation.result import RetrievalEvaluation, RetrievalScore, list_differences
from isotrope.evaluation.significance import PairedComparison, compare
from isotrope.evaluation.treatments import (
    OWN,
    RAW,
    Treatment,
    open_fit_text,
    parse_treatments,
    prepare_treatments,
)
from isotrope.pipeline import Progress
from isotrope.repairs import Repair
from isotrope.sources.corpora.corpus import Corpus
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder, Rows, Tell
from isotrope.sources.vectors.source import ArraySource
from isotrope.storage.provenance import describe_provenance, record_start
from isotrope.storage.row_files import write_rows

#: Documents that are encoded or searched at a time.
_AT_ONCE = 4096


def evaluate_retrieval(
    *,
    data: str | Path,
    model: str | Path | None = None,
    endpoint: str | None = None,
    concurrency: int = 4,
    keep_vectors: str | Path | None = None,
    split: str = "test",
    repairs: Sequence[str | Path | Repair] = (),
    fit_text: str | Path | Sequence[str] = OWN,
    query_prompt: str = "",
    document_prompt: str = "",
    layers: str | int | Sequence[int | str] = "all",
    pooling: str | None = None,
    special_tokens: str = "keep",
    revision: str | None = None,
    gguf_file: str | None = None,
    trust_remote_code: bool = False,
    batch_size: int | None = None,
    max_length: int | None = None,
    device: str = "auto",
    engine: str = "local",
    address: str | None = None,
    workers: int | None = None,
    gpus_per_worker: float = 0.0,
    seed: int = 0,
    progress: Progress | None = None,
) -> RetrievalEvaluation:
    """Score exact search by cosine on a retrieval set in the format of BEIR, without and with each repair.

    A repair is applied to documents and queries alike. Memory does not grow with the number of documents, except for
    their ids; their rows are in a temporary file. Without layers and pooling, a sentence-transformers model is
    evaluated as it is, in the space "encoded".

    Args:
        data: folder of the set, see `isotrope.evaluation.beir.open_set`.
        model: hub id, folder or GGUF file; None for the embedded default.
        endpoint, concurrency, keep_vectors: as for `isotrope.scan`.
        split: split of the judgements.
        repairs: names with settings, folders of saved repairs, or repairs, see `isotrope.evaluation.treatments`.
        fit_text: text to fit repairs on, as for a scan; "own" for the documents, without the judgements.
        query_prompt, document_prompt: put before each text, as models such as E5 need ("query: "). Texts that a repair
            is fitted on get the prompt of documents.
        layers: layers to average, by default the last one.
        pooling: how tokens become a row, by default the mean.
        special_tokens, revision, gguf_file, trust_remote_code, batch_size, max_length, device: as for `isotrope.scan`.
        engine, address, workers, gpus_per_worker: where the model runs, see `isotrope.engines.engine`.
        seed: seed of repairs, resamples and permutations.
        progress: called with a stage, what is done and the total.

    Returns:
        Scores in per cent, first without a repair, and the differences to that with 95 % intervals and p-values.

    References:
        Thakur et al. 2021, arXiv:2104.08663
    """
    started, tell = record_start(), progress or (lambda *_: None)
    treatments = parse_treatments(repairs, seed=seed, model=model)
    tell("reading the set", 0, None)
    found = open_set(data, split)
    text = open_fit_text(fit_text)
    if text is not None:
        text = text[0], _with_prompt(text[1], document_prompt)
    where = Engine(engine=engine, address=address, workers=workers, gpus_per_worker=gpus_per_worker)
    reading = Input(
        model=model,
        endpoint=endpoint,
        concurrency=concurrency,
        keep_vectors=keep_vectors,
        revision=revision,
        gguf_file=gguf_file,
        trust_remote_code=trust_remote_code,
        layers=layers,
        pooling=pooling,
        special_tokens=special_tokens,
        max_length=max_length,
        batch_size=batch_size,
        device=device,
    )
    with where.encoder(reading) as encoder:
        asked = [query_prompt + query for query in found.queries.values()]
        treatments = prepare_treatments(treatments, encoder, text, asked[0], tell)
        queries = encoder(asked, partial(tell, "encoding queries"))
        with TemporaryDirectory(prefix="isotrope-") as folder:
            path = Path(folder) / "documents.npy"
            write_rows(path, _encode_documents(found, encoder, document_prompt, partial(tell, "encoding documents")))
            notes = [*found.notes, *_not_finite("documents", _read_blocks(path)), *_not_finite("queries", [queries])]
            by_query, fitted = {}, []
            for treatment in treatments:
                tell(f"searching with {treatment.name}", 0, None)
                fitted.append(treatment.fit(ArraySource(path), OWN, f"the documents of {found.name}"))
                by_query[treatment.name] = _score_queries(found, fitted[-1], queries, path)
        comparisons = {
            metric: compare({name: Mean(by[metric]) for name, by in by_query.items()}, seed=seed, items=found.name)
            for metric in by_query[RAW]
        }
        prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
        return RetrievalEvaluation(
            [_make_score(found.name, comparisons, treatment, encoder) for treatment in fitted],
            list_differences({RAW: {found.name: comparisons}}),
            len(found.documents),
            notes,
            list(found.queries),
            by_query,
            describe_provenance(started, {"seed": seed, "data": str(data), "split": split} | prompts, 0)
            | {"engine": encoder.engine},
        )


def _with_prompt(corpus: Corpus, prompt: str) -> Corpus:
    def read() -> Iterator[tuple[str | None, str | None]]:
        return ((text and prompt + text, group) for text, group in corpus.read())

    return replace(corpus, read=read)


def _encode_documents(found: RetrievalSet, encoder: Encoder, prompt: str, tell: Tell) -> Iterator[Rows]:
    """Encode the documents, a few at a time."""
    texts, total = found.texts(), len(found.documents)
    before = 0

    def count_from_first(done: int, _: int) -> None:
        tell(before + done, total)

    while batch := [prompt + text for text in islice(texts, _AT_ONCE)]:
        yield encoder(batch, count_from_first)
        before += len(batch)
        tell(before, total)


def _read_blocks(path: Path) -> Iterator[Rows]:
    """Read the rows of a file, a few at a time."""
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    return (np.asarray(rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE))


def _not_finite(what: str, blocks: Iterable[Rows]) -> list[str]:
    """A note about rows with NaN or infinity, where there are any."""
    count = sum(int(np.count_nonzero(~np.isfinite(rows).all(axis=1))) for rows in blocks)
    return [f"the rows of {count:,} {what} hold NaN or infinity and take no part in any search"] if count else []


def _score_queries(found: RetrievalSet, treatment: Treatment, queries: Rows, path: Path) -> dict[str, Vector]:
    """Search with each query and score its ranking, (n,) by metric."""
    number = {name: i for i, name in enumerate(found.documents)}
    own = np.array([number.get(query, NOTHING) for query in found.queries])
    with np.errstate(over="ignore", invalid="ignore"):  # rows that are not finite; the notes count them
        nearest = search(treatment(queries), map(treatment, _read_blocks(path)), found.documents, DEPTH, own)
    # An empty document has no number, but counts as one that was not found.
    judged = [
        {number.get(name, NOTHING - 1 - i): relevance for i, (name, relevance) in enumerate(judgement.items())}
        for judgement in found.judgements.values()
    ]
    return score_rankings(nearest, judged)


def _make_score(
    name: str, comparisons: dict[str, PairedComparison], treatment: Treatment, encoder: Encoder
) -> RetrievalScore:
    scores = {metric: found.scores[treatment.name] for metric, found in comparisons.items()}
    main = scores["ndcg_at_10"]
    return RetrievalScore(
        set=name,
        low=100 * main.low,
        high=100 * main.high,
        n=main.n,
        **treatment.describe(encoder) | {metric: 100 * score.value for metric, score in scores.items()},
    )
