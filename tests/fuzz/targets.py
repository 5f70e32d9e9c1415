"""Every reader of files, and the gate grammar: small whole inputs, and how they are read."""

from __future__ import annotations

import gzip
import io
import json
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from fuzz.saved_targets import add_saved_targets


class Target(NamedTuple):
    """ending: of the file's name. seeds: whole inputs, made in a folder. read: what is tried; its value is not used."""

    ending: str
    seeds: Callable[[Path], Sequence[bytes]]
    read: Callable[[Path], object]


TARGETS: dict[str, Target] = {}

ROWS = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)


def _buffer(write: Callable[[Any], object]) -> bytes:
    buffer = io.BytesIO()
    write(buffer)
    return buffer.getvalue()


# Vectors


def _read_vectors(path: Path) -> None:
    from isotrope.sources.vectors.source import ArraySource

    source = ArraySource(path, batch_rows=2)
    for _ in source.batches():
        pass
    source.describe()


def _npy(_: Path) -> list[bytes]:
    arrays = [ROWS, ROWS.astype(">f8"), np.asfortranarray(ROWS), ROWS.astype(np.float16), np.arange(6).reshape(2, 3)]
    return [_buffer(partial(np.save, arr=array)) for array in arrays]


def _npz(_: Path) -> list[bytes]:
    made = [_buffer(partial(save, a=ROWS, b=ROWS)) for save in (np.savez, np.savez_compressed)]
    return [*made, _buffer(partial(np.savez_compressed, zeros=np.zeros((2000, 3), np.float32)))]


def _safetensors(_: Path) -> list[bytes]:
    from safetensors.numpy import save

    several = {"a": ROWS, "b": ROWS.astype(np.float16), "c": np.arange(5)}
    return [save({"a": ROWS}), save(several, {"format": "np"})]


def _table() -> Any:
    import pyarrow as pa

    return pa.table({"v": list(ROWS), "kind": ["a", "b", None, "a", "c"]})


def _fixed_table() -> Any:
    import pyarrow as pa

    values = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)
    return pa.table({"v": values})


def _base64_table() -> Any:
    import base64

    import pyarrow as pa

    return pa.table({"embedding": [base64.b64encode(row.tobytes()).decode() for row in ROWS]})


def _parquet(_: Path) -> list[bytes]:
    import pyarrow.parquet as pq

    tables = [(_table(), {}), (_fixed_table(), {"compression": "zstd"}), (_base64_table(), {"use_dictionary": False})]
    return [_buffer(lambda b, t=t, o=o: pq.write_table(t, b, **o)) for t, o in tables]


