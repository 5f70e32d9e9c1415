"""Sentence similarity: how well cosines agree with what people said, without and with repairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.evaluation.differences import point_differences
from isotrope.evaluation.metrics import CORRELATIONS, Correlation, Vector
from isotrope.evaluation.pairs import PairSet, read_sets
from isotrope.evaluation.significance import Compared, average, compare
from isotrope.evaluation.sts_result import StsEvaluation, StsScore
from isotrope.evaluation.treatments import OWN, RAW, Treatment, treatments
from isotrope.pipeline import Progress
from isotrope.repairs import Repair
from isotrope.sources import EMBEDDED
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder, Rows
from isotrope.sources.text.pooling import parse
from isotrope.sources.text.sentence_model import has_pipeline
from isotrope.storage.provenance import begin, provenance

#: The layers of each protocol, averaged, unless others are named.
LAYERS = {"paper": "1,-1", "concatenated": "-1"}

#: The name of the plain mean over all sets.
MEAN = "mean"

#: Of a cosine. Sentences that are the same have cosine 1, whatever rounding makes of it: they must not be ranked.
_DECIMALS = 12

#: What systems score on a set, by the correlation's name.
Both = dict[str, Compared]


def evaluate_sts(
    *,
    model: str | Path | None = None,
    data: str | Path | None = None,
    sets: Sequence[str] | None = None,
    repairs: Sequence[str | Path | Repair] = (),
    against: str | Sequence[str] = RAW,
    fit_text: str | Path | Sequence[str] = OWN,
    layers: str | int | Sequence[int | str] | None = None,
    pooling: str | None = None,
    protocol: str = "concatenated",
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
) -> StsEvaluation:
    """Correlations of cosines with gold scores on sets of sentence pairs, without and with each repair.

    model: hub id, folder or GGUF file; None for the embedded default. data: folder of the sets, see
    `isotrope.evaluation.pairs`; None for that of ISOTROPE_DATA, without that the hub. sets: names, by default all that
    are there. repairs: see `isotrope.evaluation.treatments`. against: the one of them, or several, that differences are
    to; "none" for no repair. fit_text: "own", or any text that a scan reads. layers: averaged; by default the last, or
    for the protocol "paper" 1 and last. Without layers and pooling (by default the mean) a sentence-transformers model
    is taken as it is, the space "encoded". protocol: "concatenated" (one correlation over all pairs of a set; Gao et
    al. 2021) or "paper" (the plain mean over a year's subsets; Yan et al. 2022). engine, address, workers,
    gpus_per_worker: where the model runs, see `isotrope.engines.engine`.
    """
    given, started, told = locals(), begin(), progress or (lambda *_: None)
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed is {seed}, expected 0 to {2**31 - 1:,}.")
    found = read_sets(sets, data, protocol)
    tried = treatments(repairs, seed=seed, model=EMBEDDED if model is None else str(model))
    references = [against] if isinstance(against, str) else list(against)
    for reference in references:
        if reference not in {treatment.name for treatment in tried}:
            raise InputError(f"there is no {reference!r} to compare with; name one of the repairs, or none.")
    corpus = None if isinstance(fit_text, str) and fit_text == OWN else open_corpus(fit_text)
    own = pooling is None and protocol == "concatenated" and has_pipeline(model, revision)
    default = "all" if own or (pooling and parse(pooling).layers) else LAYERS[protocol]
    reading = Input.among(given | {"layers": default if layers is None else layers})
    with Engine.among(given).encoder(reading) as encoder:
        told("loading the model", 0, None)
        width = encoder(found[0].sentences[:1]).shape[1]
        for treatment in tried:
            treatment.refuse_width(width)
        if corpus is not None and not all(treatment.ready for treatment in tried):
            name = str(fit_text) if isinstance(fit_text, (str, Path)) else corpus.name
            rows = encoder.of(corpus, partial(told, f"encoding {name}"))
            tried = [treatment.fit(rows, name, name) for treatment in tried]
        found_by: dict[str, dict[str, Both]] = {reference: {} for reference in references}
        for pairs in found:
            rows = encoder(pairs.sentences, partial(told, f"encoding {pairs.name}"))
            told(f"comparing on {pairs.name}", 0, None)
            fitted = [treatment.fit(rows, OWN, f"the sentences of {pairs.name}") for treatment in tried]
            every = {treatment.name: cosines(treatment(rows)) for treatment in fitted}
            for reference, by_set in found_by.items():
                by_part = _compared(
                    pairs, {reference: every[reference]} | every, seed
                )  # the first is what others differ from
                by_set |= by_part | {pairs.name: _average(list(by_part.values()))}
        if len(found) > 1:
            for by_set in found_by.values():
                by_set[MEAN] = _average([by_set[pairs.name] for pairs in found])
        names = [pairs.name for pairs in found]
        settings = {"seed": seed, "protocol": protocol, "sets": names, "data": str(data or "")}
        return StsEvaluation(
            protocol,
            [
                _score(name, both, treatment, encoder)
                for name, both in found_by[references[0]].items()
                for treatment in fitted
            ],
            point_differences(found_by),
            {pairs.name: pairs.left_out for pairs in found if pairs.left_out},
            provenance(started, settings, 0) | {"engine": encoder.engine},
        )


def cosines(rows: Rows) -> Vector:
    """The cosine of each row of the first half with that of the second, (2n, d) -> (n,); NaN for a row of zeros.

    >>> cosines(np.array([[1.0, 0.0], [3.0, 4.0]])).round(3).tolist()
    [0.6]
    """
    first, second = np.split(np.asarray(rows, dtype=np.float64), 2)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    found = np.divide(products, lengths, out=np.full(len(first), np.nan), where=lengths > 0)
    return np.asarray(np.round(found, _DECIMALS))


def _compared(pairs: PairSet, cosines: Mapping[str, Vector], seed: int) -> dict[str, Both]:
    """The correlations of each part of a set."""
    found, start = {}, 0
    for part in pairs.parts:
        here = slice(start, start + len(part))
        start = here.stop
        found[part.name] = {
            kind: compare(
                {name: Correlation(values[here], part.gold, kind) for name, values in cosines.items()},
                seed=seed,
                items=part.name,
            )
            for kind in CORRELATIONS
        }
    return found


def _average(sets: Sequence[Both]) -> Both:
    return {kind: average([both[kind] for both in sets]) if len(sets) > 1 else sets[0][kind] for kind in CORRELATIONS}


def _score(name: str, both: Both, treatment: Treatment, encoder: Encoder) -> StsScore:
    spearman, pearson = (both[kind].scores[treatment.name] for kind in CORRELATIONS)
    return StsScore(
        set=name,
        model=encoder.name,
        repair=treatment.name,
        layers=encoder.layers,
        pooling=encoder.pooling,
        fitted_on=treatment.fitted_on,
        spearman=100 * spearman.value,
        low=100 * spearman.low,
        high=100 * spearman.high,
        pearson=100 * pearson.value,
        pearson_low=100 * pearson.low,
        pearson_high=100 * pearson.high,
        n=spearman.n,
        reason=spearman.reason,
    )
