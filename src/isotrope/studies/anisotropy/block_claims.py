"""What Godey et al. 2023 say about a block under a common bias, Figures 6 to 10, decided by intervals over draws.

A draw is a seed of the initialisation, of the rows and of the direction of the bias; for a trained block, of the rows
and of the direction. Each claim rests on one number for each draw and Student's interval of its mean.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import stats

from isotrope.studies.anisotropy.class_claims import ALIKE
from isotrope.studies.result import Claim
from isotrope.studies.verdict import LEVEL, judge_all, judge_equal, judge_interval, seeds_interval

if TYPE_CHECKING:
    import pandas as pd

#: Standard deviation of BERT's initial weights.
INITIAL = 0.02

#: How near the fixed point and the output norms of a fresh block must be to √d, and its cosines to the closed form.
_NEAR, _NEAR_COSINE = 0.1, 0.01

#: What a curve that has become flat may fall by, as a share of its height.
_FLAT = 1e-3

#: The share of the whole effect that a small effect stays below.
_SMALL = 0.1


def judge_block(frame: pd.DataFrame, width: int | None) -> list[Claim]:
    """Norms, cosines, queries and keys, and sharpness of one block under a bias.

    Args:
        frame: a row for each draw (column `seed`) and norm of the bias.
        width: the width of a fresh block, None for a trained one.
    """
    fresh = [] if width is None else _judge_closed_forms(frame, width)
    return [*fresh, _judge_cosines(frame), *_judge_growth(frame), *_judge_alike(frame), *_judge_weights(frame)]


def _name(frame: pd.DataFrame) -> str:
    return str(frame["block"].iloc[0])


def _compute_by_seed(frame: pd.DataFrame, statistic: Callable[[pd.DataFrame], float]) -> list[float]:
    return [float(statistic(rows)) for _, rows in frame.groupby("seed", sort=False)]


def describe_interval(low: float, high: float, count: int) -> str:
    """The interval in words, or that there is none.

    >>> describe_interval(0.1, 0.25, 5), describe_interval(math.nan, math.nan, 1)
    ('95 % interval over 5 draws 0.1 to 0.25', 'one draw, or draws without a value: no interval')
    """
    if math.isnan(low):
        return "one draw, or draws without a value: no interval"
    return f"95 % interval over {count} draws {low:.4g} to {high:.4g}"


def _judge_closed_forms(frame: pd.DataFrame, width: int) -> list[Claim]:
    """Output norm √d and input cosine N²/(N² + 0.0004 d) at initialisation."""
    root, spread = math.sqrt(width), width * INITIAL**2
    claims = []
    for text, where, tolerance, statistic in (
        (
            f"the mean output norm is √d = {root:.3f} whatever the bias",
            "Fig. 6b",
            _NEAR,
            lambda rows: (rows["output_norm"] - root).abs().max(),
        ),
        (
            f"the input cosine is N²/(N² + {spread:.4f})",
            "Fig. 6a",
            _NEAR_COSINE,
            lambda rows: (
                (rows["input_cosine"] - rows["bias_norm"] ** 2 / (rows["bias_norm"] ** 2 + spread)).abs().max()
            ),
        ),
    ):
        values = _compute_by_seed(frame, statistic)
        ends = seeds_interval(values)
        outcome = judge_equal(*ends, published=0.0, tolerance=tolerance)
        text = f"{_name(frame)}: {text}; the largest deviation is {np.mean(values):.2g}, of {tolerance:g} allowed."
        claims.append(Claim(outcome, text, where, float(np.mean(values)), 0.0, describe_interval(*ends, len(values))))
    return claims


def _judge_cosines(frame: pd.DataFrame) -> Claim:
    """Whether the output cosine is above the input cosine at every norm.

    By the least gain of each draw, as a share of what the input cosine lacks to 1: both are near 1 at a large bias.
    """
    shares = frame.assign(share=frame["cosine_gain"] / (1 - frame["input_cosine"]))
    values = _compute_by_seed(shares, lambda rows: rows["share"].min())
    ends = seeds_interval(values)
    means = frame.groupby("bias_norm")["cosine_gain"].mean()
    below = ", ".join(f"{norm:g}" for norm in means.index[means <= 0])
    text = (
        f"{_name(frame)}: output less input cosine is {means.min():.2g} to {means.max():.2g} over {len(means)} norms "
        f"of the bias{f', not above 0 at {below}' if below else ''}; the paper: slightly above 0 at every level."
    )
    evidence = f"least gain as a share of 1 less the input cosine: {describe_interval(*ends, len(values))}"
    return Claim(judge_interval(*ends), text, "Fig. 6a", float(np.mean(values)), 0.0, evidence)


def _judge_growth(frame: pd.DataFrame) -> list[Claim]:
    """Whether the mean output, queries, keys and the distance of scores from zero grow with the bias."""
    claims = []
    for column, what, where in (
        ("output_mean_norm", "the norm of the mean output", "Fig. 6b"),
        ("query_norm", "the mean norm of queries", "Fig. 8"),
        ("key_norm", "the mean norm of keys", "Fig. 8"),
        ("score_mean", "the distance of the mean score from zero", "Fig. 7"),
    ):
        values = frame[column].astype(float).abs()
        if values.isna().any():
            continue
        sized = frame.assign(size=values)
        whole = _find_growth(sized, "size")[1]
        steps = _compute_by_seed(sized, lambda rows: rows["size"].diff().min() / rows["size"].max())
        least = seeds_interval(steps)
        outcome = judge_all([judge_interval(*whole, border=1.0), judge_interval(*least, border=-_FLAT)])
        means = sized.groupby("bias_norm")["size"].mean()
        text = f"{_name(frame)}: {what} goes from {means.iloc[0]:.3g} to {means.iloc[-1]:.3g}; the paper: it grows"
        step = f"least step as a share {least[0]:.2g} to {least[1]:.2g}"
        evidence = f"growth: {describe_interval(*whole, len(steps))}; {step}"
        claims.append(Claim(outcome, f"{text} with the bias.", where, evidence=evidence))
    return claims


def _find_growth(frame: pd.DataFrame, column: str) -> tuple[float, tuple[float, float]]:
    """By how much a positive column grows from the first to the last norm, on average of the logarithm over draws."""
    grown = _compute_by_seed(frame, lambda rows: np.log(rows[column].iloc[-1] / rows[column].iloc[0]))
    low, high = seeds_interval(grown)
    return math.exp(np.mean(grown)), (math.exp(low), math.exp(high))


def _judge_alike(frame: pd.DataFrame) -> list[Claim]:
    """Whether queries and keys are anisotropic without a bias."""
    raw = frame[(frame["bias_norm"] == 0) & frame["query_cosine"].notna() & frame["key_cosine"].notna()]
    if raw.empty:
        return []
    query, key = (float(raw[f"{kind}_cosine"].mean()) for kind in ("query", "key"))
    values = raw[["query_cosine", "key_cosine"]].min(axis=1).tolist()
    ends = seeds_interval(values)
    text = (
        f"{_name(frame)}: without a bias queries have a mean cosine of {query:.3f} and keys of {key:.3f}; the paper: "
        f"anisotropic even then (here: above {ALIKE})."
    )
    outcome = judge_interval(*ends, border=ALIKE)
    return [Claim(outcome, text, "Fig. 8", min(query, key), evidence=describe_interval(*ends, len(values)))]


def _judge_weights(frame: pd.DataFrame) -> list[Claim]:
    """How much sharper the softmax becomes, that little bias changes it little, and what the term bᵀAx does."""
    if frame["softmax_max"].isna().any():
        return []
    name, claims = _name(frame), []
    last = frame["bias_norm"].max()
    for column, what, where in (
        ("softmax_max", "the largest weight of a position", "Fig. 9"),
        ("softmax_sequence_max", "the largest weight of a sequence", "Fig. 10"),
    ):
        grown, ends = _find_growth(frame, column)
        text = f"{name}: {what} changes by a factor of {grown:.3f} from no bias to one of {last:g}; the paper: sharper."
        evidence = describe_interval(*ends, frame["seed"].nunique())
        claims.append(Claim(judge_interval(*ends, border=1.0), text, where, grown, evidence=evidence))
    return [*claims, *_judge_low_bias(name, frame), *_note_term(name, frame)]


def _judge_low_bias(name: str, frame: pd.DataFrame) -> list[Claim]:
    """Whether a bias of about 1 does little of what the largest one does."""
    norms = sorted(set(frame["bias_norm"]))
    low = next((norm for norm in norms if norm >= 1), math.nan)

    def compute_share(rows: pd.DataFrame) -> float:
        sizes = np.log(rows.set_index("bias_norm")["softmax_max"].astype(float))
        return float((sizes[low] - sizes.iloc[0]) / (sizes.iloc[-1] - sizes.iloc[0]))

    if norms[0] != 0 or not low < norms[-1]:
        return []
    shares = _compute_by_seed(frame, compute_share)
    ends = seeds_interval(shares)
    text = (
        f"{name}: a bias of {low:g} does {100 * np.mean(shares):.1f} % of what one of {norms[-1]:g} does to the "
        f"largest weight; the paper: the effect is small at low bias (here: below {100 * _SMALL:g} %)."
    )
    outcome = judge_interval(-ends[1], -ends[0], border=-_SMALL)
    return [Claim(outcome, text, "Section 4.4", float(np.mean(shares)), evidence=describe_interval(*ends, len(shares)))]


def _note_term(name: str, frame: pd.DataFrame) -> list[Claim]:
    if frame["no_bAx_max"].isna().any():
        return []
    changed = _compute_by_seed(frame, lambda rows: rows["no_bAx_max"].iloc[-1] / rows["softmax_max"].iloc[0])
    text = (
        f"{name}: without the term bᵀAx of the scores the largest weight changes by a factor of {np.mean(changed):.4f}"
    )
    evidence = describe_interval(*seeds_interval(changed), len(changed))
    return [Claim("note", f"{text}.", "Fig. 9", float(np.mean(changed)), 1.0, evidence)]


def judge_fixed_points(fixed: pd.DataFrame, width: int | None) -> list[Claim]:
    """Where blocks leave the norm as it is.

    Args:
        fixed: a row for each block and draw.
        width: the width of fresh blocks, None for trained ones.
    """
    claims = []
    for name, rows in fixed.groupby("block", sort=False):
        norms, means = (rows[column].astype(float) for column in ("mean of norms", "norm of mean"))
        ends = seeds_interval(norms)
        evidence = describe_interval(*ends, len(norms))
        text = f"{name}: N* is {norms.mean():.2f} by the mean of norms and {means.mean():.2f} by the norm of the mean"
        if width is None:
            if norms.isna().all():
                text = f"{name}: there is no N*: within the norms tried, the output is never as long as the input"
            elif norms.isna().any():
                text += f", over the {norms.count()} of {len(norms)} draws that have one"
            claims.append(Claim("note", f"{text}.", "Section 4.2", float(norms.mean()), evidence=evidence))
            continue
        expected = math.sqrt(width * (1 - INITIAL**2))
        text = f"{text}; expected √(d(1 − {INITIAL}²)) = {expected:.2f} for a fresh block, to {_NEAR}."
        outcome = judge_equal(*ends, published=expected, tolerance=_NEAR)
        claims.append(Claim(outcome, text, "Section 4.2", float(norms.mean()), expected, evidence))
    return claims


def judge_lengths(model: str, fixed: pd.DataFrame, lengths: Sequence[float]) -> list[Claim]:
    """Whether fixed points are within ten times the lengths of the model's rows in each layer."""
    low, high = min(lengths), max(lengths)
    claims = []
    for name, rows in fixed.groupby("block", sort=False):
        points = rows["mean of norms"].astype(float)
        if points.isna().any() or low <= 0:
            continue
        ends = seeds_interval(np.log10(points))
        centre, half = math.log10(low * high) / 2, math.log10(high / low) / 2 + 1
        text = (
            f"{name}: N* is {points.mean():.2f}, rows of the layers of {model} are {low:.2f} to {high:.2f} long "
            "(root mean square); the paper: of one order of magnitude."
        )
        outcome = judge_equal(*ends, published=centre, tolerance=half)
        evidence = describe_interval(10 ** ends[0], 10 ** ends[1], len(points))
        claims.append(Claim(outcome, text, "Section 4.2", float(points.mean()), evidence=evidence))
    return claims


def judge_signs(means: Sequence[float], norm: float) -> Claim:
    """Whether the mean score takes both signs, by the exact interval of the share of positive ones.

    Args:
        means: mean score of each draw of initialisation and direction.
        norm: of the bias.
    """
    up, count = int(np.sum(np.asarray(means) > 0)), len(means)
    share: Any = stats.binomtest(up, count).proportion_ci(1 - LEVEL)
    text = (
        f"under a bias of {norm:g} the mean score is positive in {up} of {count} draws of initialisation and "
        "direction; the paper saw both signs."
    )
    low = min(share.low, 1 - share.high)
    evidence = f"95 % interval of the share of positive ones {share.low:.2f} to {share.high:.2f}"
    return Claim(judge_interval(low, 1.0), text, "Fig. 7", up / count, evidence=evidence)
