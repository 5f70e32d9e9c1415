"""A transformer without its skip connections, or without its MLPs: what keeps rows from becoming all alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

import pandas as pd

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.studies.figures import make_layer_figure
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
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


_MEASURES = "rank_one_residual,token_uniformity,sequence_uniformity,sequence_spectral_median"

#: What is switched off, by name.
_PARTS: dict[str, dict[str, bool]] = {
    "whole": {},
    "no skip connections": {"skip": True},
    "no MLP": {"mlp": True},
    "attention alone": {"skip": True, "mlp": True},
}

#: Texts of a quick study.
_QUICK_TEXTS = 200


def measure_without_parts(options: StudyOptions, model: str) -> Results:
    """Section 1, after Dong et al. 2021: how alike rows become without skip connections and MLPs."""
    reading = options.input(model)
    loaded, rows = reading.load(), list[dict[str, Any]]()
    texts = [text.text for text in islice(open_corpus(options.limited_text), _QUICK_TEXTS if options.quick else None)]
    for name, off in _PARTS.items():
        source = reading.over(open_corpus(texts), loaded)
        try:
            with disable_parts(loaded.model, **off):
                findings = options.scan(f"{model} {name}", source, _MEASURES, checkpoints=False)
        except InputError as error:
            return Results.note(error, "Section 1")
        for layer, by in iterate_layers(findings):
            rows.append(
                {"model": name, "layer": layer} | {measure: by[measure].value for measure in _MEASURES.split(",")}
            )
    frame = pd.DataFrame(rows)
    last = frame.groupby("model", sort=False).last()
    whole, alone = (float(last.loc[name, "sequence_uniformity"]) for name in ("whole", "attention alone"))
    residual = float(last.loc["attention alone", "rank_one_residual"])
    text = (
        f"the tokens of a sequence in the last layer of {model} have a mean cosine of {whole:.3f}, and {alone:.3f} by "
        f"attention alone (rank-one residual {residual:.3g}); Dong et al.: attention alone goes to one row."
    )
    claim = Claim.judge(alone > max(whole, 0.9), text, "Section 1", alone, 1.0)
    title = f"Uniformity by layer of {model}, whole and with parts of its blocks switched off"
    caption = "Rank-one residual by layer, of the whole model, and without skip connections, MLPs, or both."
    figure = make_layer_figure("parts_off", caption, frame, "model", "rank_one_residual", "rank-one residual")
    return Results([Table("parts_off", title, frame)], [claim], [figure])


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
