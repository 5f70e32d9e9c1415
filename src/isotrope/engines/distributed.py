"""Statistics of the ranks of a torch.distributed job added up, for those who measure inside a training run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, Protocol, TypeVar, cast

from isotrope.errors import MergeError

#: Bytes that are sent at once.
_PIECE = 1 << 28


class Statistic(Protocol):
    """What can be added up and written as arrays: moments, samples, token and sequence statistics, collections."""

    def __add__(self, other: Any) -> Any: ...

    def arrays(self) -> dict[str, Any]: ...

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any]) -> Any: ...


S = TypeVar("S", bound=Statistic)


class _Packed(NamedTuple):
    """A statistic as bytes of the safetensors format, or where it was refused why, as text."""

    data: bytes
    refused: bool = False


def merge_ranks(statistic: S, group: Any = None) -> S:
    """Add up the statistics of all ranks of a torch.distributed job; every rank gets the same sum.

    They are added as a tree in the order of the ranks, over gloo or nccl. A rank holds no more than four at a time: its
    own, the sum so far, another one, and their sum or its bytes.

    Args:
        statistic: That of this rank: anything with `+` and `arrays()`.
        group: The group of processes; None for all.

    Returns:
        The sum, as `all_reduce` gives for tensors.

    Raises:
        MergeError: On every rank, if some of them cannot be added.

    Examples:
        ```py
        moments = isotrope.Moments.empty(768)
        for hidden in batches:  # those that this rank has read
            moments += isotrope.Moments.of(isotrope.prepare_rows(hidden))
        moments = isotrope.merge_ranks(moments)
        ```
    """
    import torch.distributed as dist

    rank, size = dist.get_rank(group), dist.get_world_size(group)
    total: S | MergeError = statistic
    step = 1
    while step < size:
        if rank % (2 * step):
            _send(_pack(total), rank - step, group)
            break
        if rank + step < size:
            total = _sum(total, _unpack(type(statistic), _receive(rank + step, group)))
        step *= 2
    packed = _pack(total) if rank == 0 else None
    del total  # torch may keep what was sent for a moment longer
    result = _unpack(type(statistic), _broadcast(packed, group))
    if isinstance(result, MergeError):
        raise result
    return result


def _sum(one: S | MergeError, other: S | MergeError) -> S | MergeError:
    """The sum, or the first reason why there is none."""
    for part in (one, other):
        if isinstance(part, MergeError):
            return part
    try:
        return cast(S, cast(S, one) + other)
    except MergeError as error:
        return error


def _pack(statistic: S | MergeError) -> _Packed:
    if isinstance(statistic, MergeError):
        return _Packed(str(statistic).encode(), refused=True)
    import numpy as np
    from safetensors.numpy import save

    return _Packed(save({name: np.ascontiguousarray(array) for name, array in statistic.arrays().items()}))


def _unpack(kind: type[S], packed: _Packed) -> S | MergeError:
    if packed.refused:
        return MergeError(packed.data.decode())
    from safetensors.numpy import load

    return cast(S, kind.from_arrays(load(packed.data)))


def _device(group: Any) -> Any:
    """Where tensors must be for the group's backend."""
    import torch
    import torch.distributed as dist

    return torch.device("cuda", torch.cuda.current_device()) if dist.get_backend(group) == "nccl" else "cpu"


def _global_rank(rank: int, group: Any) -> int:
    """The number of a group's rank among all processes."""
    import torch.distributed as dist

    return rank if group is None else int(dist.get_global_rank(group, rank))


def _send(packed: _Packed, to: int, group: Any) -> None:
    import torch.distributed as dist

    _transfer(packed, partial(dist.send, dst=_global_rank(to, group), group=group), _device(group))


def _receive(source: int, group: Any) -> _Packed:
    import torch.distributed as dist

    return _transfer(None, partial(dist.recv, src=_global_rank(source, group), group=group), _device(group))


def _broadcast(packed: _Packed | None, group: Any) -> _Packed:
    """What the first rank of the group has, on every rank; None on the others."""
    import torch.distributed as dist

    return _transfer(packed, partial(dist.broadcast, src=_global_rank(0, group), group=group), _device(group))


def _transfer(packed: _Packed | None, move: Callable[[Any], object], device: Any) -> _Packed:
    """Move a header (how many bytes, whether they are a refusal) and then the bytes, piece by piece.

    Args:
        packed: What this rank has; None where it is another's, and `move` fills the tensors.
        move: Sends, receives or broadcasts a tensor.
        device: Where the tensors must be.
    """
    import torch

    facts = [0, 0] if packed is None else [len(packed.data), packed.refused]
    head = torch.tensor(facts, dtype=torch.int64, device=device)
    move(head)
    count, refused = head.tolist()
    parts = []
    for start in range(0, count, _PIECE):
        size = min(_PIECE, count - start)
        if packed is None:
            part = torch.empty(size, dtype=torch.uint8, device=device)
            move(part)
            parts.append(part.cpu().numpy().tobytes())
        else:
            data = bytearray(packed.data[start : start + size])
            move(torch.frombuffer(data, dtype=torch.uint8).to(device))
    return _Packed(b"".join(parts), bool(refused)) if packed is None else packed
