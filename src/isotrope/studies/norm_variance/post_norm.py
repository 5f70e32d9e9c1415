"""The post-LN argument: which norm gives the rows of a layer, and the squared lengths it predicts (Appendix I)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from isotrope.drawing.style import COLOURS, GREY
from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.measures.norm_variance import regression
from isotrope.sources.corpora.corpus import Text
from isotrope.sources.models.hidden_states import compute_hidden_states
from isotrope.sources.models.load import Loaded
from isotrope.sources.text.tokenize import encode, pad_texts
from isotrope.statistics.token_tables import FEWEST
from isotrope.studies.figures import make_figure
from isotrope.studies.norm_variance.intervals import Estimate, judge_every
from isotrope.studies.norm_variance.options import NormVarianceOptions
from isotrope.studies.norm_variance.token_types import is_in_window, scan_tokens
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import LEVEL, judge_equal, judge_interval, seeds_interval

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PROBE = "A norm gives what it gives."

#: Occurrences that types must have for the C.V. by their number.
_COUNTS = (10, 20, 50, 100, 200, 500)

#: Draws of the types for the interval of the exponent.
_DRAWS = 200

#: How far from 1 "about" is, and how far from −0.5 an exponent.
_TOLERANCE, _POWER_TOLERANCE = 0.05, 0.15


class LayerNorm(NamedTuple):
    """‖γ‖², ‖β‖² and βᵀγ of the norm that gives a layer's rows."""

    gamma_square: float
    beta_square: float
    beta_gamma: float

    @property
    def predicted(self) -> float:
        """‖γ‖² + ‖β‖², the squared length of rows whose coordinates have mean 0 and variance 1 before γ and β."""
        return self.gamma_square + self.beta_square

    def variation(self, fewest: int) -> float:
        """What the C.V. of Q over types of at least so many occurrences is of the order of."""
        return abs(self.gamma_square + self.beta_gamma) / self.predicted / math.sqrt(fewest)


def find_layer_norms(loaded: Loaded) -> dict[Layer, LayerNorm]:
    """The norm of each layer whose rows are a norm's output: all of a post-LN model, the last of a pre-LN one.

    Yamagiwa and Shimodaira 2024, Appendix I.
    """
    import torch

    outputs: list[tuple[Any, Any]] = []
    norms = _list_norms(loaded)
    if not norms:
        return {}
    hooks = [m.register_forward_hook(lambda module, _, out: outputs.append((module, out))) for m in norms]
    try:
        ids, mask = pad_texts(encode(loaded, [Text(0, _PROBE)], 64), loaded.pad)
        encoder, decoder = compute_hidden_states(loaded, ids, mask)
    finally:
        for hook in hooks:
            hook.remove()
    found: dict[Layer, LayerNorm] = {}
    for layer, state in enumerate((*encoder, *decoder)):
        for module, out in outputs:
            if isinstance(out, torch.Tensor) and out.shape == state.shape and torch.equal(out, state):
                found[layer] = _describe_norm(module)
    return found


def find_norm_kind(loaded: Loaded, names: Mapping[str, str], closed: Iterable[Layer]) -> str | None:
    """Say whether blocks end with a norm, "post-LN", or not, "pre-LN"; None where a model does not show it.

    The input of a stack is no block: BERT's comes out of a norm, and Marian's does not.

    Args:
        loaded: the model.
        names: the names of layers by their number as text.
        closed: the layers whose rows are a norm's output.
    """
    if not _list_norms(loaded):
        return None
    blocks = [number for number, name in names.items() if name.rpartition(".")[2] != "0"]
    return "post-LN" if blocks and set(map(str, closed)).issuperset(blocks) else "pre-LN"


def _list_norms(loaded: Loaded) -> list[Any]:
    """The norms among the modules of a model; none for an ONNX file, whose nodes are no modules."""
    modules = loaded.model.modules() if hasattr(loaded.model, "modules") else ()
    return [m for m in modules if "norm" in type(m).__name__.lower() and hasattr(m, "weight")]


