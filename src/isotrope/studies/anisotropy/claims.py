"""Claims of Godey et al. 2023, judged by the tables of the anisotropy study."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from isotrope.studies.result import Claim

if TYPE_CHECKING:
    import pandas as pd

#: Standard deviation of BERT's initial weights.
INITIAL = 0.02

#: How near the fixed point and the output norms of a fresh block must be to √d.
_NEAR = 0.1

#: How much the largest weight of a softmax must grow to be called sharper.
_SHARPER = 1.002

#: What a curve that has become flat may fall by, as a share of its height.
_FLAT = 1e-3

#: The mean cosine from which rows are called anisotropic.
_ALIKE = 0.2


def judge_drift(model: str, modality: str, layers: pd.DataFrame, drift: pd.DataFrame) -> list[Claim]:
    """Whether some layer is anisotropic, for speech whether all are, and whether drift goes with it."""
    worst = layers.iloc[int(layers["mean_cosine"].to_numpy().argmax())]
    found = bool(worst["mean_cosine"] > _ALIKE)
    text = f"the highest mean cosine of {model} is {worst['mean_cosine']:.3f}, in layer {worst['layer']}"
    paper = "the paper finds some anisotropic layer in almost every transformer"
    claims = [Claim.judge(found, f"{text}; {paper}.", "Figs. 1 to 4", worst["mean_cosine"])]
    if modality == "audio":
        least = layers.iloc[int(layers["mean_cosine"].to_numpy().argmin())]
        text = f"the lowest mean cosine of {model} is {least['mean_cosine']:.3f}, in layer {least['layer']}"
        paper = "the paper finds at least 0.2 in every layer of every model of speech"
        holds = bool(least["mean_cosine"] >= _ALIKE)
        claims.append(Claim.judge(holds, f"{text}; {paper}.", "Fig. 3", least["mean_cosine"], _ALIKE))
    rho, p, usual = (float(drift[name].iloc[0]) for name in ("spearman", "spearman_p", "spearman_p_asymptotic"))
    if math.isfinite(rho):
        text = (
            f"drift and mean cosine of {model} have a rank correlation of {rho:.2f} over {len(layers)} layers "
            f"(p {p:.3g} by permutation, {usual:.3g} by the paper's formula); layers are not independent, so that p "
            "describes and proves nothing."
        )
        claims.append(Claim("note", text, "Fig. 5", rho))
    return claims


def judge_block(frame: pd.DataFrame, width: int | None) -> list[Claim]:
    """Norms, cosines and sharpness of one block under a bias.

    Args:
        frame: a row for each norm of the bias.
        width: the width of a fresh block, None for a trained one.
    """
    name = str(frame["block"].iloc[0])
    claims = []
    if width is not None:
        root = math.sqrt(width)
        far = float((frame["output_norm"] - root).abs().max())
        low, high = frame["output_norm"].min(), frame["output_norm"].max()
        text = f"{name}: the mean output norm is {low:.3f} to {high:.3f} whatever the bias; √d = {root:.3f}"
        claims.append(Claim.judge(far <= _NEAR, f"{text}.", "Fig. 6b", far, 0.0))
        square = frame["bias_norm"] ** 2
        expected = square / (square + width * INITIAL**2)
        off = float((frame["input_cosine"] - expected).abs().max())
        text = f"{name}: the input cosine is N²/(N² + {width * INITIAL**2:.4f}) to {off:.1e}"
        claims.append(Claim.judge(off < 0.01, f"{text}.", "Fig. 6a", off, 0.0))
    above = frame["output_cosine"] > frame["input_cosine"]
    levels = ", ".join(f"{n:g}" for n in frame[~above]["bias_norm"])
    text = f"{name}: the output cosine is above the input cosine at {above.sum()} of {len(frame)} norms of the bias"
    text += f", not at {levels}" if levels else ""
    paper = "the paper: slightly higher at every level"
    claims.append(Claim.judge(bool(above.all()), f"{text}; {paper}.", "Fig. 6a"))
    return claims + _judge_growth(name, frame) + _judge_sharpness(name, frame)


def _judge_growth(name: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether the mean output, queries and keys grow with the bias, and are alike without one."""
    claims = []
    for column, what, where in (
        ("output_mean_norm", "the norm of the mean output", "Fig. 6b"),
        ("query_norm", "the mean norm of queries", "Fig. 8"),
        ("key_norm", "the mean norm of keys", "Fig. 8"),
    ):
        values = frame[column].astype(float)
        if values.isna().any():
            continue
        grows = bool((values.diff().dropna() >= -_FLAT * values.max()).all() and values.iloc[-1] > values.iloc[0])
        text = (
            f"{name}: {what} goes from {values.iloc[0]:.3g} to {values.iloc[-1]:.3g}; the paper: it grows with the bias"
        )
        claims.append(Claim.judge(grows, f"{text}.", where))
    first = frame.iloc[0]
    both = [float(first[f"{kind}_cosine"]) for kind in ("query", "key")]
    if first["bias_norm"] == 0 and all(map(math.isfinite, both)):
        text = f"{name}: without a bias queries have a mean cosine of {both[0]:.3f} and keys of {both[1]:.3f}"
        alike = min(both) > _ALIKE
        paper = "the paper: anisotropic even then"
        claims.append(Claim.judge(alike, f"{text}; {paper}.", "Fig. 8", min(both)))
    return claims


