"""Saved statistics, checkpoints and repairs whose arrays were changed on purpose, with checksums that fit.

The bytes of an input are only the seed of the changes: bytes that are flipped in a file are nearly always found by its
checksum or by the reader of safetensors, and never reach the statistics.
"""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Arrays = dict[str, np.ndarray]

#: The input that leaves everything as it is.
WHOLE = b"whole"

_TYPES = ("int8", "uint8", "int32", "int64", "uint64", "float16", "float32", "float64", "bool")
_VALUES = (0, -1, 1, 2**31, 2**53 + 2, 2**62, -(2**63), np.nan, np.inf, -np.inf, 1e308, -1e308, 1e-320)

_KEPT: dict[str, Path] = {}


def _set(rng: random.Random, array: np.ndarray) -> np.ndarray:
    """Some of the numbers, or all, become another."""
    changed, value = array.copy(), rng.choice(_VALUES)
    if changed.size:
        at = slice(None) if rng.random() < 0.3 else rng.randrange(changed.size)
        with np.errstate(all="ignore"):
            changed.reshape(-1)[at] = np.array(value).astype(changed.dtype)
    return changed


def _cast(rng: random.Random, array: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return array.astype(rng.choice(_TYPES))


def _reshape(rng: random.Random, array: np.ndarray) -> np.ndarray:
    flat = array.ravel()
    return rng.choice(
        (flat, array[None], array[:0], array[: rng.randint(0, len(array))], array.T.copy(), np.tile(flat, 3), flat[:1])
    )


def _shuffle(rng: random.Random, array: np.ndarray) -> np.ndarray:
    return np.random.default_rng(rng.randrange(2**32)).permutation(array)


_CHANGES: tuple[Callable[[random.Random, np.ndarray], np.ndarray], ...] = (_set, _set, _cast, _reshape, _shuffle)


def change_arrays(seed: bytes, arrays: Arrays) -> Arrays:
    """Arrays of which one or a few have another type, shape, value or name, or are missing."""
    if seed == WHOLE:
        return arrays
    rng, changed = random.Random(seed), dict(arrays)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        name = rng.choice(sorted(changed))
        array = changed[name]
        kind = rng.randrange(12)
        if kind == 0:
            del changed[name]
        elif kind == 1:
            changed[rng.choice(sorted(arrays)) + rng.choice(("", "x"))] = changed.pop(name)
        elif array.ndim:
            changed[name] = rng.choice(_CHANGES)(rng, array)
        if not changed:
            return arrays
    return changed


def _write(path: Path, seed: bytes, whole: Path) -> None:
    """Change the arrays of a file; sometimes cut the file off, too."""
    from safetensors.numpy import load_file, save

    data = save({name: np.ascontiguousarray(a) for name, a in change_arrays(seed, load_file(whole)).items()})
    rng = random.Random(seed + b"cut")
    path.write_bytes(data[: rng.randrange(len(data))] if seed != WHOLE and rng.random() < 0.05 else data)


def _collection() -> Any:
    from isotrope.sources.batch import Batch, Rows
    from isotrope.statistics import Collection, Wanted

    rng = np.random.default_rng(0)
    known = Rows(
        np.repeat(np.arange(12, dtype=np.uint64), 4),
        token=rng.integers(0, 3, 48),
        position=np.tile(np.arange(4), 12),
        special=np.zeros(48, bool),
    )
    collection = Collection(Wanted(tokens=True, sequences=True, sample=20))
    collection.update(Batch({0: (rng.normal(size=(48, 3)) + 1).astype(np.float32)}, known))
    return collection


def _seeds(make: Callable[[Path], None]) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        make(folder)
        return [WHOLE]

    return seeds


# A finished run, compact or with everything


def _make_run(keep: str, folder: Path) -> None:
    from isotrope.runs.retention import select_statistics
    from isotrope.runs.run import Run
    from isotrope.scanner import scan

    found = scan(vectors=np.random.default_rng(0).normal(size=(40, 3)), measures="mean_cosine", sample=20)
    found.tables = {"spectra": found.tables["spectra"]}
    statistics = select_statistics(_collection(), keep)
    Run(folder / keep).save(found, statistics)
    _KEPT[keep] = folder / keep


def _read_run(keep: str, path: Path) -> None:
    """All that later commands do with statistics: sums, spectra, tables, repairs, and what a report draws."""
    from isotrope.repairs import ClusterIsotropy, Whitening, saved_summary
    from isotrope.report.tables import compute_coordinates
    from isotrope.runs.run import Run
    from isotrope.runs.saved_statistics import SavedStatistics
    from isotrope.statistics.token_tables import in_window

    run = path.parent / keep
    if not run.exists():
        shutil.copytree(_KEPT[keep], run)
    index = json.loads((_KEPT[keep] / "statistics/index.json").read_bytes())
    # Without checksums, as in runs from before there were any: who changes a file on purpose changes them, too.
    kept = {name: index[name] for name in ("format", "keep", "files")}
    (run / "statistics/index.json").write_text(json.dumps(kept))
    name = "statistics/layer_0.safetensors"
    _write(run / name, path.read_bytes(), _KEPT[keep] / name)
    summary = saved_summary(run)
    _ = summary.moments.eigenvalues, summary.moments.singular_values, summary.moments.constant
    compute_coordinates(summary.moments)
    with np.errstate(all="ignore"):
        Whitening().fit_moments(summary.moments)
        if summary.tokens is not None:
            _ = summary.tokens.table
            in_window(summary.tokens)
        if summary.sample is not None and summary.sample.n:
            summary.sample.spectra()
            ClusterIsotropy(clusters=2, directions=1).fit(summary.sample)
    SavedStatistics.of_run(Run(run)).load_sample(0, rows=10)


# A checkpoint


def _make_checkpoint(folder: Path) -> None:
    from isotrope.runs import checkpoints
    from isotrope.runs.run import Run

    checkpoints.save_checkpoint(Run(folder / "begun").checkpoints, {"source": {}, "settings": {}}, _collection())
    _KEPT["begun"] = folder / "begun"


def _read_checkpoint(path: Path) -> None:
    """Read, added to and measured, as a run that goes on does."""
    from isotrope.runs import checkpoints
    from isotrope.runs.run import Run
    from isotrope.statistics import Wanted
    from isotrope.storage.files import add_checksum, sha256

    run, name = path.parent / "begun", "checkpoint/00000001/layer_0.safetensors"
    if not run.exists():
        shutil.copytree(_KEPT["begun"], run)
    _write(run / name, path.read_bytes(), _KEPT["begun"] / name)
    state = json.loads((_KEPT["begun"] / "checkpoint/00000001/state.json").read_bytes())
    state["files"]["layer_0"] = sha256(run / name)
    (run / "checkpoint/00000001/state.json").write_text(add_checksum(state))
    wanted = Wanted(tokens=True, sequences=True, sample=20)
    collection = checkpoints.load_checkpoint(Run(run).checkpoints, {"source": {}, "settings": {}}, wanted)
    with np.errstate(all="ignore"):
        collection += _collection()
        _ = collection.layer(0).moments.eigenvalues


# A repair


def _make_repairs(folder: Path) -> None:
    from isotrope.repairs import Centering, ClusterIsotropy, Flow, SoftDecay, Whitening

    rows = np.random.default_rng(0).normal(size=(60, 3)) + 1
    kinds = {"whitening": Whitening(), "centering": Centering(scaled=True), "softdecay": SoftDecay(normalize=True)}
    kinds |= {"clusters": ClusterIsotropy(clusters=2, directions=1), "flow": Flow(steps=2, hidden=4, epochs=1)}
    for kind, repair in kinds.items():
        repair.fit(rows).save(folder / "repairs" / kind)
    _KEPT["repairs"] = folder / "repairs"


def _read_repair(path: Path) -> None:
    from isotrope.repairs import load_repair
    from isotrope.repairs.persistence import ARRAYS, CONFIG, _checksum

    seed = path.read_bytes()
    kinds = sorted(kind.name for kind in _KEPT["repairs"].iterdir())
    whole = _KEPT["repairs"] / kinds[sum(seed) % len(kinds)]
    folder = path.parent / "repair"
    folder.mkdir(exist_ok=True)
    _write(folder / ARRAYS, seed, whole / ARRAYS)
    config = json.loads((whole / CONFIG).read_bytes())
    del config["checksum"]
    (folder / CONFIG).write_text(json.dumps({**config, "checksum": _checksum(config, folder / ARRAYS)}))
    with np.errstate(all="ignore"):
        load_repair(folder).transform(np.eye(3))


def add_saved_targets(targets: dict[str, Any], target: Callable[..., Any]) -> None:
    """Add these to all targets; target: makes one of an ending, seeds and a reader."""
    for keep in ("summary", "all"):
        make, read = (lambda folder, k=keep: _make_run(k, folder)), (lambda path, k=keep: _read_run(k, path))
        targets[f"saved {keep}"] = target("", _seeds(make), read)
    targets["saved checkpoint"] = target("", _seeds(_make_checkpoint), _read_checkpoint)
    targets["saved repair"] = target("", _seeds(_make_repairs), _read_repair)
