"""One transformer block on its own, fresh or of a trained model, and what its attention does to given rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from isotrope.errors import InputError

#: Names of the modules that make queries and keys; the last one makes queries, keys and values in one.
_QUERY, _KEY, _ALL = ("query", "q_proj", "q_lin", "q"), ("key", "k_proj", "k_lin", "k"), "c_attn"

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


@dataclass(frozen=True)
class TransformerBlock:
    """One block of a model.

    Args:
        name: of the model and the block.
        model: the whole model.
        number: of the block in the model.
        table: the raw input embeddings, (v, d).
        heads: the number of attention heads.
        max_rows: the longest sequence.
    """

    name: str
    model: Any = field(repr=False)
    number: int
    table: Any = field(repr=False)
    heads: int
    max_rows: int

    def __call__(self, rows: Any) -> Activations:
        """The block on rows (t, d) of one sequence."""
        import torch

        seen = Activations()
        with (
            torch.inference_mode(),
            _isolate_block(self.model, self.number) as block,
            _record_activations(block, rows, seen, self.heads),
        ):
            ids = torch.zeros((1, len(rows)), dtype=torch.long, device=rows.device)
            self.model(input_ids=ids, attention_mask=torch.ones_like(ids))
        return seen

    def project(self, rows: Any) -> tuple[Any, Any] | None:
        """W_Q x and W_K x of rows (n, d) without biases, (heads, n, d_k); None where both come out of one module."""
        import torch

        block = find_blocks(self.model)[1][self.number]
        modules = [_find_module(block, names) for names in (_QUERY, _KEY)]
        if any(module is None for module in modules):
            return None
        with torch.inference_mode():
            zero = torch.zeros_like(rows[:1])
            query, key = (_split_heads(module(rows) - module(zero), self.heads) for module in modules)
        return query, key


def check_block_width(width: int) -> None:
    """Raise an error for a width that is no multiple of heads of 64, unless one smaller head takes it."""
    if width < 1 or (width > 64 and width % 64):
        raise InputError(f"the width of the fresh block is {width}, expected 1 to 64, or a multiple of 64.")


def make_fresh_block(width: int = 768, seed: int = 0, vocabulary: int = 30_522) -> TransformerBlock:
    """A block and an embedding table built and initialised as BERT's (Devlin et al. 2019)."""
    import torch
    from transformers import BertConfig, BertModel

    check_block_width(width)
    heads = max(1, width // 64)
    config = BertConfig(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        num_hidden_layers=1,
        vocab_size=vocabulary,
        attn_implementation="eager",
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = BertModel(config, add_pooling_layer=False).eval()
    table = model.get_input_embeddings().weight.detach()[1:]  # the first is for padding, and zero
    return TransformerBlock(f"fresh, seed {seed}", model, 0, table, heads, config.max_position_embeddings)


def take_block(loaded: Any, number: int) -> TransformerBlock:
    """Take a block of a loaded text model by number, negative ones from the end."""
    model = loaded.model
    table = model.get_input_embeddings().weight.detach()
    if loaded.encoder_decoder or table.shape[1] != model.config.hidden_size:
        what = "has an encoder and a decoder" if loaded.encoder_decoder else "widens its embeddings"
        raise InputError(
            f"{loaded.name} {what}, so that its blocks cannot be given raw embeddings; name another model."
        )
    model.set_attn_implementation("eager")  # the others do not show their scores
    count = len(find_blocks(model)[1])
    if not -count <= number < count:
        raise InputError(f"there is no block {number}: {loaded.name} has blocks 0 to {count - 1}.")
    heads = int(model.config.num_attention_heads)
    max_rows = int(getattr(model.config, "max_position_embeddings", None) or 512)
    return TransformerBlock(f"{loaded.name}, block {number % count}", model, number % count, table, heads, max_rows)


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
def _isolate_block(model: Any, number: int) -> Iterator[Any]:
    """Leave the model only one of its blocks."""
    import torch

    name, blocks = find_blocks(model)
    parent, _, last = name.rpartition(".")
    holder, block = model.get_submodule(parent), blocks[number]
    setattr(holder, last, torch.nn.ModuleList([block]))
    try:
        yield block
    finally:
        setattr(holder, last, blocks)


@contextmanager
def _record_activations(block: Any, rows: Any, seen: Activations, heads: int) -> Iterator[None]:
    """Feed a block these rows instead of its input, and record its activations."""
    from torch.overrides import TorchFunctionMode

    class Softmax(TorchFunctionMode):  # type: ignore[misc]
        """Keeps the scores that the first softmax over a square map gets, and what it makes of them."""

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            out = func(*args, **(kwargs or {}))
            if getattr(func, "__name__", "") == "softmax" and out.ndim == 4 and seen.softmax is None:
                seen.scores, seen.softmax = args[0][0], out[0]
            return out

    def swap(_: Any, args: Any, kwargs: Any) -> Any:
        given = rows[None]
        if args:
            return (given, *args[1:]), kwargs
        return args, {**kwargs, "hidden_states": given}

    def keep(_: Any, __: Any, out: Any) -> None:
        seen.output = (out[0] if isinstance(out, tuple) else out).reshape(rows.shape)

    def keep_query(_: Any, args: Any, out: Any) -> None:
        seen.query_input, seen.query = args[0][0], _split_heads(out[0], heads)

    def keep_key(_: Any, __: Any, out: Any) -> None:
        seen.key = _split_heads(out[0], heads)

    def keep_both(_: Any, args: Any, out: Any) -> None:
        query, key, _value = out[0].chunk(3, dim=-1)
        seen.query_input, seen.query, seen.key = args[0][0], _split_heads(query, heads), _split_heads(key, heads)

    hooks = [block.register_forward_pre_hook(swap, with_kwargs=True), block.register_forward_hook(keep)]
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
