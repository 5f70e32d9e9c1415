"""Statistics of two and three processes of torch.distributed, added up: as if one had seen all rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import Collection, Moments, Wanted, prepare_rows
from isotrope.storage.files import read_arrays

pytest.importorskip("torch")

ROWS = np.random.default_rng(2).normal(size=(900, 6)) * np.arange(1, 7) + 50.0

#: Every rank has its share of the rows; the last one then brings moments of another width, which none may accept.
RANK = """
import sys
import tracemalloc
from datetime import timedelta
from pathlib import Path
import numpy as np
import torch.distributed as dist
from isotrope.engines.distributed import merge_ranks
from isotrope.errors import MergeError
from isotrope.sources.vectors.source import ArraySource
from isotrope.statistics import prepare_rows
from isotrope.statistics import Collection, Moments, Wanted
from isotrope.storage.files import write_arrays

folder, rank, size = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size,
                        timeout=timedelta(seconds=240))
source = ArraySource(np.load(folder / "rows.npy"), batch_rows=50)
collection, moments = Collection(Wanted(sample=100)), Moments.empty(6)
for number, batch in enumerate(source.batches()):
    if number % size == rank:
        collection.update(batch)
        moments += Moments.of(prepare_rows(batch.layers[0]))
write_arrays(folder / f"moments{rank}.safetensors", merge_ranks(moments).arrays())
write_arrays(folder / f"collection{rank}.safetensors", merge_ranks(collection).arrays())
try:
    merge_ranks(Moments.empty(7 if rank == size - 1 else 6))
except MergeError as error:
    (folder / f"refused{rank}").write_text(str(error))
wide = Moments.empty(700)
tracemalloc.start()
merge_ranks(wide)
peak = tracemalloc.get_traced_memory()[1]
(folder / f"held{rank}").write_text(str(1 + peak / sum(array.nbytes for array in wide.arrays().values())))
dist.barrier()
dist.destroy_process_group()
"""


@pytest.mark.parametrize("size", [2, pytest.param(3, marks=pytest.mark.long)])
def test_as_if_one_had_seen_all_rows(size: int, tmp_path: Path) -> None:
    np.save(tmp_path / "rows.npy", ROWS)
    ranks = [
        subprocess.Popen([sys.executable, "-c", RANK, str(tmp_path), str(rank), str(size)], stderr=subprocess.PIPE)
        for rank in range(size)
    ]
    for rank in ranks:
        _, said = rank.communicate()
        assert rank.returncode == 0, said.decode()
    found = [Moments.from_arrays(read_arrays(tmp_path / f"moments{rank}.safetensors")) for rank in range(size)]
    whole = Moments.of(prepare_rows(ROWS))
    assert found[0].n == len(ROWS)
    np.testing.assert_allclose(found[0].mean, ROWS.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found[0].scatter / (len(ROWS) - 1), np.cov(ROWS.T), rtol=1e-9)
    np.testing.assert_allclose(found[0].eigenvalues, whole.eigenvalues, rtol=1e-9)
    for other in found[1:]:
        np.testing.assert_array_equal(other.scatter, found[0].scatter)
    all_rows = Collection(Wanted(sample=100))
    for batch in ArraySource(ROWS, batch_rows=50).batches():
        all_rows.update(batch)
    sample = all_rows.layer(0).sample
    for rank in range(size):
        collection = Collection.from_arrays(read_arrays(tmp_path / f"collection{rank}.safetensors"))
        there = collection.layer(0).sample
        assert sample is not None
        assert there is not None
        np.testing.assert_array_equal(there.values, sample.values)
        assert (collection.batches, collection.counts) == (18, {"rows": 900})
    assert max(float((tmp_path / f"held{rank}").read_text()) for rank in range(size)) < 4.1
    said = {(tmp_path / f"refused{rank}").read_text() for rank in range(size)}
    assert len(said) == 1
    assert "width" in said.pop()
