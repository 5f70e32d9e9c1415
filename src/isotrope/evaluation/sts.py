"""Evaluation on sentence pairs: correlation of cosines with gold scores, without and with repairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from isotrope.engines.engine import Engine
from isotrope.errors import InputError
from isotrope.evaluation.metrics import CORRELATIONS, Correlation, Vector
from isotrope.evaluation.pairs import PairSet, read_sets
from isotrope.evaluation.result import StsEvaluation, StsScore, list_differences
from isotrope.evaluation.significance import PairedComparison, average, compare
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
from isotrope.sources.input import Input
from isotrope.sources.text.encoder import Encoder, Rows
from isotrope.sources.text.pooling import parse
from isotrope.sources.text.sentence_model import has_pipeline
from isotrope.storage.provenance import describe_provenance, record_start

#: The default layers of each protocol, which are averaged.
LAYERS = {"paper": "1,-1", "concatenated": "-1"}

#: The name of the plain mean over all sets.
MEAN = "mean"

#: Decimals of a cosine: the same sentence twice must have cosine 1, so that rounding errors are not ranked.
_DECIMALS = 12

#: Comparisons of systems on one set, by the name of the correlation.
Comparisons = dict[str, PairedComparison]


def evaluate_sts(
    *,
    model: str | Path | None = None,
    endpoint: str | None = None,
    concurrency: int = 4,
    keep_vectors: str | Path | None = None,
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
    """Correlate cosines with gold scores on sets of sentence pairs, without and with each repair.

    Without layers and pooling, a sentence-transformers model is evaluated as it is, in the space "encoded".

    Args:
        model: hub id, folder or GGUF file; None for the embedded default.
        endpoint, concurrency, keep_vectors: as for `isotrope.scan`.
        data: folder of the sets, see `isotrope.evaluation.pairs`; None for the folder ISOTROPE_DATA, or else the hub.
        sets: names of sets, by default all that are there.
        repairs: names with settings, folders of saved repairs, or repairs, see `isotrope.evaluation.treatments`.
        against: one or several of the repairs that differences are taken to; "none" for no repair.
        fit_text: text to fit repairs on, as for a scan; "own" for the sentences of each set.
        layers: layers to average; by default the last one, and 1 and the last for the protocol "paper".
        pooling: how tokens become a row, by default the mean.
        protocol: "concatenated" (one correlation over all pairs of a set) or "paper" (the plain mean over the subsets
            of a year).
        special_tokens, revision, gguf_file, trust_remote_code, batch_size, max_length, device: as for `isotrope.scan`.
        engine, address, workers, gpus_per_worker: where the model runs, see `isotrope.engines.engine`.
        seed: seed of repairs, resamples and permutations.
        progress: called with a stage, what is done and the total.

    Returns:
        Scores in per cent and differences with their 95 % intervals and p-values.

    References:
        Gao et al. 2021 ("concatenated"), Yan et al. 2022 ("paper")
    """
    started, tell = record_start(), progress or (lambda *_: None)
    treatments = parse_treatments(repairs, seed=seed, model=model)
    references = _check_references(against, treatments)
    found = read_sets(sets, data, protocol)
    text = open_fit_text(fit_text)
    own = endpoint is not None or (pooling is None and protocol == "concatenated" and has_pipeline(model, revision))
    default = "all" if own or (pooling and parse(pooling).layers) else LAYERS[protocol]
    reading = Input(
        model=model,
        endpoint=endpoint,
        concurrency=concurrency,
        keep_vectors=keep_vectors,
        layers=default if layers is None else layers,
        pooling=pooling,
        special_tokens=special_tokens,
        revision=revision,
        gguf_file=gguf_file,
        trust_remote_code=trust_remote_code,
        batch_size=batch_size,
        max_length=max_length,
        device=device,
    )
    where = Engine(engine=engine, address=address, workers=workers, gpus_per_worker=gpus_per_worker)
    with where.encoder(reading) as encoder:
        treatments = prepare_treatments(treatments, encoder, text, found[0].sentences[0], tell)
        by_reference: dict[str, dict[str, Comparisons]] = {reference: {} for reference in references}
        for pairs in found:
            rows = encoder(pairs.sentences, partial(tell, f"encoding {pairs.name}"))
            tell(f"comparing on {pairs.name}", 0, None)
            fitted = [treatment.fit(rows, OWN, f"the sentences of {pairs.name}") for treatment in treatments]
            by_treatment = {treatment.name: cosines(treatment(rows)) for treatment in fitted}
            for reference, by_set in by_reference.items():
                baseline_first = {reference: by_treatment[reference]} | by_treatment
                by_part = _compare_parts(pairs, baseline_first, seed)
                by_set |= by_part | {pairs.name: _average(list(by_part.values()))}
        names = [pairs.name for pairs in found]
        if len(names) > 1:
            for by_set in by_reference.values():
                by_set[MEAN] = _average([by_set[name] for name in names])
        settings = {"seed": seed, "protocol": protocol, "sets": names, "data": str(data or "")}
        return StsEvaluation(
            protocol,
            [
                _make_score(name, comparisons, treatment, encoder)
                for name, comparisons in by_reference[references[0]].items()
                for treatment in fitted
            ],
            list_differences(by_reference),
            {pairs.name: pairs.left_out for pairs in found if pairs.left_out},
            describe_provenance(started, settings, 0) | {"engine": encoder.engine},
        )


def _check_references(against: str | Sequence[str], treatments: Sequence[Treatment]) -> list[str]:
    """Check that the references are among the treatments, and list them."""
    references = [against] if isinstance(against, str) else list(against)
    for reference in references:
        if reference not in {treatment.name for treatment in treatments}:
            raise InputError(f"there is no {reference!r} to compare with; name one of the repairs, or none.")
    return references


def cosines(rows: Rows) -> Vector:
    """Cosine of each row of the first half with that of the second, (2n, d) -> (n,); NaN for a row of zeros.

    >>> cosines(np.array([[1.0, 0.0], [3.0, 4.0]])).round(3).tolist()
    [0.6]
    """
    first, second = np.split(np.asarray(rows, dtype=np.float64), 2)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    products = np.einsum("ij,ij->i", first, second)
    found = np.divide(products, lengths, out=np.full(len(first), np.nan), where=lengths > 0)
    return np.asarray(np.round(found, _DECIMALS))


def _compare_parts(pairs: PairSet, cosines: Mapping[str, Vector], seed: int) -> dict[str, Comparisons]:
    """Compare systems on each part of a set. cosines: by the name of the system, the baseline first."""
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


def _average(sets: Sequence[Comparisons]) -> Comparisons:
    return {kind: average([one[kind] for one in sets]) if len(sets) > 1 else sets[0][kind] for kind in CORRELATIONS}


def _make_score(name: str, comparisons: Comparisons, treatment: Treatment, encoder: Encoder) -> StsScore:
    spearman, pearson = (comparisons[kind].scores[treatment.name] for kind in CORRELATIONS)
    return StsScore(
        set=name,
        spearman=100 * spearman.value,
        low=100 * spearman.low,
        high=100 * spearman.high,
        pearson=100 * pearson.value,
        pearson_low=100 * pearson.low,
        pearson_high=100 * pearson.high,
        n=spearman.n,
        reason=spearman.reason,
        **treatment.describe(encoder),
    )
