"""Retrieval: how well the nearest rows to a query are its answers, without and with repairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.evaluation.beir import RetrievalSet, open_set
from isotrope.evaluation.differences import point_differences
from isotrope.evaluation.metrics import Mean, Vector
from isotrope.evaluation.ranking import DEPTH, ranking_scores
from isotrope.evaluation.retrieval_result import RetrievalEvaluation, RetrievalScore
from isotrope.evaluation.search import NOTHING, search
from isotrope.evaluation.significance import Compared, compare
from isotrope.evaluation.treatments import OWN, RAW, Treatment, treatments
from isotrope.pipeline import Progress
from isotrope.repairs import Repair
from isotrope.sources import EMBEDDED
from isotrope.sources.corpora.corpus import Corpus, open_corpus
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder, Rows, Tell
from isotrope.sources.vectors.source import ArraySource
from isotrope.storage.provenance import begin, provenance
from isotrope.storage.row_files import write_rows

#: Documents that are encoded, and rows that are searched, at a time.
_AT_ONCE = 4096


def evaluate_retrieval(
    *,
    data: str | Path,
    model: str | Path | None = None,
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
    """Scores of exact search by cosine on a retrieval set in the format of BEIR, without and with each repair.

    data: the set's folder, see `isotrope.evaluation.beir.open_set`. repairs: see `isotrope.evaluation.treatments`.
    fit_text: "own" (the documents, without the judgements), or any text that a scan reads; a repair is applied to
    documents and queries alike. query_prompt, document_prompt: put before each, as models such as E5 ask for
    ("query: "); texts that a repair is fitted on are read as documents. layers: averaged, by default the last, and
    pooling the mean; without both a sentence-transformers model is taken as it is, the space "encoded". The first score
    is that without a repair, and the differences are to it. Memory does not grow with the documents but
    for their ids; their rows are in a temporary file meanwhile. engine, address, workers, gpus_per_worker: where
    the model runs, see `isotrope.engines.engine`.
    """
    given, started, told = locals(), begin(), progress or (lambda *_: None)
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed is {seed}, expected 0 to {2**31 - 1:,}.")
    told("reading the set", 0, None)
    found = open_set(data, split)
    tried = treatments(repairs, seed=seed, model=EMBEDDED if model is None else str(model))
    corpus = None if isinstance(fit_text, str) and fit_text == OWN else open_corpus(fit_text)
    with Engine.among(given).encoder(Input.among(given)) as encoder:
        told("loading the model", 0, None)
        width = encoder(["width"]).shape[1]
        for treatment in tried:
            treatment.refuse_width(width)
        if corpus is not None and not all(treatment.ready for treatment in tried):
            name = str(fit_text) if isinstance(fit_text, (str, Path)) else corpus.name
            rows = encoder.of(_with_prompt(corpus, document_prompt), partial(told, f"encoding {name}"))
            tried = [treatment.fit(rows, name, name) for treatment in tried]
        queries = encoder([query_prompt + text for text in found.queries.values()], partial(told, "encoding queries"))
        with TemporaryDirectory(prefix="isotrope-") as folder:
            path = Path(folder) / "documents.npy"
            write_rows(path, _encoded(found, encoder, document_prompt, partial(told, "encoding documents")))
            notes = [*found.notes, *_not_finite("documents", _blocks(path)), *_not_finite("queries", [queries])]
            by_query, fitted = {}, []
            for treatment in tried:
                told(f"searching with {treatment.name}", 0, None)
                fitted.append(treatment.fit(ArraySource(path), OWN, f"the documents of {found.name}"))
                by_query[treatment.name] = _scores(found, fitted[-1], queries, path)
        compared = {
            metric: compare({name: Mean(by[metric]) for name, by in by_query.items()}, seed=seed, items=found.name)
            for metric in by_query[tried[0].name]
        }
        prompts = {"query_prompt": query_prompt, "document_prompt": document_prompt}
        return RetrievalEvaluation(
            [_score(found.name, compared, treatment, encoder) for treatment in fitted],
            point_differences({RAW: {found.name: compared}}),
            len(found.documents),
            notes,
            list(found.queries),
            by_query,
            provenance(started, {"seed": seed, "data": str(data), "split": split} | prompts, 0)
            | {"engine": encoder.engine},
        )


def _with_prompt(corpus: Corpus, prompt: str) -> Corpus:
    def read() -> Iterator[tuple[str | None, str | None]]:
        return ((text and prompt + text, group) for text, group in corpus.read())

    return replace(corpus, read=read)


def _encoded(found: RetrievalSet, encoder: Encoder, prompt: str, tell: Tell) -> Iterator[Rows]:
    """The rows of the documents, some at a time."""
    texts, done, total = found.texts(), 0, len(found.documents)
    while some := [prompt + text for text in islice(texts, _AT_ONCE)]:
        yield encoder(some, partial(_told_of_all, tell, done, total))
        done += len(some)
        tell(done, total)


def _told_of_all(tell: Tell, before: int, total: int, done: int, _: int) -> None:
    tell(before + done, total)


def _blocks(path: Path) -> Iterator[Rows]:
    """The rows of a file, some at a time."""
    rows = np.load(path, mmap_mode="r", allow_pickle=False)
    return (np.asarray(rows[i : i + _AT_ONCE]) for i in range(0, len(rows), _AT_ONCE))


def _not_finite(what: str, blocks: Iterable[Rows]) -> list[str]:
    """How many rows of documents or queries are no numbers, where there are any."""
    count = sum(int(np.count_nonzero(~np.isfinite(rows).all(axis=1))) for rows in blocks)
    return [f"the rows of {count:,} {what} hold NaN or infinity and take no part in any search"] if count else []


def _scores(found: RetrievalSet, treatment: Treatment, queries: Rows, path: Path) -> dict[str, Vector]:
    """The scores of each query by name, (n,)."""
    number = {name: i for i, name in enumerate(found.documents)}
    own = np.array([number.get(query, NOTHING) for query in found.queries])
    with np.errstate(over="ignore", invalid="ignore"):  # rows that are no numbers, of which the notes tell
        nearest = search(treatment(queries), map(treatment, _blocks(path)), found.documents, DEPTH, own)
    # An empty document has no number, but counts as one to be found.
    judged = [
        {number.get(name, NOTHING - 1 - i): relevance for i, (name, relevance) in enumerate(judgement.items())}
        for judgement in found.judgements.values()
    ]
    return ranking_scores(nearest, judged)


def _score(name: str, compared: dict[str, Compared], treatment: Treatment, encoder: Encoder) -> RetrievalScore:
    scores = {metric: found.scores[treatment.name] for metric, found in compared.items()}
    main = scores["ndcg_at_10"]
    return RetrievalScore(
        set=name,
        model=encoder.name,
        repair=treatment.name,
        layers=encoder.layers,
        pooling=encoder.pooling,
        fitted_on=treatment.fitted_on,
        low=100 * main.low,
        high=100 * main.high,
        n=main.n,
        **{metric: 100 * score.value for metric, score in scores.items()},
    )