def _describe_norm(module: Any) -> LayerNorm:
    gamma = module.weight.detach().double().cpu().numpy()
    bias = getattr(module, "bias", None)
    beta = np.zeros_like(gamma) if bias is None else bias.detach().double().cpu().numpy()
    return LayerNorm(float(gamma @ gamma), float(beta @ beta), float(beta @ gamma))


def measure_post_norm(options: NormVarianceOptions, model: str) -> Results:
    """Appendix I: Q against ‖γ‖² + ‖β‖², and whether its C.V. falls with 1/√n₀."""
    findings = scan_tokens(options, model)
    norms = find_layer_norms(options.input(model).load())
    tokens = findings.tables["tokens"]
    frame = pd.DataFrame(list_variations(tokens, findings.layers, norms))
    title = f"Q, ‖γ‖² + ‖β‖² and the C.V. of Q over types of n₀ or more, {model}"
    caption = "C.V. of Q over types of n₀ occurrences or more, by layer; dashed: what falls with 1/√n₀ (Appendix I)."
    figure = make_figure("post_norm", caption, partial(_draw_post_norm, frame))
    covered = [layer for layer in findings.layers if layer in norms]
    exponent = estimate_exponent(tokens, covered, seed=options.seed)
    return Results([Table("post_norm", title, frame)], judge_post_norm(frame, exponent, model), [figure])


def list_variations(
    tokens: pd.DataFrame, layers: Sequence[Layer], norms: Mapping[Layer, LayerNorm]
) -> list[dict[str, Any]]:
    """List mean Q, its prediction by the norm of the layer, and C.V. of Q over types of n₀ occurrences or more.

    The interval of the mean is over types.
    """
    rows = []
    for layer in layers:
        types = tokens[tokens["layer"] == str(layer)]
        q = types[is_in_window(types)]["Q"].to_numpy()
        norm = norms.get(layer, LayerNorm(math.nan, math.nan, math.nan))
        low, high = seeds_interval(q)
        row: dict[str, Any] = {
            "layer": layer,
            "gamma²": norm.gamma_square,
            "beta²": norm.beta_square,
            "predicted Q": norm.predicted,
            "mean Q": float(q.mean()) if len(q) else math.nan,
            "mean Q low": low,
            "mean Q high": high,
            "bound at 10": norm.variation(FEWEST),
        }
        variations = _compute_variations(types["n"].to_numpy(), types["Q"].to_numpy())
        row |= {f"cv {count}": value for count, value in variations.items()}
        rows.append(row | {"exponent": _fit_exponent(variations)})
    return rows


def _compute_variations(n: NDArray[np.int64], q: NDArray[np.float64]) -> dict[int, float]:
    """C.V. of Q over types of so many occurrences or more; NaN for fewer than three types."""
    chosen = {count: q[n >= count] for count in _COUNTS}
    return {count: float(some.std() / some.mean()) if len(some) > 2 else math.nan for count, some in chosen.items()}


def _fit_exponent(variations: Mapping[int, float]) -> float:
    """How the C.V. falls with n₀: −0.5 if it is all sampling."""
    usable = {count: cv for count, cv in variations.items() if cv > 0}
    if len(usable) < 3:
        return math.nan
    return regression(np.log(np.array(list(usable), dtype=float)), np.log(np.array(list(usable.values())))).slope


def estimate_exponent(tokens: pd.DataFrame, layers: Sequence[Layer], *, seed: int = 0) -> Estimate:
    """Estimate the power of n₀ that the C.V. of Q goes with, on average over layers, with a 95 % interval over types.

    The types are drawn with replacement, the same ones in all layers.
    """
    by_layer = {layer: tokens[tokens["layer"] == str(layer)].set_index("id") for layer in layers}
    if not by_layer:
        return Estimate(math.nan, math.nan, math.nan)
    ids = next(iter(by_layer.values())).index
    columns = [(part["n"].reindex(ids).fillna(0), part["Q"].reindex(ids)) for part in by_layer.values()]
    arrays = [(n.to_numpy(), q.to_numpy()) for n, q in columns]

    def average(at: Any) -> float:
        found = [_fit_exponent(_compute_variations(n[at], q[at])) for n, q in arrays]
        known = [exponent for exponent in found if math.isfinite(exponent)]
        return float(np.mean(known)) if known else math.nan

    rng = np.random.default_rng(seed)
    drawn = np.array([average(rng.integers(0, len(ids), len(ids))) for _ in range(_DRAWS)])
    low, high = np.quantile(drawn, [LEVEL / 2, 1 - LEVEL / 2])
    return Estimate(average(slice(None)), float(low), float(high))


