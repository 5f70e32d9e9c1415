"""Settings that all tests share."""

import os
from collections.abc import Iterator
from pathlib import Path

# Two tests at once on few cores: threads of one product would wait for those of the other, a hundred times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run: a failure is then a change of the code, never of luck.
settings.register_profile(
    "isotrope", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("isotrope")

# Doctests are looked for in every module, and several folders have a conftest of their own.
collect_ignore_glob = ["conftest.py", "*/conftest.py"]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Path]:
    """The folder of the socket of a PostgreSQL server with pgvector, started for the tests that ask for it."""
    from postgres import server

    with server() as folder:
        yield folder
