"""The files of which the documentation speaks, small: vectors, a corpus, task data, images and a saved repair."""

from __future__ import annotations

import json
from pathlib import Path
from pydoc_data.topics import topics

import numpy as np
import pandas as pd

from isotrope import Centering
from testkit.small_glue import write_task

#: Lines of the Python manual that are long enough to be sentences.
LINES = [line.strip() for text in topics.values() for line in text.splitlines() if len(line.split()) > 8]

#: Rows of the vectors, and of a repair for sentences of the embedded model.
WIDTH, EMBEDDED_WIDTH = 16, 384


def write_inputs(folder: Path) -> None:
    """Write what the code blocks of the documentation read, under the names that they use."""
    rng = np.random.default_rng(0)
    np.save(folder / "embeddings.npy", rng.normal(size=(300, WIDTH)) + 0.5)
    queries = rng.normal(size=(20, WIDTH)) + 0.5
    np.save(folder / "queries.npy", queries)
    for name in ("baseline", "now"):
        np.save(folder / f"{name}.npy", np.random.default_rng(len(name)).normal(size=(300, WIDTH)) + 0.5)
    pd.DataFrame({"vector": list(queries)}).to_parquet(folder / "queries.parquet")
    judged = "".join(f"{i}\t{3 * i}\t1\n" for i in range(20))
    (folder / "qrels.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", "utf-8")
    (folder / "corpus.txt").write_text("\n".join(LINES[:260]), "utf-8")
    Centering().fit(rng.normal(size=(50, EMBEDDED_WIDTH))).save(folder / "saved-repair")
    _write_pairs(folder / "DIR", rng)
    _write_documents(folder / "DIR")
    write_task(folder / "DIR", "rte", rows=24, validation=8)
    _write_photos(folder / "photos", rng)


def _write_pairs(folder: Path, rng: np.random.Generator) -> None:
    folder.mkdir()
    # More sentences than a row of the embedded model has columns: whitening needs them.
    pairs = zip(LINES[:210], LINES[210:420], rng.integers(0, 6, 210), strict=True)
    lines = [f"PAD\tPAD\tPAD\tPAD\t{gold}\t{a}\t{b}\n" for a, b, gold in pairs]
    (folder / "sts-b-test.csv").write_text("".join(lines), "utf-8")


def _write_documents(folder: Path) -> None:
    documents = [{"_id": f"d{i}", "title": "", "text": text} for i, text in enumerate(LINES[:60])]
    queries = [{"_id": f"q{i}", "text": " ".join(text.split()[:5])} for i, text in enumerate(LINES[:10])]
    for name, records in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, records)), "utf-8")
    (folder / "qrels").mkdir()
    judged = "".join(f"q{i}\td{i}\t1\n" for i in range(10))
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", "utf-8")


def _write_photos(folder: Path, rng: np.random.Generator) -> None:
    from PIL import Image

    folder.mkdir()
    for i in range(3):
        Image.fromarray(rng.integers(0, 255, (80, 60, 3), dtype=np.uint8)).save(folder / f"{i}.png")