def _ipc(_: Path) -> list[bytes]:
    import pyarrow as pa

    def write(new: Any, table: Any, compression: str | None) -> Callable[[Any], object]:
        def fill(buffer: Any) -> None:
            with new(buffer, table.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
                writer.write_table(table)

        return fill

    kinds = [(pa.ipc.new_file, None), (pa.ipc.new_stream, None), (pa.ipc.new_file, "zstd")]
    return [_buffer(write(new, table, c)) for new, c in kinds for table in (_table(), _fixed_table())]


def _hdf5(folder: Path) -> list[bytes]:
    import h5py

    made = []
    for number, options in enumerate(({}, {"chunks": (2, 3), "compression": "gzip"})):
        with h5py.File(folder / f"{number}.h5", "w", libver="latest" if number else "earliest") as file:
            file.create_dataset("deep/rows", data=ROWS, **options)
            file["other"] = np.arange(5)
        made.append((folder / f"{number}.h5").read_bytes())
    return made


def _faiss(_: Path) -> list[bytes]:
    import faiss

    made = []
    for kind in ("Flat", "IDMap,Flat", "IVF2,Flat", "HNSW4,Flat", "SQ8"):
        index = faiss.index_factory(ROWS.shape[1], kind)
        rows = np.ascontiguousarray(ROWS, dtype=np.float32)
        index.train(rows)
        if kind.startswith("IDMap"):
            index.add_with_ids(rows, np.arange(len(rows), dtype=np.int64) + 7)
        else:
            index.add(rows)
        made.append(faiss.serialize_index(index).tobytes())
    return made


def _read_with_groups(path: Path | str, column: str | None, group_by: str) -> None:
    from isotrope.sources.vectors.source import ArraySource

    for batch in ArraySource(path, column=column, group_by=group_by, batch_rows=2).batches():
        assert batch.rows.group is not None
        batch.rows.group.members()


def _grouped_tables() -> list[Any]:
    """Tables with a column `kind` of several types, one of them long."""
    import pyarrow as pa

    texts = ["a" * 500, "b", None, "a" * 500, "c"]
    kinds = [pa.array(texts), pa.array(texts).dictionary_encode(), pa.array([1, 2, None, 1, 2]), pa.array([b"x"] * 5)]
    values = pa.FixedSizeListArray.from_arrays(pa.array(ROWS.ravel()), 3)
    return [pa.table({"v": values, "kind": kind}) for kind in kinds]


def _grouped_parquet(_: Path) -> list[bytes]:
    import pyarrow.parquet as pq

    options = ({}, {"use_dictionary": False, "compression": "zstd"})
    return [_buffer(lambda b, t=t, o=o: pq.write_table(t, b, **o)) for t in _grouped_tables() for o in options]


def _grouped_ipc(_: Path) -> list[bytes]:
    import pyarrow as pa

    def fill(table: Any, buffer: Any) -> None:
        with pa.ipc.new_file(buffer, table.schema) as writer:
            writer.write_table(table)

    return [_buffer(partial(fill, table)) for table in _grouped_tables()]


def _grouped_arrays(_: Path) -> list[bytes]:
    from safetensors.numpy import save

    return [save({"v": ROWS, "kind": np.array([1, 2, 1, 2, 3], dtype)}, {"a": "b"}) for dtype in ("i8", "u1")]


def _packed_npz(_: Path) -> list[bytes]:
    """Archives of many packed arrays, by every method, with integers to group by."""
    import zipfile

    made = [_buffer(partial(np.savez_compressed, v=np.asfortranarray(ROWS), kind=np.array([1, 2, 1, 2, 3])))]
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", method) as archive:
            archive.writestr("v.npy", _buffer(partial(np.save, arr=ROWS)))
            archive.writestr("kind.npy", _buffer(partial(np.save, arr=np.arange(5))))
            for number in range(20):
                archive.writestr(f"{number}.npy", _buffer(partial(np.save, arr=ROWS[:1])))
        made.append(buffer.getvalue())
    return made


def _hdf5_elsewhere(folder: Path) -> list[bytes]:
    """Numbers in other files beside own ones, and groups."""
    import h5py

    made = []
    for number, version in enumerate(("earliest", "latest")):
        path = folder / f"elsewhere{number}.h5"
        with h5py.File(path, "w", libver=version) as file:
            file["v"], file["kind"] = ROWS, np.array([1, 2, 1, 2, 3])
            file.create_dataset("external", (5, 3), "f4", external=[("/dev/zero", 0, 60)])
            if number:
                layout = h5py.VirtualLayout((5, 3), "f4")
                layout[:] = h5py.VirtualSource("/dev/zero", "rows", shape=(5, 3))
                file.create_virtual_dataset("virtual", layout)
            file["link"] = h5py.ExternalLink("/dev/zero", "rows")
        made.append(path.read_bytes())
    return made


def _read_hdf5_elsewhere(path: Path) -> None:
    from contextlib import suppress

    from isotrope.errors import InputError

    with suppress(InputError):
        _read_vectors(path)  # which finds what is elsewhere
    _read_with_groups(path, "v", "kind")


def _points(_: Path) -> list[bytes]:
    import pickle

    from qdrant_client import models

    payload = {"text": "a text", "n": [1, 2.5, None, True, 10**12], "deep": {"a": "b" * 300}}
    vectors: list[Any] = [
        ROWS[0].tolist(),
        {"a": np.arange(40.0).tolist()},
        {"b": models.SparseVector(indices=[1], values=[2])},
    ]
    points = [models.PointStruct(id=i, vector=vector, payload=payload) for i, vector in enumerate(vectors)]
    return [pickle.dumps(point, protocol) for point in points for protocol in (4, 5)]


def _read_point(path: Path) -> None:
    from isotrope.sources.vectors.stores.address import parse
    from isotrope.sources.vectors.stores.qdrant_folder import load_point
    from isotrope.sources.vectors.stores.store import name_store_in_errors

    address = parse(f"qdrant:{path}#texts")
    assert address is not None
    with name_store_in_errors(address):
        load_point(str(path), path.read_bytes())


def _qdrant_folder(folder: Path) -> list[bytes]:
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path=str(folder / "qdrant"))
    client.create_collection("texts", vectors_config=models.VectorParams(size=3, distance=models.Distance.DOT))
    points = [
        models.PointStruct(id=i, vector=row, payload={"kind": f"k{i % 2}"}) for i, row in enumerate(ROWS.tolist())
    ]
    client.upsert("texts", points)
    client.close()
    _KEPT["qdrant"] = folder / "qdrant"
    return [(folder / "qdrant/collection/texts/storage.sqlite").read_bytes()]


