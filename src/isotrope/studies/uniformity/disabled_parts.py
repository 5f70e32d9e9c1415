"""A transformer without its skip connections, or without its MLPs: what keeps rows from becoming all alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from isotrope.errors import InputError
from isotrope.studies.transformer_block import find_blocks


class _Names(NamedTuple):
    """Modules of a block: the last ones of attention and of the MLP, whose output is added to what went in.

    middle: the norm between them, which the MLP's addend comes out of where it norms after (BERT), or goes into where
    it norms before (Llama).
    """

    attention: str
    middle: str
    after: bool
    mlp: str


#: The kinds of blocks that are known: BERT and its kin, DistilBERT, Llama and its kin, GPT-2.
_KINDS = (
    _Names("attention.output.dense", "attention.output.LayerNorm", True, "output.dense"),
    _Names("attention.out_lin", "sa_layer_norm", True, "ffn"),
    _Names("self_attn.o_proj", "post_attention_layernorm", False, "mlp"),
    _Names("attn.c_proj", "ln_2", False, "mlp"),
)


@contextmanager
def disable_parts(model: Any, *, skip: bool = False, mlp: bool = False) -> Iterator[None]:
    """Disable the skip connections (`skip`), the MLP (`mlp`), or both, in all blocks of a model in eval mode.

    Without skip connections x + f(x) is f(x). Without the MLP x + g(x) is x, also where there are no others: pure
    self-attention (Dong et al. 2021).
    """
    hooks = [hook for block in find_blocks(model)[1] for hook in _add_hooks(model, block, skip, mlp)]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _add_hooks(model: Any, block: Any, skip: bool, mlp: bool) -> Iterator[Any]:
    modules = dict(block.named_modules())
    names = next((kind for kind in _KINDS if {kind.attention, kind.middle, kind.mlp} <= modules.keys()), None)
    if names is None:
        raise InputError(f"the parts of the blocks of {type(model).__name__} are not known; try BERT, Llama or GPT-2.")
    states: dict[str, Any] = {}

    def keep_input(_: Any, args: Any, kwargs: Any) -> None:
        states["input"] = args[0] if args else kwargs["hidden_states"]

    def keep_middle(_: Any, args: Any, out: Any) -> None:
        states["middle"] = out if names.after else args[0]

    yield block.register_forward_pre_hook(keep_input, with_kwargs=True)
    yield modules[names.middle].register_forward_hook(keep_middle)
    if skip:
        yield modules[names.attention].register_forward_hook(lambda _, __, out: out - states["input"])
    if mlp:
        yield modules[names.mlp].register_forward_hook(lambda _, __, out: out * 0.0)
    elif skip:
        yield modules[names.mlp].register_forward_hook(lambda _, __, out: out - states["middle"])
