"""Evaluation on a retrieval set: scores of exact search by cosine, without and with repairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.evaluation.beir import RetrievalSet, open_set
from isotrope.evaluation.judged_rows import JudgedRows, evaluate_judged_rows
from isotrope.evaluation.judged_vectors import Qrels, VectorSet, VectorSystem, open_vectors
from isotrope.evaluation.result import RetrievalEvaluation
from isotrope.evaluation.run_files import check_run_files
from isotrope.evaluation.treatments import (
    OWN,
    open_fit_text,
    parse_treatments,
    prepare_treatments,
)
from isotrope.options import find_changes
from isotrope.pipeline import Progress
from isotrope.repairs import Repair
from isotrope.sources.corpora.corpus import Corpus
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder, Rows, Tell
from isotrope.sources.vectors.row_ids import Ids
from isotrope.sources.vectors.source import ArraySource
from isotrope.storage.provenance import describe_provenance, record_start
from isotrope.storage.row_files import write_rows

#: Documents that are encoded or searched at a time.
_AT_ONCE = 4096


def evaluate_retrieval(
    *,
    data: str | Path | None = None,
    documents: Any = None,
    queries: Any = None,
    qrels: Qrels = None,
    column: str | None = None,
    id_column: Ids = None,
    query_id_column: Ids = None,
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
    run_files: str | Path | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> RetrievalEvaluation:
    """Score exact search by cosine, without and with each repair, for a model over texts or for vectors.

    Give either a folder of texts (`data`) with a model, or vectors (`documents`, `queries`) with judgements (`qrels`).
    A repair is applied to documents and queries alike. Memory does not grow with the number of documents, except for
    their ids; rows of encoded documents are in a temporary file. Without layers and pooling, a sentence-transformers
    model is evaluated as it is, in the space "encoded".

    Args:
        data: folder of a set in the format of BEIR, see `isotrope.evaluation.beir.open_set`.
        documents, queries: vectors, as arrays or files of any kind that a scan reads.
        qrels: judgements of vectors: a TSV file of BEIR, a qrels file of TREC, or a mapping from ids of queries to
            ids of documents to relevance.
        column: the array or column of vectors, where files have several.
        id_column: ids of the documents: a column beside them, a file (`FILE`, or `FILE:COLUMN` of a table) or a list;
            by default the column `_id` or `id`; without ids, row numbers from 0.
        query_id_column: the same for queries; by default a column of the same name.
        model: hub id, folder or GGUF file; None for the embedded default.
        endpoint, concurrency, keep_vectors: as for `isotrope.scan`.
        split: split of the judgements in the folder.
        repairs: names with settings, folders of saved repairs, or repairs, see `isotrope.evaluation.treatments`.
        fit_text: text to fit repairs on, as for a scan; "own" for the documents, without the judgements.
        query_prompt, document_prompt: put before each text, as models such as E5 need ("query: "). Texts that a repair
            is fitted on get the prompt of documents.
        layers: layers to average, by default the last one.
        pooling: how tokens become a row, by default the mean.
        special_tokens, revision, gguf_file, trust_remote_code, batch_size, max_length, device: as for `isotrope.scan`.
        engine, address, workers, gpus_per_worker: where the model runs, see `isotrope.engines.engine`.
        run_files: new folder for the rankings as run files of TREC, one for each repair.
        seed: seed of repairs, resamples and permutations.
        progress: called with a stage, what is done and the total.

    Returns:
        Scores in per cent, first without a repair, and the differences to that with 95 % intervals and p-values.

    References:
        Thakur et al. 2021, arXiv:2104.08663

    Examples:
        >>> import numpy as np
        >>> rows = np.eye(3)
        >>> found = evaluate_retrieval(documents=rows, queries=rows + 0.1, qrels={"0": {"0": 1}, "2": {"2": 1}})
        >>> found.scores[0].ndcg_at_10
        100.0
    """
    started, tell = record_start(), progress or (lambda *_: None)
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
    given = {"documents": documents, "queries": queries, "qrels": qrels}
    beside = {"column": column, "id-column": id_column, "query-id-column": query_id_column}
    _check_given(data, given, beside)
    if run_files is not None:
        check_run_files(run_files)
    treatments = parse_treatments(repairs, seed=seed, model=model, of_vectors=data is None)
    settings: dict[str, Any] = {"seed": seed}
    if data is None:
        _check_unused(
            {
                "split": split != "test",
                "fit-text": fit_text != OWN,
                "query-prompt": bool(query_prompt),
                "document-prompt": bool(document_prompt),
                **{name.replace("_", "-"): True for name in find_changes(where)},
            }
        )
        tell("reading the vectors", 0, None)
        reading = replace(reading, column=column)
        searched, asking = (open_vectors(reading, given) for given in (documents, queries))
        vectors = VectorSet(searched, asking, qrels, id_column, query_id_column)
        rows = vectors.read_judged()
        for treatment in treatments:
            treatment.check_width(rows.source.width)
        system = VectorSystem(vectors.name)
        found = evaluate_judged_rows(rows, treatments, system, seed=seed, run_files=run_files, tell=tell)
        provenance = describe_provenance(started, settings | vectors.describe(), 0)
        return replace(found, provenance=provenance | {"engine": {"name": "local"}})
    tell("reading the set", 0, None)
    texts_of = open_set(data, split)
    text = open_fit_text(fit_text)
    if text is not None:
        text = text[0], _with_prompt(text[1], document_prompt)
    with where.encoder(reading) as encoder, TemporaryDirectory(prefix="isotrope-") as folder:
        asked = [query_prompt + query for query in texts_of.queries.values()]
        treatments = prepare_treatments(treatments, encoder, text, asked[0], tell)
        rows = _encode_set(texts_of, encoder, asked, document_prompt, Path(folder) / "documents.npy", tell)
        found = evaluate_judged_rows(rows, treatments, encoder, seed=seed, run_files=run_files, tell=tell)
        settings |= {"data": str(data), "split": split}
        settings |= {"query_prompt": query_prompt, "document_prompt": document_prompt}
        return replace(found, provenance=describe_provenance(started, settings, 0) | {"engine": encoder.engine})


def _check_given(data: Any, vectors: Mapping[str, Any], beside: Mapping[str, Any]) -> None:
    """Check that there is either a folder of texts or everything that vectors need."""
    given = [name for name, value in vectors.items() if value is not None]
    missing = [name for name, value in vectors.items() if value is None]
    if data is not None:
        unused = [*given, *(name for name, value in beside.items() if value is not None)]
        if unused:
            raise InputError(f"got --data and also --{unused[0]}, which is for vectors; give one or the other.")
    elif not given:
        raise InputError("got no set; name a folder with --data, or vectors with --documents, --queries and --qrels.")
    elif missing:
        raise InputError(f"got --{given[0]} without --{missing[0]}; vectors need --documents, --queries and --qrels.")


def _check_unused(changed: Mapping[str, bool]) -> None:
    """Refuse options that only texts have, by whether each was changed."""
    for name, was_changed in changed.items():
        if was_changed:
            raise InputError(f"vectors have no use for --{name}; leave it out.")


def _encode_set(
    found: RetrievalSet, encoder: Encoder, asked: Sequence[str], prompt: str, path: Path, tell: Progress
) -> JudgedRows:
    """Encode queries and documents; the rows of documents go into a file."""
    queries = encoder(asked, partial(tell, "encoding queries"))
    write_rows(path, _encode_documents(found, encoder, prompt, partial(tell, "encoding documents")))
    source = ArraySource(path, batch_rows=_AT_ONCE)
    return JudgedRows(found.name, found.documents, found.judgements, found.notes, source, queries)


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