def _read_qdrant_folder(path: Path) -> None:
    """Each time in a new folder: the client of one that it could not open keeps it for itself."""
    import tempfile

    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        folder = Path(place) / "store"
        shutil.copytree(_KEPT["qdrant"], folder)
        shutil.copyfile(path, folder / "collection/texts/storage.sqlite")
        _read_with_groups(f"qdrant:{folder}#texts", None, "kind")


_KEPT: dict[str, Path] = {}

TARGETS["npy"] = Target(".npy", _npy, _read_vectors)
TARGETS["npz"] = Target(".npz", _npz, _read_vectors)
TARGETS["safetensors"] = Target(".safetensors", _safetensors, _read_vectors)
TARGETS["parquet"] = Target(".parquet", _parquet, _read_vectors)
TARGETS["arrow"] = Target(".arrow", _ipc, _read_vectors)
TARGETS["hdf5"] = Target(".h5", _hdf5, _read_vectors)
TARGETS["faiss"] = Target(".faiss", _faiss, _read_vectors)
_with_groups = partial(_read_with_groups, column="v", group_by="kind")
TARGETS["parquet groups"] = Target(".parquet", _grouped_parquet, _with_groups)
TARGETS["arrow groups"] = Target(".arrow", _grouped_ipc, _with_groups)
TARGETS["safetensors groups"] = Target(".safetensors", _grouped_arrays, _with_groups)
TARGETS["packed npz"] = Target(".npz", _packed_npz, _with_groups)
TARGETS["hdf5 elsewhere"] = Target(".h5", _hdf5_elsewhere, _read_hdf5_elsewhere)
TARGETS["qdrant point"] = Target("", _points, _read_point)
TARGETS["qdrant folder"] = Target("", _qdrant_folder, _read_qdrant_folder)


# Texts

_TEXT = "Ein Haus.\n\nTwo words,\r\nand a third \N{GREEK SMALL LETTER ALPHA}.\n".encode()
_JSONL = b'{"text": "a house", "year": 1999, "n": [1, 2]}\n{"text": "two \\u00e4 houses", "year": null}\n'
_JSON = b'[{"text": "a house", "n": 1.5}, {"text": "another", "n": null}]'
_CSV = b'text,year\n"a ""quoted"" house",1999\nanother,2000\n'


def _read_texts(path: Path, **options: Any) -> None:
    from isotrope.sources.corpora.corpus import open_corpus

    corpus = open_corpus(path, **options)
    for _ in corpus:
        pass
    corpus.describe()


def _plain(*seeds: bytes) -> Callable[[Path], list[bytes]]:
    return lambda folder: list(seeds)


def _text_tables(write: Callable[[Any, Any], object]) -> Callable[[Path], list[bytes]]:
    def seeds(_: Path) -> list[bytes]:
        import pyarrow as pa

        tables = [
            pa.table({"text": ["a", "b", None], "n": [1, 2, 3]}),
            pa.table({"text": pa.array(["a", "a"]).dictionary_encode()}),
        ]
        return [_buffer(partial(write, table)) for table in tables]

    return seeds


def _write_parquet(table: Any, buffer: Any) -> None:
    import pyarrow.parquet as pq

    pq.write_table(table, buffer)


def _write_stream(table: Any, buffer: Any) -> None:
    import pyarrow as pa

    with pa.ipc.new_stream(buffer, table.schema) as writer:
        writer.write_table(table)


TARGETS["text"] = Target(".txt", _plain(_TEXT), _read_texts)
TARGETS["paragraphs"] = Target(".txt", _plain(_TEXT), partial(_read_texts, unit="paragraph"))
TARGETS["jsonl"] = Target(".jsonl", _plain(_JSONL), _read_texts)
TARGETS["json"] = Target(".json", _plain(_JSON, b'["a", "b"]'), _read_texts)
TARGETS["csv"] = Target(".csv", _plain(_CSV), _read_texts)
TARGETS["gzip"] = Target(".jsonl.gz", _plain(gzip.compress(_JSONL), gzip.compress(_JSONL) * 2), _read_texts)
TARGETS["text parquet"] = Target(".parquet", _text_tables(_write_parquet), _read_texts)
TARGETS["text arrow"] = Target(".arrow", _text_tables(_write_stream), _read_texts)


