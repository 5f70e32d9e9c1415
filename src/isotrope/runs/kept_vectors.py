"""Vectors that an endpoint answered with are kept in the run folder, so that a resumed scan does not ask again."""

from __future__ import annotations

from dataclasses import replace

from isotrope.runs.run import VECTORS, Run
from isotrope.sources.input import Input


def keep_vectors_in_run(reading: Input, run: Run | None) -> Input:
    """Let the vectors of an endpoint be kept in the run folder, unless another folder is named."""
    if reading.endpoint is None or reading.keep_vectors is not None or run is None:
        return reading
    return replace(reading, keep_vectors=run.folder / VECTORS, run_folder=run.folder)
