"""What a transformer block does to rows that share a bias: Section 4 of Godey et al. 2023, Figures 6 to 10."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from isotrope.measures import get
from isotrope.studies.transformer_block import Activations, TransformerBlock, has_plain_scores

#: Norms of the bias.
NORMS = (0.0, 0.5, 1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0)

#: The paper's inputs: sequences, and rows of each.
SEQUENCES, LENGTH = 16, 512

#: How near a fixed point is found.
_NEAR = 0.02

#: Of the weights of a softmax: by position, and of a whole sequence.
_ENDS = ("max", "median", "min", "sequence_max", "sequence_median", "sequence_min")

#: Bins of the histogram of scores.
BINS = 60

#: Scores below this are hidden by a mask.
_HIDDEN = -1e4


@dataclass(frozen=True)
class Inputs:
    """Sequences of embeddings x, (s, t, d), and the direction of the bias, (d,), of length 1."""

    rows: Any
    direction: Any

    @classmethod
    def draw(cls, block: TransformerBlock, sequences: int, length: int, seed: int, direction: int) -> Inputs:
        """Draw rows of the raw table; the seeds choose the rows and the direction."""
        import torch

        rng, other = (np.random.default_rng([kind, number]) for kind, number in ((0, seed), (1, direction)))
        length = max(block.min_rows, min(length, block.max_rows))
        ids = torch.from_numpy(rng.integers(len(block.table), size=(sequences, length)))
        rows = block.table[ids].float()
        vector = torch.from_numpy(other.normal(size=rows.shape[2])).to(rows)
        return cls(rows, vector / vector.norm())


def apply_bias(block: TransformerBlock, inputs: Inputs, norms: Sequence[float] = NORMS) -> list[dict[str, Any]]:
    """Every quantity of Figures 6 to 10 at each norm N of the bias, as one record each."""
    return [_measure_at(block, inputs, norm) for norm in norms]


def count_scores(block: TransformerBlock, inputs: Inputs, norms: Sequence[float]) -> list[dict[str, Any]]:
    """Count the scores before the softmax in equal bins between the least and the largest, at each norm: Figure 7.

    Args:
        block: what to measure.
        inputs: its rows and the direction of the bias.
        norms: of the bias.

    Returns:
        A record for each bin: norm of the bias, left and right end, and number of scores; none where attention hides
        its scores.
    """
    records = []
    for norm in norms:
        seen = [_find_scores(block(rows + norm * inputs.direction)) for rows in inputs.rows]
        if any(scores is None for scores in seen):
            return []
        values = [scores for scores in seen if scores is not None]
        ends = min(v.min() for v in values), max(v.max() for v in values)
        counts = np.sum([np.histogram(v, BINS, range=ends)[0] for v in values], axis=0)
        edges = np.histogram_bin_edges([], BINS, range=ends)
        records += [
            {"bias_norm": norm, "left": float(left), "right": float(right), "count": int(count)}
            for left, right, count in zip(edges[:-1], edges[1:], counts, strict=True)
        ]
    return records


def find_fixed_points(block: TransformerBlock, inputs: Inputs, records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """N* where E‖x + b‖ = E‖T(x + b)‖, and where the norms of the means are equal; NaN where they never are."""
    found = {}
    for name, (here, there) in {
        "mean of norms": ("input_norm", "output_norm"),
        "norm of mean": ("input_mean_norm", "output_mean_norm"),
    }.items():
        gaps = [(record["bias_norm"], record[here] - record[there]) for record in records]

        def gap(norm: float, here: str = here, there: str = there) -> float:
            rows = (inputs.rows + norm * inputs.direction).flatten(0, 1)
            out = np.concatenate([block(one + norm * inputs.direction).output.numpy() for one in inputs.rows])
            facts = _measure_lengths("input", rows.numpy()) | _measure_lengths("output", out)
            return facts[here] - facts[there]

        found[name] = _find_root(gap, gaps)
    return found


def _find_root(gap: Callable[[float], float], known: Sequence[tuple[float, float]]) -> float:
    for (low, below), (high, above) in itertools.pairwise(known):
        if below == 0 or below * above < 0:
            return float(low if below == 0 else brentq(gap, low, high, xtol=_NEAR, rtol=1e-6))
    return math.nan


def _measure_at(block: TransformerBlock, inputs: Inputs, norm: float) -> dict[str, Any]:
    bias = norm * inputs.direction
    given = inputs.rows + bias
    passes = [block(rows) for rows in given]
    x, out = given.flatten(0, 1).numpy(), np.concatenate([seen.output.numpy() for seen in passes])
    record: dict[str, Any] = {"bias_norm": norm}
    record |= _measure_lengths("input", x) | _measure_lengths("output", out)
    record |= {f"{name}_cosine": get("mean_cosine")(rows) for name, rows in (("input", x), ("output", out))}
    record["cosine_gain"] = record["output_cosine"] - record["input_cosine"]
    record |= _average([_measure_scores(seen) for seen in passes])
    record |= _average([measure_sharpness(seen.softmax, seen.scores) for seen in passes])
    record |= _measure_heads(passes, "query") | _measure_heads(passes, "key")
    record |= _measure_mean_errors(block, passes)
    record |= _average(
        [_measure_without_term(block, seen, rows, bias) for seen, rows in zip(passes, inputs.rows, strict=True)]
    )
    return record


def _measure_lengths(name: str, rows: NDArray[np.floating[Any]]) -> dict[str, float]:
    """Mean of norms and norm of mean of rows (n, d)."""
    norms = np.linalg.norm(rows.astype(np.float64), axis=1)
    mean = np.linalg.norm(rows.mean(axis=0, dtype=np.float64))
    return {f"{name}_norm": float(norms.mean()), f"{name}_mean_norm": float(mean)}


def _find_scores(seen: Activations) -> NDArray[np.float64] | None:
    """All scores before the softmax that no mask hides; None where attention does not show them."""
    if seen.scores is None:
        return None
    values: NDArray[np.float64] = seen.scores.double().numpy()
    return values[values > _HIDDEN]


def _measure_scores(seen: Activations) -> dict[str, float]:
    """Fig. 7: where the scores before the softmax lie."""
    values = _find_scores(seen)
    if values is None:
        return {"score_mean": math.nan, "score_deviation": math.nan}
    return {"score_mean": float(values.mean()), "score_deviation": float(values.std())}


def measure_sharpness(softmax: Any, scores: Any, name: str = "softmax") -> dict[str, float]:
    """Figs. 9 and 10: largest, median and smallest weight of each position, and of the whole sequence.

    Args:
        softmax: the weights of attention, (heads, t, t); None where attention hides them.
        scores: before the softmax; weights whose score a mask hides are left out.
        name: of the weights.
    """
    if softmax is None:
        return {f"{name}_{end}": math.nan for end in _ENDS}
    values: NDArray[np.float64] = softmax.double().numpy()
    hidden = scores.numpy() <= _HIDDEN
    largest, median, smallest = np.max, np.median, np.min
    if hidden.any():
        values = np.where(hidden, np.nan, values)
        largest, median, smallest = np.nanmax, np.nanmedian, np.nanmin
    return {
        f"{name}_max": float(largest(values, axis=-1).mean()),
        f"{name}_median": float(median(values, axis=-1).mean()),
        f"{name}_min": float(smallest(values, axis=-1).mean()),
        f"{name}_sequence_max": float(largest(values)),
        f"{name}_sequence_median": float(median(values)),
        f"{name}_sequence_min": float(smallest(values)),
    }


def _measure_heads(passes: Sequence[Activations], name: str) -> dict[str, float]:
    """Fig. 8: mean norm and mean cosine of queries or keys, each head apart, then averaged."""
    import torch

    if any(getattr(seen, name) is None for seen in passes):
        return {f"{name}_norm": math.nan, f"{name}_cosine": math.nan}
    rows = torch.cat([getattr(seen, name) for seen in passes], dim=1).numpy()
    norms = [float(np.linalg.norm(head, axis=1).mean()) for head in rows]
    cosines = [get("mean_cosine")(head) for head in rows]
    return {f"{name}_norm": float(np.mean(norms)), f"{name}_cosine": float(np.mean(cosines))}


def _measure_mean_errors(block: TransformerBlock, passes: Sequence[Activations]) -> dict[str, float]:
    """How far E(Q) is from W_Q x̄ + b_Q, and E(K) from W_K x̄ + b_K, as shares of their lengths: the paper's Eq. 1."""
    import torch

    names = ("query", "key")
    none = {f"{name}_mean_error": math.nan for name in names}
    if any(seen.query is None or seen.key is None for seen in passes):
        return none
    rows = torch.cat([seen.query_input for seen in passes])
    projected = block.project(torch.stack([rows.mean(0), rows[0]]))
    if projected is None:
        return none
    errors = {}
    for name, weighted in zip(names, projected, strict=True):
        given = torch.cat([getattr(seen, name) for seen in passes], dim=1)
        mean = given.mean(dim=1)
        # Differences of two queries have no bias: q(x̄) − q(x₀) = W_Q (x̄ − x₀).
        expected = weighted[:, 0] - weighted[:, 1] + given[:, 0]
        errors[f"{name}_mean_error"] = float((mean - expected).norm() / mean.norm())
    return errors


