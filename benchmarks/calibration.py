"""Calibration on halves: thresholds from one half of a set, tried on the other half, over 100 random splits.

Bars: the wanted false-accept rate or precision is kept on the unseen half within the stated interval in at least 90 of
100 splits; a cut-off carried from the first model to another accepts the same share of unseen pairs within its interval
in at least 90 of 100.

    python benchmarks/calibration.py DATA MODEL... [--splits 100] [--cache FOLDER]

DATA holds pairs/mqp_en.tsv and beir/quora_dup; a model is NAME=MODEL, or NAME=MODEL=PREFIX with a prefix of each text.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from isotrope import Encoder, Input
from isotrope.errors import InputError
from isotrope.evaluation.beir import group_by_query, read_entries, read_judgements
from isotrope.search.background import Background
from isotrope.search.label_files import read_pairs
from isotrope.search.labelled_scores import LabelledScores
from isotrope.statistics import Image
from isotrope.statistics.cutoff_transfer import translate
from isotrope.statistics.pair_cosines import PairCosines
from machine import describe

#: Pairs of mqp_en, and queries of quora_dup.
PAIRS, QUERIES = 1_400, 700

#: False-accept rates, the wanted precision of each set, and the share of pairs whose cut-off is carried over.
RATES, PRECISIONS, CARRIED = (1e-2, 1e-3, 2e-4), {"mqp_en": 0.6, "quora_dup": 0.6}, 5e-3

#: Documents of each query that are labelled by the judgements.
FOUND = 10


class LabelledSet(NamedTuple):
    """Texts, and labelled pairs of them by number."""

    name: str
    texts: list[str]
    first: np.ndarray
    second: np.ndarray
    matches: np.ndarray
    queries: int


def read_mqp(data: Path) -> LabelledSet:
    pairs = read_pairs(data / "pairs" / "mqp_en.tsv")[:PAIRS]
    texts = list(dict.fromkeys([*(pair.first for pair in pairs), *(pair.second for pair in pairs)]))
    number = {text: i for i, text in enumerate(texts)}
    sides = [np.array([number[pair[side]] for pair in pairs]) for side in (0, 1)]
    return LabelledSet("mqp_en", texts, *sides, np.array([pair.grade == 1 for pair in pairs]), 0)


def read_quora(data: Path) -> LabelledSet:
    folder = data / "beir" / "quora_dup"
    path = folder / "qrels" / "test.tsv"
    judged = group_by_query(path, list(read_judgements(path)))
    queries = [entry for entry in read_entries(folder / "queries.jsonl") if entry.id in judged][:QUERIES]
    relevant = {document for query in queries for document in judged[query.id]}
    documents = [entry for entry in read_entries(folder / "corpus.jsonl") if entry.id in relevant]
    number = {entry.id: len(queries) + i for i, entry in enumerate(documents)}
    pairs = [(i, number[name]) for i, query in enumerate(queries) for name in judged[query.id]]
    first, second = np.array(pairs).T
    texts = [entry.text for entry in [*queries, *documents]]
    return LabelledSet("quora_dup", texts, first, second, np.ones(len(pairs), bool), len(queries))


def encode(texts: list[str], model: str, name: str, cache: Path | None) -> np.ndarray:
    """Rows of length 1; kept in a file where a folder is named."""
    _, source, prefix = [*model.split("="), ""][:3]
    path = None if cache is None else cache / f"{name}.npy"
    if path is not None and path.exists():
        rows = np.load(path, allow_pickle=False)
    else:
        reading = Input(model=source, pooling="mean", layers="-1") if source else Input()
        rows = Encoder(reading)([prefix + text for text in texts])
        if path is not None:
            np.save(path, rows)
    assert len(rows) == len(texts), path
    wide = rows.astype(np.float64)
    return wide / np.linalg.norm(wide, axis=1, keepdims=True)


def label(found: LabelledSet, unit: np.ndarray) -> tuple[PairCosines, np.ndarray]:
    """Cosines of the labelled pairs; for queries also of their ten best documents, which match if judged so."""
    first, second, matches = found.first, found.second, found.matches
    if found.queries:
        best = np.argsort(-(unit[: found.queries] @ unit[found.queries :].T), axis=1)[:, :FOUND] + found.queries
        known = set(zip(first.tolist(), second.tolist(), strict=True))
        more = [(i, j) for i, row in enumerate(best.tolist()) for j in row if (i, j) not in known]
        added = np.array(more).T
        first, second = np.concatenate([first, added[0]]), np.concatenate([second, added[1]])
        matches = np.concatenate([matches, np.zeros(len(more), bool)])
    cosines = np.einsum("ij,ij->i", unit[first], unit[second])
    return PairCosines(cosines, first.astype(np.int32), second.astype(np.int32), len(unit)), matches


def try_rates(unit: np.ndarray, splits: int) -> Iterator[str]:
    """For each rate: how often the unseen half's threshold lies in the interval, and how often a rate is refused."""
    kept, refused, rng = dict.fromkeys(RATES, 0), dict.fromkeys(RATES, 0), np.random.default_rng(0)
    for seed in range(splits):
        order = rng.permutation(len(unit))
        here, there = unit[order[: len(unit) // 2]], unit[order[len(unit) // 2 :]]
        background = Background.of(PairCosines.of(here, seed=seed), seed)
        unseen = np.sort(PairCosines.of(there, seed=seed).cosines)
        for rate in RATES:
            try:
                found = background.find_threshold(rate)
            except InputError:
                refused[rate] += 1
                continue
            kept[rate] += found.low <= unseen[-max(1, round(rate * len(unseen)))] <= found.high
    for rate in RATES:
        yield f"false-accept rate {rate:g}: kept {kept[rate]} of {splits - refused[rate]}, refused {refused[rate]}"


def try_precision(scores: PairCosines, matches: np.ndarray, wanted: float, splits: int) -> str:
    """How often the precision of the unseen half lies in the stated interval, and reaches what was wanted."""
    kept = reached = refused = 0
    rng = np.random.default_rng(1)
    for seed in range(splits):
        half = (rng.random(scores.rows) < 0.5)[scores.first]
        try:
            found = LabelledScores.of(scores.only(half), matches[half], seed).find_threshold("precision", wanted)
        except InputError:
            refused += 1
            continue
        unseen = matches[~half & (scores.cosines >= found.value)]
        precision = float(unseen.mean()) if len(unseen) else 1.0
        kept += found.low <= precision <= found.high
        reached += precision >= wanted
    tried = splits - refused
    return f"precision {wanted:g}: in its interval {kept} of {tried}, reached {reached} of {tried}, refused {refused}"


def try_transfer(one: np.ndarray, two: np.ndarray, splits: int) -> str:
    """How often the unseen share of the first space lies between those of the second at both ends of the interval."""
    kept, rng = 0, np.random.default_rng(2)
    cosines = np.sort(PairCosines.of(one).cosines)
    cutoff = float(cosines[-round(CARRIED * len(cosines))])
    for seed in range(splits):
        order = rng.permutation(len(one))
        here, there = order[: len(one) // 2], order[len(one) // 2 :]
        (found,) = translate(Image.of(one[here], two[here]), [cutoff], seed=seed)
        old, new = (PairCosines.of(rows[there], seed=seed).cosines for rows in (one, two))
        kept += (new >= found.high).mean() <= (old >= cutoff).mean() <= (new >= found.low).mean()
    return f"cut-off {cutoff:.3f} carried over (last {found.after:.3f}): the same share in {kept} of {splits}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--splits", type=int, default=100)
    parser.add_argument("--cache", type=Path)
    arguments = parser.parse_args()
    print(describe())
    for found in (read_mqp(arguments.data), read_quora(arguments.data)):
        spaces: dict[str, np.ndarray] = {}
        for model in arguments.models:
            name = model.split("=")[0]
            unit = spaces[name] = encode(found.texts, model, f"{found.name}_{name}", arguments.cache)
            print(f"\n{found.name}, {name}: {len(unit):,} texts, halves of {len(unit) // 2:,}")
            for line in try_rates(unit, arguments.splits):
                print(f"  {line}", flush=True)
            scores, matches = label(found, unit)
            print(f"  {try_precision(scores, matches, PRECISIONS[found.name], arguments.splits)}", flush=True)
        first, *others = spaces
        for other in others:
            print(f"\n{found.name}, {first} to {other}: {try_transfer(spaces[first], spaces[other], arguments.splits)}")


if __name__ == "__main__":
    main()