def _judge_sharpness(name: str, frame: pd.DataFrame) -> list[Claim]:
    """How much sharper the softmax becomes, with and without the term bᵀAx."""
    first, last = frame.iloc[0], frame.iloc[-1]
    if not math.isfinite(first.get("softmax_max", math.nan)):
        return []
    grown = float(last["softmax_max"] / first["softmax_max"])
    text = (
        f"{name}: the largest weight of a position grows {grown:.3f} times from no bias to one of {last['bias_norm']:g}"
    )
    claims = [Claim.judge(grown > _SHARPER, f"{text}; the paper: sharper.", "Fig. 9", grown)]
    if math.isfinite(last["no_bAx_max"]):
        without = float(last["no_bAx_max"] / first["softmax_max"])
        text = (
            f"{name}: without the term bᵀAx of the scores it grows {without:.4f} times, so that this term is all of it"
        )
        if abs(without - 1) > 0.1 * abs(grown - 1) + 1e-3:
            text = f"{name}: without the term bᵀAx of the scores it still changes {without:.4f} times"
        claims.append(Claim("note", f"{text}.", "Fig. 9", without, 1.0))
    return claims


def judge_fixed_points(fixed: pd.DataFrame, width: int | None) -> list[Claim]:
    """Where blocks leave the norm as it is."""
    claims = []
    for row in fixed.to_dict("records"):
        norms, means = row["mean of norms"], row["norm of mean"]
        text = f"{row['block']}: N* is {norms:.2f} by the mean of norms and {means:.2f} by the norm of the mean"
        if width is None:
            missing = " (nan: they never meet within the norms tried)" if norms != norms or means != means else ""
            claims.append(Claim("note", f"{text}{missing}.", "Section 4.2", norms))
            continue
        expected = math.sqrt(width * (1 - INITIAL**2))
        near = abs(norms - expected) <= _NEAR
        paper = f"expected √(d(1 − {INITIAL}²)) = {expected:.2f} for a fresh block"
        claims.append(Claim.judge(near, f"{text}; {paper}.", "Section 4.2", norms, expected))
    return claims


def judge_lengths(model: str, fixed: pd.DataFrame, lengths: pd.Series[float]) -> list[Claim]:
    """Whether fixed points are within ten times the lengths of the model's rows in each layer."""
    low, high = float(lengths.min()), float(lengths.max())
    claims = []
    for row in fixed.to_dict("records"):
        point = float(row["mean of norms"])
        if not math.isfinite(point):
            continue
        text = (
            f"{row['block']}: N* is {point:.2f}, rows of the layers of {model} are {low:.2f} to {high:.2f} long "
            "(root mean square); the paper: of one order of magnitude."
        )
        near = low / 10 <= point <= 10 * high
        claims.append(Claim.judge(near, text, "Section 4.2", point))
    return claims


def judge_signs(frame: pd.DataFrame) -> list[Claim]:
    """Whether scores move to either side."""
    up = int((frame["score_mean"] > 0).sum())
    text = f"under a bias the mean score is positive in {up} of {len(frame)} draws of initialisation and direction"
    both = 0 < up < len(frame)
    return [Claim.judge(both, f"{text}; the paper saw both signs.", "Fig. 7")]