def _measure_without_term(block: TransformerBlock, seen: Activations, rows: Any, bias: Any) -> dict[str, float]:
    """The sharpness of the softmax without bᵀAx, the only part of the scores with b that differs between keys.

    (x + b)ᵀA(y + b) = xᵀAy + bᵀAy + terms that are the same for all keys y. Only where queries and keys are made of
    x + b itself and scores are their products: not behind a norm.
    """
    import torch

    names = [f"no_bAx_{end}" for end in _ENDS]
    if not has_plain_scores(seen) or not torch.equal(seen.query_input, rows + bias):
        return dict.fromkeys(names, math.nan)
    term = find_bias_term(block, rows, bias)
    if term is None:
        return dict.fromkeys(names, math.nan)
    scores = seen.scores - term
    return measure_sharpness(scores.softmax(-1), scores, "no_bAx")


def find_bias_term(block: TransformerBlock, rows: Any, bias: Any) -> Any:
    """The term bᵀAy of the scores for all keys y, (heads, 1, t); None where queries and keys come out of one module."""
    projected, of_bias = block.project(rows), block.project(bias[None])
    if projected is None or of_bias is None:
        return None
    return (of_bias[0] @ projected[1].transpose(1, 2)) / projected[1].shape[-1] ** 0.5


def _average(records: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each number over the sequences."""
    return {key: float(np.mean([record[key] for record in records])) for key in records[0]}
