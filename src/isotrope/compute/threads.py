"""Threads: pools in which each thread computes on one core, and limits for the libraries' own threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController, threadpool_limits

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

#: Parts of a piece of work below which threads do not pay.
_FEW_PARTS = 4


@contextmanager
def open_pool(threads: int | None = None) -> Iterator[Executor]:
    """A pool whose threads compute matrix products on one core each: what one gives depends on no other.

    Args:
        threads: how many, by default as many as numpy's own products would use.

    Examples:
        >>> with open_pool() as pool:
        ...     list(pool.map(abs, [-1, 2]))
        [1, 2]
    """
    if threads is not None:
        with limit_threads(), ThreadPoolExecutor(threads) as pool:
            yield pool
        return
    blas = _find_libraries("blas")
    most = max((int(library["num_threads"]) for library in blas.info()), default=os.cpu_count() or 1)
    with blas.limit(limits=1), ThreadPoolExecutor(most) as pool:
        yield pool


@cache
def open_shared_pool(threads: int) -> Executor:
    """A pool that is kept from one call to the next: to start a thread takes as long as a small matrix."""
    return ThreadPoolExecutor(threads, "isotrope")


if hasattr(os, "register_at_fork"):  # a copy of the process has none of its threads
    os.register_at_fork(after_in_child=open_shared_pool.cache_clear)


def limit_threads(user_api: str | None = "blas") -> AbstractContextManager[Any]:
    """Let the libraries of matrix products compute on one core while the context lasts.

    Args:
        user_api: which libraries, as threadpoolctl names them; None for all.
    """
    limit: AbstractContextManager[Any] = threadpool_limits(1, user_api=user_api)
    return limit


def limit_own_thread() -> AbstractContextManager[Any]:
    """Let OpenMP compute on one core what the calling thread asks for; other threads keep their number."""
    limit: AbstractContextManager[Any] = _find_libraries("openmp").limit(limits=1)
    return limit


def map_parts(function: Callable[[_Part], _Result], parts: Sequence[_Part]) -> list[_Result]:
    """Apply a function to parts of a large piece of work on all cores, each part on one; the results are in order.

    Not to be called from within such a part. Few parts are computed one after the other.

    Examples:
        >>> map_parts(abs, [-1, 2])
        [1, 2]
    """
    cores = os.cpu_count() or 1
    if cores == 1 or len(parts) < _FEW_PARTS:
        return list(map(function, parts))
    with _find_libraries("blas").limit(limits=1):
        return list(open_shared_pool(cores).map(function, parts))


def slice_rows(n: int, size: int) -> list[slice]:
    """Slices of at most `size` of n rows, always the same ones, whatever the number of threads.

    Examples:
        >>> slice_rows(5, 2)
        [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


@cache
def _find_libraries(user_api: str) -> Any:
    """The loaded libraries of a kind, looked up once: it takes longer than a small problem."""
    return ThreadpoolController().select(user_api=user_api)
