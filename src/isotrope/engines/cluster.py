"""A Ray cluster: one that runs already, or one of its own on this machine; and the workers on it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from isotrope.errors import InputError, MissingExtra

#: Seconds to wait for a port to answer, for Ray to start or to be joined, and for workers to be given.
_PORT, _START, _WORKERS = 5.0, 60.0, 60.0


@contextmanager
def joined(address: str | None, workers: int | None) -> Iterator[Any]:
    """The module `ray`, connected; what was started or joined here is left again, what was there before stays.

    address: "auto" for the cluster that runs here, or where it is; None for RAY_ADDRESS, without that one of its own.
    """
    ray = _ray()
    if ray.is_initialized():
        yield ray
        return
    _start(ray, address or os.environ.get("RAY_ADDRESS") or "local", workers)
    try:
        yield ray
    finally:
        ray.shutdown()


def _ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is told to anybody
    # What Ray says of lost workers stays in its log files: it would print it on standard output, between ours.
    os.environ.setdefault("RAY_DEDUP_LOGS_SKIP_REGEX", ".*")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "1")  # a worker without a GPU of its own sees none
    try:
        import ray
    except ImportError as error:
        raise MissingExtra("ray", "ray", "the engine ray") from error
    return ray


def _start(ray: Any, address: str, workers: int | None) -> None:
    """Start Ray, or connect within a bounded time: Ray itself waits minutes for a cluster that does not answer."""
    options: dict[str, Any] = {"address": address, "log_to_driver": False, "logging_level": "error"}
    if address == "local":
        # In this very thread: the processes that Ray starts end with the thread that started them.
        options |= {"num_cpus": max(workers or 0, os.cpu_count() or 1), "include_dashboard": False}
        failure = _connected(ray, options)
        what = "Ray cannot be started here"
    else:
        _refuse_silent(address)
        failures: list[str | None] = []
        thread = threading.Thread(target=lambda: failures.append(_connected(ray, options)), daemon=True)
        thread.start()
        thread.join(_START)
        failure = failures[0] if failures else f"no answer in {_START:.0f} seconds"
        what = f"no Ray cluster can be reached at {address!r}"
    if failure is not None:
        raise InputError(f"{what} ({failure}); check it with `ray status`, or leave --engine ray out.")


def _connected(ray: Any, options: dict[str, Any]) -> str | None:
    """None, or why there is no connection."""
    stopping = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except (Exception, SystemExit) as error:  # SystemExit is what Ray leaves with where it gives up
        return " ".join(str(error).split()).rstrip(".")[:200] or type(error).__name__
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stopping)  # Ray has put its own in its place
    return None


def _refuse_silent(address: str) -> None:
    host, _, port = address.partition("://")[2 if "://" in address else 0].rpartition(":")
    if not host or not port.isdigit():
        if address != "auto":
            raise InputError(f"the address {address!r} is none of a Ray cluster; say auto, or HOST:PORT of its head.")
        return
    try:
        socket.create_connection((host, int(port)), _PORT).close()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"no Ray cluster answers at {address!r} ({getattr(error, 'strerror', None) or error}); check the address, "
            "or start one with `ray start --head`."
        ) from error


def number_of_workers(ray: Any, asked: int | None, gpus: float) -> int:
    """How many workers of one CPU, and so many GPUs each, there are to be: those asked for, or all that have room."""
    there = ray.cluster_resources()
    room = {"CPU": int(there.get("CPU", 0))}
    if gpus:
        room["GPU"] = int(there.get("GPU", 0) / gpus)
    scarce = min(room, key=room.__getitem__)
    most = room[scarce]
    if most < (asked or 1):
        raise InputError(
            f"the cluster has room for {most} workers ({there.get(scarce, 0):g} {scarce}s), got {asked or 1}; "
            "ask for fewer with --workers, or for a smaller share with --gpus-per-worker."
        )
    return asked or most


def ready(ray: Any, actors: list[Any]) -> list[Any]:
    """Those of the actors that could be started in a bounded time, at least one."""
    asked = {actor.ping.remote(): actor for actor in actors}
    found, waiting = ray.wait(list(asked), num_returns=len(asked), timeout=_WORKERS)
    if not found:
        raise InputError(
            f"none of {len(actors)} workers could be started in {_WORKERS:.0f} seconds: the cluster is busy, or "
            "isotrope is not installed on its machines; wait, or ask for fewer with --workers."
        )
    for late in waiting:
        ray.kill(asked[late])
    return [asked[one] for one in found]
