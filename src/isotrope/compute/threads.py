"""Blocks of rows side by side, on as many threads as numpy's own products would use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@contextmanager
def threads() -> Iterator[Executor]:
    """A pool in which each thread takes its products on one core: what a block gives depends on no other thread."""
    blas = _blas()
    most = max((int(library["num_threads"]) for library in blas.info()), default=os.cpu_count() or 1)
    with blas.limit(limits=1), ThreadPoolExecutor(most) as pool:
        yield pool


@cache
def _blas() -> Any:
    """The libraries of numpy's and scipy's products, looked up once: it takes longer than a small problem."""
    return ThreadpoolController().select(user_api="blas")


def blocks(n: int, size: int) -> list[slice]:
    """Slices of at most `size` of n rows, always the same ones, whatever the number of threads.

    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