# Images and sounds


def _images(_: Path) -> list[bytes]:
    from PIL import Image

    image = Image.fromarray(np.random.default_rng(0).integers(0, 255, (6, 5, 3), dtype=np.uint8))
    kinds = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF", "PPM")
    return [_buffer(lambda b, k=k: image.save(b, k)) for k in kinds]


def _read_image(path: Path) -> None:
    from isotrope.sources.media.images import read

    read(path)
    read(path.read_bytes())


def _sounds(_: Path) -> list[bytes]:
    import soundfile

    wave = np.sin(np.arange(3000) / 9).astype(np.float32) * 0.5
    kinds = [
        ("WAV", "PCM_16", 1),
        ("WAV", "FLOAT", 2),
        ("FLAC", "PCM_16", 1),
        ("OGG", "VORBIS", 1),
        ("AIFF", "PCM_16", 1),
    ]
    made = []
    for form, subtype, channels in kinds:
        samples = np.repeat(wave[:, None], channels, axis=1)
        made.append(_buffer(lambda b, s=samples, f=form, t=subtype: soundfile.write(b, s, 8000, format=f, subtype=t)))
    return made


def _read_sound(path: Path) -> None:
    from isotrope.sources.media.audio import clips
    from isotrope.sources.media.corpus import Item

    class Processor:
        sampling_rate = 4000

        def __call__(self, window: Any, sampling_rate: int, return_tensors: str) -> dict[str, Any]:
            return {"input_values": window}

    loaded: Any = SimpleNamespace(processor=Processor(), name="none")
    for _ in clips(loaded, Item(0, path), Counter()):
        pass


def _read_media_table(path: Path) -> None:
    from isotrope.sources.media.corpus import open_media

    media = open_media(path, "image")
    for _ in media:
        pass
    media.facts()


def _media_table(_: Path) -> list[bytes]:
    import pyarrow as pa

    return [
        _buffer(
            partial(
                _write_parquet, pa.table({"image": [{"bytes": b"abc", "path": None}, {"bytes": None, "path": "x"}]})
            )
        )
    ]


TARGETS["images"] = Target("", _images, _read_image)
TARGETS["sounds"] = Target("", _sounds, _read_sound)
TARGETS["media table"] = Target(".parquet", _media_table, _read_media_table)


# What isotrope wrote itself


def _run_folder(folder: Path) -> Path:
    """A small run: a few readings, one table, statistics of one layer."""
    from isotrope.runs.retention import StatisticFiles
    from isotrope.runs.run import Run
    from isotrope.scanner import scan
    from isotrope.sources.vectors.source import ArraySource
    from isotrope.statistics import Collection, Wanted

    found = scan(vectors=np.random.default_rng(0).normal(size=(40, 3)), sample=20)
    found.readings = [r for r in found.readings if r.measure in ("mean_cosine", "isoscore")]
    found.tables = {"spectra": found.tables["spectra"]}
    statistics = Collection(Wanted(sample=20))
    for batch in ArraySource(ROWS).batches():
        statistics.update(batch)
    arrays = statistics.summaries[None, 0].arrays()
    Run(folder / "run").save(found, StatisticFiles({"layer_0": arrays}, {"layer_0": (None, 0)}))
    return folder / "run"


