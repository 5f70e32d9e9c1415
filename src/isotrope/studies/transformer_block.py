"""One transformer block on its own, and what its attention does to given rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, TypeAlias

from isotrope.errors import InputError

#: Names of the modules that make queries and keys; the last one makes queries, keys and values in one.
_QUERY, _KEY, _ALL = ("query", "q_proj", "q_lin", "q"), ("key", "k_proj", "k_lin", "k"), "c_attn"

#: What a block is given besides its rows.
BlockArguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]

#: How far recomputed scores may be from those of the block, as a share of the largest, to count as the same.
_SAME = 1e-3


@dataclass
class Activations:
    """The activations of a block on one sequence of t rows of width d.

    Args:
        output: (t, d).
        scores: before the softmax, (heads, t, t); None where attention hides them.
        softmax: the weights of attention, (heads, t, t).
        query: (heads, t, d_k), before a rotation by position.
        key: (heads, t, d_k), before a rotation by position.
        query_input: the rows that queries are computed from, (t, d).
    """

    output: Any = None
    scores: Any = None
    softmax: Any = None
    query: Any = None
    key: Any = None
    query_input: Any = None


#: Changes the scores of attention before the softmax, (heads, t, t).
ScoreChange: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True)
class TransformerBlock:
    """One block of a model.

    Args:
        name: of the model and the block.
        module: the block itself.
        table: rows that inputs are drawn from, (v, d): the input embeddings of a text model, patches or frames.
        heads: the number of attention heads.
        max_rows: the longest sequence.
        find_arguments: runs the model on a sequence of t rows and returns what it gives the block besides the rows,
            such as a mask or positions.
        min_rows: the shortest sequence, the same as the longest where the block takes sequences of one length alone.
    """

    name: str
    module: Any = field(repr=False)
    table: Any = field(repr=False)
    heads: int
    max_rows: int
    find_arguments: Callable[[int], BlockArguments] = field(repr=False)
    min_rows: int = 1

    def __call__(self, rows: Any, change: ScoreChange | None = None) -> Activations:
        """The block on rows (t, d) of one sequence; change: what is done to the scores before the softmax."""
        import torch

        seen = Activations()
        with torch.inference_mode():
            args, kwargs = self.find_arguments(len(rows))
            with _record_activations(self.module, seen, self.heads, change):
                out = self.module(rows[None], *args, **kwargs)
        seen.output = (out[0] if isinstance(out, tuple) else out).reshape(rows.shape)
        return seen

    def project(self, rows: Any) -> tuple[Any, Any] | None:
        """W_Q x and W_K x of rows (n, d) without biases, (heads, n, d_k); None where both come out of one module."""
        import torch

        modules = [_find_module(self.module, names) for names in (_QUERY, _KEY)]
        if any(module is None for module in modules):
            return None
        with torch.inference_mode():
            zero = torch.zeros_like(rows[:1])
            query, key = (_split_heads(module(rows) - module(zero), self.heads) for module in modules)
        return query, key


def catch_arguments(block: Any, run: Callable[[int], Any]) -> Callable[[int], BlockArguments]:
    """Make a function from a number of rows to what a block is given besides them, such as a mask or positions.

    Args:
        block: of a model.
        run: runs the model, or the stack that the block is of, on a sequence of so many rows.
    """

    @cache
    def find_arguments(length: int) -> BlockArguments:
        caught: list[BlockArguments] = []
        hook = block.register_forward_pre_hook(lambda _, *given: caught.append(given), with_kwargs=True)
        try:
            run(length)
        finally:
            hook.remove()
        args, kwargs = caught[0]
        return args[1:], {name: value for name, value in kwargs.items() if name != "hidden_states"}

    return find_arguments


def count_blocks(loaded: Any) -> int:
    """How many blocks a loaded model has."""
    return len(find_blocks(loaded.model)[1])


def find_blocks(model: Any) -> tuple[str, Any]:
    """The list of a model's blocks, and its name: of all lists of modules the one with most parameters."""
    import torch

    lists = [(name, m) for name, m in model.named_modules() if isinstance(m, torch.nn.ModuleList)]
    if not lists:
        raise InputError(f"{type(model).__name__} has no list of blocks; name a transformer.")
    return max(lists, key=lambda item: sum(p.numel() for p in item[1].parameters()))


@contextmanager
def _record_activations(block: Any, seen: Activations, heads: int, change: ScoreChange | None) -> Iterator[None]:
    """Record the activations of a block, and change the scores of its attention."""
    from torch.overrides import TorchFunctionMode

    class Softmax(TorchFunctionMode):  # type: ignore[misc]
        """Keeps the scores that the first softmax over a square map gets, and what it makes of them."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            first = getattr(func, "__name__", "") == "softmax" and args[0].ndim == 4 and seen.softmax is None
            if first and change is not None:
                args = (change(args[0][0])[None], *args[1:])
            out = func(*args, **(kwargs or {}))
            if first:
                seen.scores, seen.softmax = args[0][0], out[0]
            return out

    def keep_query(_: Any, args: Any, out: Any) -> None:
        if seen.query is None:
            seen.query_input, seen.query = args[0][0], _split_heads(out[0], heads)

    def keep_key(_: Any, __: Any, out: Any) -> None:
        seen.key = _split_heads(out[0], heads) if seen.key is None else seen.key

    def keep_both(_: Any, args: Any, out: Any) -> None:
        query, key, _value = out[0].chunk(3, dim=-1)
        seen.query_input, seen.query, seen.key = args[0][0], _split_heads(query, heads), _split_heads(key, heads)

    hooks = []
    for names, hook in ((_QUERY, keep_query), (_KEY, keep_key), ((_ALL,), keep_both)):
        module = _find_module(block, names)
        if module is not None:
            hooks.append(module.register_forward_hook(hook))
    try:
        with Softmax():
            yield
    finally:
        for handle in hooks:
            handle.remove()


def _find_module(block: Any, names: tuple[str, ...]) -> Any:
    """The first module of a block with one of these names."""
    for name, module in block.named_modules():
        if name.rpartition(".")[2] in names:
            return module
    return None


def _split_heads(rows: Any, heads: int) -> Any:
    """(t, h d_k) -> (h, t, d_k); keys may have fewer heads than queries, of the same d_k."""
    width = rows.shape[-1]
    return rows.reshape(len(rows), heads if width % heads == 0 else 1, -1).transpose(0, 1)


def has_plain_scores(seen: Activations) -> bool:
    """Whether the scores are QKᵀ/√d_k and nothing else: no mask, no rotation by position."""
    if seen.scores is None or seen.query is None or seen.query.shape != seen.key.shape:
        return False
    product = seen.query @ seen.key.transpose(1, 2) / seen.query.shape[-1] ** 0.5
    return bool((product - seen.scores).abs().max() <= _SAME * product.abs().max())