def judge_post_norm(frame: pd.DataFrame, exponent: Estimate, model: str = "") -> list[Claim]:
    """Judge whether Q is the squared length that the norm of a layer gives, and how its C.V. falls (Appendix I)."""
    covered = frame[frame["predicted Q"].notna() & frame["mean Q"].notna()]
    where = "Appendix I"
    if not len(covered):
        text = "no layer is known whose rows come out of a norm, so that the post-LN argument does not apply."
        return [Claim("note", text, where, model=model)]
    ends = covered[["mean Q", "mean Q low", "mean Q high"]].div(covered["predicted Q"], axis=0)
    ratios = [Estimate(*row) for row in ends.to_numpy().tolist()]
    near = [Estimate(_TOLERANCE - abs(r.value - 1), *_reach(r)) for r in ratios]
    ratio, far = ends["mean Q"], float((ends["mean Q"] - 1).abs().max())
    text = (
        f"Q is {ratio.min():.3f} to {ratio.max():.3f} times ‖γ‖² + ‖β‖² in the layers that a norm closes "
        f"({len(covered)} of {len(frame)}); the paper expects about 1."
    )
    outside = sum(judge_interval(one.low, one.high) == "contradicts" for one in near)
    evidence = f"95 % intervals over types are more than {_TOLERANCE:g} from 1 in {outside} of {len(near)} layers"
    claims = [Claim(judge_every(near), text, where, far, 0.0, evidence, model)]
    if math.isfinite(exponent.value):
        text = (
            f"the C.V. of Q over types of n₀ occurrences or more goes with n₀ to the power {exponent.value:.2f} on "
            "average over these layers; the paper's bound falls with −0.5."
        )
        outcome = judge_equal(exponent.low, exponent.high, published=-0.5, tolerance=_POWER_TOLERANCE)
        claims.append(Claim(outcome, text, where, exponent.value, -0.5, exponent.evidence, model))
    return claims


def _reach(ratio: Estimate) -> tuple[float, float]:
    """Ends of the interval of how far a ratio is inside the tolerance around 1."""
    far = max(abs(ratio.low - 1), abs(ratio.high - 1))
    near = 0.0 if ratio.low <= 1 <= ratio.high else min(abs(ratio.low - 1), abs(ratio.high - 1))
    return _TOLERANCE - far, _TOLERANCE - near


def _draw_post_norm(frame: pd.DataFrame, figure: Figure) -> None:
    from matplotlib.ticker import LogLocator

    columns = [name for name in frame if str(name).startswith("cv ")]
    if not (frame[columns] > 0).to_numpy().any():
        raise InputError("fewer than three types occur often enough, so that there is no C.V. to draw")
    axes = figure.subplots()
    counts = [int(str(name).removeprefix("cv ")) for name in columns]
    for number, row in enumerate(frame.to_dict("records")):
        values = [row[name] for name in columns]
        axes.plot(counts, values, marker=".", color=COLOURS[number % len(COLOURS)], label=str(row["layer"]))
    first = float(frame[columns[0]].median())
    axes.plot(counts, [first * (counts[0] / n) ** 0.5 for n in counts], color=GREY, linestyle="--")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter("")
    axes.set_xlabel("n₀")
    axes.set_ylabel("C.V. of Q")
    figure.legend(title="layer", loc="outside right upper", ncols=1 + len(frame) // 13)
