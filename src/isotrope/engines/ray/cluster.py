"""A Ray cluster: one that runs already, or one of its own on this machine; and the workers on it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from isotrope.engines.ray.merge_tree import Merger
from isotrope.engines.ray.replica import Replica
from isotrope.errors import InputError, MissingExtra, describe_error

#: Seconds to wait for a port to answer, for Ray to start or to be joined, and for workers to be given.
_PORT, _START, _WORKERS = 5.0, 60.0, 60.0

#: Times that a task whose worker was lost is begun again: one that kills every worker must not go on for ever, and one
#: lost machine alone may use up half a dozen.
TRIES = 20

#: Workers for each of those who add up what they make.
MERGED = 16


@contextmanager
def connect(address: str | None, workers: int | None) -> Iterator[Any]:
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


@contextmanager
def start_workers(
    address: str | None, workers: int | None, gpus_per_worker: float
) -> Iterator[tuple[Any, dict[Any, str], list[Any]]]:
    """Start workers on a cluster.

    Returns:
        The module `ray`, replicas with the life of each, and those who add up what they make.
    """
    with connect(address, workers) as ray:
        count = count_workers(ray, workers, gpus_per_worker)
        again = {"max_restarts": -1, "max_task_retries": TRIES}
        # They hold no CPU, so that one whose machine is lost finds a place where all CPUs have their workers already.
        reader = ray.remote(num_cpus=0, num_gpus=gpus_per_worker, **again)(Replica)
        merger = ray.remote(num_cpus=0, **again)(Merger)
        where = ["DEFAULT"] * count if gpus_per_worker else place_workers(ray, count)  # Ray knows which GPUs are free
        readers = [reader.options(scheduling_strategy=place).remote() for place in where]
        mergers = [merger.remote() for _ in range(-(-count // MERGED))]
        try:
            yield ray, start_actors(ray, readers), list(start_actors(ray, mergers))
        finally:
            for actor in (*readers, *mergers):
                ray.kill(actor)


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
        failure = _start_ray(ray, options)
        what = "Ray cannot be started here"
    else:
        _check_answers(address)
        failures: list[str | None] = []
        thread = threading.Thread(target=lambda: failures.append(_start_ray(ray, options)), daemon=True)
        thread.start()
        thread.join(_START)
        failure = failures[0] if failures else f"no answer in {_START:.0f} seconds"
        what = f"no Ray cluster can be reached at {address!r}"
    if failure is not None:
        raise InputError(f"{what} ({failure}); check it with `ray status`, or leave --engine ray out.")


def _start_ray(ray: Any, options: dict[str, Any]) -> str | None:
    """None, or why there is no connection."""
    stopping = signal.getsignal(signal.SIGTERM)
    try:
        ray.init(**options)
    except (Exception, SystemExit) as error:  # SystemExit is what Ray leaves with where it gives up
        return describe_error(error)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, stopping)  # Ray has put its own in its place
    return None


def _check_answers(address: str) -> None:
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


def count_workers(ray: Any, asked: int | None, gpus: float) -> int:
    """How many workers of one CPU, and so many GPUs each, there are to be: those asked for, or all that have room."""
    there = ray.cluster_resources()
    room = {"CPU": sum(map(_cpus, _machines(ray).values()))}
    if gpus:
        room["GPU"] = sum(_count_sharing(has.get("GPU", 0), gpus) for has in _machines(ray).values())
    scarce = min(room, key=room.__getitem__)
    most = room[scarce]
    if most < (asked or 1):
        raise InputError(
            f"the cluster has room for {most} workers ({there.get(scarce, 0):g} {scarce}s), got {asked or 1}; "
            "ask for fewer with --workers, or for a smaller share with --gpus-per-worker."
        )
    return asked or most


def _machines(ray: Any) -> dict[str, dict[str, float]]:
    """What each machine of the cluster has, by its id."""
    return {node["NodeID"]: node["Resources"] for node in ray.nodes() if node["Alive"]}


def _cpus(has: Mapping[str, float]) -> int:
    return int(has.get("CPU", 0))


def _count_sharing(has: float, gpus: float) -> int:
    """How many workers the GPUs of a machine are enough for: a share is of one GPU, and counted in ten-thousandths.

    >>> _count_sharing(3, 0.6), _count_sharing(3, 0.1), _count_sharing(3, 2)
    (3, 30, 1)
    """
    return int(has // gpus) if gpus >= 1 else int(has) * (10_000 // round(gpus * 10_000))


def place_workers(ray: Any, count: int) -> list[Any]:
    """Where each of so many workers is to run, a CPU each, in turn over the machines; elsewhere if that one is lost."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    cpus = {node: _cpus(has) for node, has in _machines(ray).items()}
    turns = [node for turn in range(max(cpus.values())) for node, has in cpus.items() if turn < has]
    return [NodeAffinitySchedulingStrategy(node, soft=True) for node in turns[:count]]


def start_actors(ray: Any, actors: list[Any]) -> dict[Any, Any]:
    """Those of the actors that could be started in a bounded time, at least one, and what they answer."""
    asked = {actor.ping.remote(): actor for actor in actors}
    found, waiting = ray.wait(list(asked), num_returns=len(asked), timeout=_WORKERS)
    answers, why = {}, "the cluster is busy, or isotrope is not installed on its machines"
    for one in found:
        try:
            answers[asked[one]] = ray.get(one)
        except ray.exceptions.RayError as error:
            why = str(error).strip().splitlines()[-1].rstrip(".")[:200]
    if not answers:
        raise InputError(
            f"none of {len(actors)} workers could be started in {_WORKERS:.0f} seconds: {why}; "
            "check the cluster, wait, or ask for fewer with --workers."
        )
    for late in waiting:
        ray.kill(asked[late])
    return answers


def count_unplaced(actors: Iterable[Any]) -> int:
    """How many of the actors are not running and wait to be started; 0 where Ray does not tell."""
    try:
        from ray._private.state import actors as known  # the public way needs Ray's dashboard

        states = {name: facts["State"] for name, facts in known().items()}
    except Exception:  # another version, or a client: then there is only waiting
        return 0
    return sum(states.get(actor._actor_id.hex(), "ALIVE") not in ("ALIVE", "DEAD") for actor in actors)