def _of_run(name: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        _KEPT["run"] = _run_folder(folder)
        return [(_KEPT["run"] / name).read_bytes()]

    return seeds


def _read_in_run(name: str, path: Path, *, sealed: bool = True) -> Any:
    """A run with one file exchanged; not sealed: as a run from before there were checksums."""
    from isotrope.runs.run import Run

    run = path.parent / "run"
    if not run.exists():
        shutil.copytree(_KEPT["run"], run)
    index = run / "statistics/index.json"
    whole = (_KEPT["run"] / "statistics/index.json").read_bytes()
    index.write_bytes(whole if sealed else json.dumps({k: json.loads(whole)[k] for k in ("format", "files")}).encode())
    shutil.copyfile(path, run / name)
    return Run(run)


def _read_findings(path: Path) -> None:
    """Read, and used for all that findings alone are used for; the page as the data that it holds."""
    from isotrope import gate
    from isotrope.findings import Findings
    from isotrope.report.data import describe_page, describe_run
    from isotrope.report.html import script_json

    found = Findings.from_json(path.read_bytes())
    found.to_json()
    gate.check(gate.parse("any.mean_cosine > 0.5"), found)
    script_json(describe_page("report", [describe_run(found, "run")]))


def _read_statistics(path: Path) -> None:
    from isotrope.repairs import saved_summary
    from isotrope.runs.saved_statistics import SavedStatistics

    run = _read_in_run("statistics/layer_0.safetensors", path, sealed=False)
    saved_summary(run.folder)
    SavedStatistics.of_run(run).load_sample(0, rows=10)


def _read_index(path: Path) -> None:
    from isotrope.repairs import saved_summary

    run = _read_in_run("statistics/index.json", path)
    run.findings()
    saved_summary(run.folder)


def _read_run_table(path: Path) -> None:
    _read_in_run("tables/spectra.parquet", path, sealed=False).findings()


def _checkpoint_seed(name: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        from isotrope.runs import checkpoints
        from isotrope.runs.run import Run
        from isotrope.sources.vectors.source import ArraySource
        from isotrope.statistics import Collection, Wanted

        now = Collection(Wanted(sample=4))
        for batch in ArraySource(ROWS).batches():
            now.update(batch)
        run = Run(folder / "stopped")
        checkpoints.save_checkpoint(run.checkpoints, {"source": {}, "settings": {}}, now)
        _KEPT["stopped"] = run.folder
        return [(run.folder / "checkpoint/00000001" / name).read_bytes()]

    return seeds


def _read_checkpoint(name: str, path: Path) -> None:
    """With its hashes as they are, and with hashes that belong to the damaged file."""
    from isotrope.errors import IsotropeError
    from isotrope.runs import checkpoints
    from isotrope.runs.run import Run
    from isotrope.statistics import Wanted
    from isotrope.storage.files import add_checksum, sha256

    run = path.parent / "stopped"
    place = run / "checkpoint/00000001"
    place.mkdir(parents=True, exist_ok=True)
    for file in ("state.json", "layer_0.safetensors"):
        shutil.copyfile(path if file == name else _KEPT["stopped"] / "checkpoint/00000001" / file, place / file)
    task: dict[str, Any] = {"source": {}, "settings": {}}
    try:
        checkpoints.load_checkpoint(Run(run).checkpoints, task, Wanted(sample=4))
    except IsotropeError as refused:
        try:
            state = json.loads((place / "state.json").read_bytes())
            state["files"]["layer_0"] = sha256(place / "layer_0.safetensors")
            (place / "state.json").write_text(add_checksum(state))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise refused from None
        checkpoints.load_checkpoint(Run(run).checkpoints, task, Wanted(sample=4))


def _repairs() -> dict[str, Any]:
    from isotrope.repairs import AllButTheTop, Centering, ClusterIsotropy, SoftDecay, Whitening

    return {"whitening": Whitening(), "top": AllButTheTop(1), "centering": Centering(scaled=True),
            "softdecay": SoftDecay(normalize=True), "clusters": ClusterIsotropy(clusters=2, directions=1)}  # fmt: skip


def _repair_seed(name: str) -> Callable[[Path], list[bytes]]:
    def seeds(folder: Path) -> list[bytes]:
        rows = np.random.default_rng(0).normal(size=(60, 3)) + 1
        made = []
        for kind, repair in _repairs().items():
            repair.fit(rows).save(folder / kind)
            _KEPT[kind] = folder / kind
            made.append((folder / kind / name).read_bytes())
        return made

    return seeds


def _read_repair(name: str, path: Path) -> None:
    """As it is, and with a checksum that belongs to the damaged files."""
    from isotrope.errors import IsotropeError
    from isotrope.repairs import load_repair
    from isotrope.repairs.persistence import ARRAYS, CONFIG, _checksum

    folder = path.parent / "repair"
    folder.mkdir(exist_ok=True)
    kinds = list(_repairs())
    # The kind that the damaged file comes from, or any where that can no longer be told.
    whole = next((kind for kind in kinds if (_KEPT[kind] / name).read_bytes()[:150] == path.read_bytes()[:150]), None)
    kind = whole or kinds[path.stat().st_size % len(kinds)]
    for file in (CONFIG, ARRAYS):
        shutil.copyfile(path if file == name else _KEPT[kind] / file, folder / file)
    try:
        load_repair(folder)
    except IsotropeError as refused:
        try:
            config = json.loads((folder / CONFIG).read_bytes())
            config.pop("checksum", None)
            config["checksum"] = _checksum(config, folder / ARRAYS)
            (folder / CONFIG).write_text(json.dumps(config))
        except (ValueError, TypeError, AttributeError, RecursionError):
            raise refused from None
        load_repair(folder).transform(ROWS)


def _weights_seed(folder: Path) -> list[bytes]:
    from isotrope.sources.text.token_weights import TokenWeights

    TokenWeights(np.ones(5), {"kind": "sif", "smoothing": 1, "tokens": 2, "corpus": {"name": "x"}}).save(folder / "w")
    return [(folder / "w").read_bytes()]


def _read_weights(path: Path) -> None:
    from isotrope.sources.text.token_weights import TokenWeights

    found = TokenWeights.load(path)
    str(found)
    found.describe()


TARGETS["findings"] = Target("", _of_run("findings.json"), _read_findings)
TARGETS["statistics"] = Target("", _of_run("statistics/layer_0.safetensors"), _read_statistics)
TARGETS["run index"] = Target("", _of_run("statistics/index.json"), _read_index)
TARGETS["run table"] = Target("", _of_run("tables/spectra.parquet"), _read_run_table)
TARGETS["checkpoint state"] = Target("", _checkpoint_seed("state.json"), partial(_read_checkpoint, "state.json"))
TARGETS["checkpoint arrays"] = Target(
    "", _checkpoint_seed("layer_0.safetensors"), partial(_read_checkpoint, "layer_0.safetensors")
)
for _name, _file in (("config", "config.json"), ("arrays", "repair.safetensors")):
    TARGETS[f"repair {_name}"] = Target("", _repair_seed(_file), partial(_read_repair, _file))
TARGETS["token weights"] = Target("", _weights_seed, _read_weights)
add_saved_targets(TARGETS, Target)


# Data of evaluations and studies

_PAIRS = b"genre\tfile\t2012\t1\t3.5\tA house.\tA home.\ngenre\tother\t2012\t2\t0\tRain.\tSnow.\n"
_GLUE = b"sentence1\tsentence2\tlabel\nA house.\tA home.\t1\nRain.\tSnow.\t0\n"


def _read_pairs(path: Path) -> None:
    from isotrope.evaluation.pairs import read_sets

    (path.parent / "sts").mkdir(exist_ok=True)
    path.replace(path.parent / "sts/sts-b-test.csv")
    read_sets(None, path.parent, "concatenated")


def _read_glue(path: Path) -> None:
    from isotrope.finetuning.tasks import read_task

    folder = path.parent / "rte"
    folder.mkdir(exist_ok=True)
    for split in ("train", "validation"):
        shutil.copyfile(path, folder / f"{split}.tsv")
    read_task("rte", path.parent)


def _read_beir(place: str, path: Path) -> None:
    from isotrope.evaluation.beir import open_set

    folder = path.parent / "beir"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    whole = {
        "corpus.jsonl": b'{"_id": "d", "title": "Rain", "text": "falls."}\n{"_id": "e", "text": "Snow."}\n',
        "queries.jsonl": b'{"_id": "q", "text": "What falls?"}\n',
        "qrels/test.tsv": b"query-id\tcorpus-id\tscore\nq\td\t1\n",
    }
    for name, data in whole.items():
        (folder / name).write_bytes(path.read_bytes() if name == place else data)
    open_set(folder)


def _study_seed(folder: Path) -> list[bytes]:
    import pandas as pd

    from isotrope.studies.options import StudyOptions
    from isotrope.studies.result import Claim, Table
    from isotrope.studies.runner import Results, run_study

    table, claim = Table("numbers", "Numbers", pd.DataFrame({"a": [1.0, 2.0]})), Claim("note", "A note.", "Table 1")
    run_study("name", "paper", {"one": lambda: Results([table], [claim])}, StudyOptions(output=folder / "study"))
    _KEPT["study"] = folder / "study"
    return [(folder / "study/parts/one/part.json").read_bytes()]


def _read_study(path: Path) -> None:
    from isotrope.studies.runner import load_part

    study = path.parent / "study"
    if not study.exists():
        shutil.copytree(_KEPT["study"], study)
    shutil.copyfile(path, study / "parts/one/part.json")
    load_part(study, "one")


def _glue_run_seed(folder: Path) -> list[bytes]:
    from isotrope.finetuning.runs import GlueRun, run_file, write_run

    run = GlueRun(
        "rte", "base", 0, {"accuracy": 0.5}, [0.5], 1, [0.1], 2, 1.0, {"train": 2}, [], {"pretrained": {"median": 1.0}}
    )
    write_run(folder, run)
    return [run_file(folder, "rte", "base", 0).read_bytes()]


def _read_glue_run(path: Path) -> None:
    from isotrope.finetuning.runs import read_runs

    (path.parent / "runs").mkdir(exist_ok=True)
    path.replace(path.parent / "runs/a.json")
    read_runs(path.parent)


def _read_beside(path: Path) -> None:
    from isotrope.report.advice import read_attachments
    from isotrope.report.html import script_json

    folder = path.parent / "beside"
    folder.mkdir(exist_ok=True)
    for name in ("advice.json", "sts.json", "sts.csv"):
        shutil.copyfile(path, folder / name)
    script_json(read_attachments(folder))


_ADVICE = (
    b'{"advice": [], "scores": [{"set": "sts13", "repair": "none", "spearman": 80.6, "x": [1]}], "differences": null}'
)
TARGETS["sentence pairs"] = Target("", _plain(_PAIRS), _read_pairs)
TARGETS["glue task"] = Target("", _plain(_GLUE), _read_glue)
TARGETS["beir corpus"] = Target(
    "",
    _plain(b'{"_id": "d", "title": "Rain", "text": "falls."}\n{"_id": 3, "text": "x"}\n'),
    partial(_read_beir, "corpus.jsonl"),
)
TARGETS["beir judgements"] = Target(
    "", _plain(b"query-id\tcorpus-id\tscore\nq\td\t1\n", b"q 0 d 1\n"), partial(_read_beir, "qrels/test.tsv")
)
TARGETS["study part"] = Target("", _study_seed, _read_study)
TARGETS["glue run"] = Target("", _glue_run_seed, _read_glue_run)
TARGETS["beside a run"] = Target("", _plain(_ADVICE, b"set,repair,spearman\nsts13,none,80.6\n"), _read_beside)


# Weights in one file, and the grammar


def _gguf(_: Path) -> list[bytes]:
    import tempfile

    import gguf

    with tempfile.TemporaryDirectory() as place:
        writer = gguf.GGUFWriter(f"{place}/a.gguf", "llama")
        writer.add_uint32("x.count", 3)
        writer.add_uint32("x.block_count", 3)
        writer.add_array("x.words", ["a", "bc"])
        writer.add_array("x.numbers", [1.0, 2.0])
        writer.add_tensor("rows", ROWS)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return [Path(place, "a.gguf").read_bytes()]


def _read_gguf(path: Path) -> None:
    from isotrope.sources.models.gguf import check_gguf

    check_gguf(path)


def _read_config(path: Path) -> None:
    from isotrope.sources.models.model_files import check_config_file

    (path.parent / "model").mkdir(exist_ok=True)
    shutil.copyfile(path, path.parent / "model/config.json")
    check_config_file(path.parent / "model")


def _read_gate(path: Path) -> None:
    from isotrope import gate
    from isotrope.findings import Findings, Reading

    found = Findings([Reading(0, "mean_cosine", 0.4, 0.3, 0.5), Reading(1, "mean_cosine", float("nan"))], layers=[0, 1])
    parsed = gate.parse(path.read_bytes().decode("utf-8", "surrogateescape"))
    gate.check_layers([parsed], found.layers)
    gate.check(parsed, found)


TARGETS["gguf"] = Target(".gguf", _gguf, _read_gguf)
TARGETS["model config"] = Target(
    "", _plain(b'{"num_hidden_layers": 3, "text_config": {"n_layer": 2}, "depths": [2, 2], "x": 1e5}'), _read_config
)
TARGETS["gate"] = Target(
    "",
    _plain(
        b"layer[0].mean_cosine > 0.5",
        b"layer[-2].mean_cosine.low <= -1e-3",
        b"layer[ 0 ] . mean_cosine==.5",
    ),
    _read_gate,
)
