"""Blocks of rows side by side, on as many threads as numpy's own products would use."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager

from threadpoolctl import threadpool_info, threadpool_limits


@contextmanager
def threads() -> Iterator[Executor]:
    """A pool in which each thread takes its products on one core: what a block gives depends on no other thread."""
    limits = [int(library["num_threads"]) for library in threadpool_info() if library["user_api"] == "blas"]
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(max(limits, default=os.cpu_count() or 1)) as pool:
        yield pool


def blocks(n: int, size: int) -> list[slice]:
    """Slices of at most `size` of n rows, always the same ones, whatever the number of threads.

    >>> blocks(5, 2)
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
