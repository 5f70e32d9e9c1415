"""A transformer without its skip connections, or without its MLPs: what keeps rows from becoming all alike."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import pandas as pd

from isotrope.drawing.layers import label_layers
from isotrope.drawing.style import COLOURS
from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.studies.figures import make_figure
from isotrope.studies.options import StudyOptions, iterate_layers
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.transformer_block import find_blocks
from isotrope.studies.verdict import depth_interval, judge_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure


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


#: The residual is that of each sequence: sequences may collapse to rows that differ from one another.
_RESIDUAL = "sequence_rank_one_residual"

_MEASURES = (_RESIDUAL, "rank_one_residual", "sequence_uniformity", "sequence_spectral_median")

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
                findings = options.scan(f"{model} {name}", source, ",".join(_MEASURES), checkpoints=False)
        except InputError as error:
            return Results.note(error, "Section 1")
        for layer, by in iterate_layers(findings):
            row: dict[str, Any] = {"model": name, "layer": layer} | {each: by[each].value for each in _MEASURES}
            rows.append(row | {f"{_RESIDUAL}_low": by[_RESIDUAL].low, f"{_RESIDUAL}_high": by[_RESIDUAL].high})
    frame = pd.DataFrame(rows)
    title = f"Uniformity by layer of {model}, whole and with parts of its blocks switched off"
    caption = (
        "Rank-one residual of sequences by layer, mean over sequences, of the whole model, and without skip "
        "connections, MLPs, or both."
    )
    figure = make_figure("parts_off", caption, partial(_draw_residuals, frame))
    return Results([Table("parts_off", title, frame)], judge_collapse(model, frame), [figure])


def judge_collapse(model: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether sequences converge to one row by attention alone, and less so with skip connections and MLPs.

    Args:
        model: the name of the model.
        frame: a row for each layer of each of `model`: the residual with its interval.
    """
    by = {str(name): rows for name, rows in frame.groupby("model", sort=False)}
    last = {name: rows.iloc[-1][[_RESIDUAL, f"{_RESIDUAL}_low", f"{_RESIDUAL}_high"]] for name, rows in by.items()}
    (alone, low, high), (whole, least, most) = last["attention alone"], last["whole"]
    # The ends of both intervals, as if the texts of the two were not the same: rather too wide.
    ends = (float(least - high), float(most - low))
    text = (
        f"the residual of sequences in the last layer of {model} is {whole:.3g}, and {alone:.3g} by attention alone "
        f"({last['no skip connections'].iloc[0]:.3g} without skip connections, {last['no MLP'].iloc[0]:.3g} without "
        "MLPs); Dong et al.: attention alone converges to one row, skip connections prevent it."
    )
    evidence = f"95 % interval of the difference {ends[0]:.3g} to {ends[1]:.3g}"
    claims = [Claim(judge_interval(*ends), text, "Section 1", float(alone), 0.0, evidence, model)]
    values, lows, highs = (by["attention alone"][column].tolist() for column in last["whole"].index)
    ends = depth_interval([-value for value in values], [-value for value in highs], [-value for value in lows])
    text = (
        f"by attention alone the residual of sequences of {model} goes from {values[0]:.3g} to {values[-1]:.3g} over "
        f"{len(values)} layers; Dong et al.: it falls with every layer."
    )
    evidence = f"95 % interval of the rank correlation with depth {-ends[1]:.2f} to {-ends[0]:.2f}"
    return [*claims, Claim(judge_interval(*ends), text, "Section 1", values[-1], 0.0, evidence, model)]


def _draw_residuals(frame: pd.DataFrame, figure: Figure) -> None:
    axes = figure.subplots()
    for (name, rows), colour in zip(frame.groupby("model", sort=False), COLOURS, strict=False):
        axes.plot(range(len(rows)), rows[_RESIDUAL].astype(float), marker=".", color=colour, label=str(name))
    axes.set_yscale("log")
    label_layers(axes, list(dict.fromkeys(frame["layer"])))
    axes.set_ylabel("rank-one residual of sequences")
    figure.legend(loc="outside right upper")


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
