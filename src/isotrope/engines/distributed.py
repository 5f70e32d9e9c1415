"""Statistics of the ranks of a torch.distributed job added up, for those who measure inside a training run."""

from __future__ import annotations

from collections.abc import Mapping
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

    data: bytes = b""
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
        ```python
        moments = isotrope.Moments.empty(768)
        for hidden in my_share_of_the_batches:
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
    result = _unpack(type(statistic), _broadcast(_pack(total) if rank == 0 else _Packed(), group))
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


def _tensor(data: bytes, group: Any) -> Any:
    import torch

    return torch.frombuffer(bytearray(data), dtype=torch.uint8).to(_device(group))


def _header(packed: _Packed, group: Any) -> Any:
    """What goes before the bytes: how many they are, and whether they are a refusal."""
    import torch

    return torch.tensor([len(packed.data), packed.refused], dtype=torch.int64, device=_device(group))


def _global_rank(rank: int, group: Any) -> int:
    """The number of a group's rank among all processes."""
    import torch.distributed as dist

    return rank if group is None else int(dist.get_global_rank(group, rank))


def _send(packed: _Packed, to: int, group: Any) -> None:
    import torch.distributed as dist

    there = _global_rank(to, group)
    dist.send(_header(packed, group), there, group=group)
    for start in range(0, len(packed.data), _PIECE):
        dist.send(_tensor(packed.data[start : start + _PIECE], group), there, group=group)


def _receive(source: int, group: Any) -> _Packed:
    import torch
    import torch.distributed as dist

    there, head, parts = _global_rank(source, group), _header(_Packed(), group), []
    dist.recv(head, there, group=group)
    count, refused = head.tolist()
    for start in range(0, count, _PIECE):
        part = torch.empty(min(_PIECE, count - start), dtype=torch.uint8, device=_device(group))
        dist.recv(part, there, group=group)
        parts.append(part.cpu().numpy().tobytes())
    return _Packed(b"".join(parts), bool(refused))


def _broadcast(packed: _Packed, group: Any) -> _Packed:
    """What the first rank of the group has, on every rank."""
    import torch
    import torch.distributed as dist

    first, head, parts = _global_rank(0, group), _header(packed, group), []
    dist.broadcast(head, first, group=group)
    count, refused = head.tolist()
    for start in range(0, count, _PIECE):
        size = min(_PIECE, count - start)
        part = (
            _tensor(packed.data[start : start + size], group)
            if packed.data
            else torch.empty(size, dtype=torch.uint8, device=_device(group))
        )
        dist.broadcast(part, first, group=group)
        if not packed.data:
            parts.append(part.cpu().numpy().tobytes())
    return packed if packed.data else _Packed(b"".join(parts), bool(refused))
