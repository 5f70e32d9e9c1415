"""One small Ray for each module of tests."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    ray = pytest.importorskip("ray")
    # Nothing is told to anybody; and workers are not to wait for whatever else runs on the machine.
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_worker_niceness="0")
    ray.init(
        address="local",  # whatever else runs on the machine
        num_cpus=8,
        include_dashboard=False,
        object_store_memory=300_000_000,
        log_to_driver=False,
        logging_level="error",
    )
    yield
    ray.shutdown()
