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

_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


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
        length = min(length, block.max_rows)
        ids = torch.from_numpy(rng.integers(len(block.table), size=(sequences, length)))
        rows = block.table[ids].float()
        vector = torch.from_numpy(other.normal(size=rows.shape[2])).to(rows)
        return cls(rows, vector / vector.norm())


def apply_bias(block: TransformerBlock, inputs: Inputs, norms: Sequence[float] = NORMS) -> list[dict[str, Any]]:
    """Every quantity of Figures 6 to 10 at each norm N of the bias, as one record each."""
    return [_measure_at(block, inputs, norm) for norm in norms]


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
    record |= _average([_measure_scores(seen) for seen in passes])
    record |= _average([_measure_sharpness(seen.softmax, "softmax") for seen in passes])
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


def _measure_scores(seen: Activations) -> dict[str, float]:
    """Fig. 7: where the scores before the softmax lie; those that a mask hides are left out."""
    if seen.scores is None:
        return {"score_mean": math.nan, "score_deviation": math.nan}
    values = seen.scores.double()
    values = values[values > -1e4].numpy()
    quantiles = {f"score_{q:g}": float(v) for q, v in zip(_QUANTILES, np.quantile(values, _QUANTILES), strict=True)}
    return {"score_mean": float(values.mean()), "score_deviation": float(values.std())} | quantiles


def _measure_sharpness(softmax: Any, name: str) -> dict[str, float]:
    """Figs. 9 and 10: largest, median and smallest weight of each position, and of the whole sequence."""
    if softmax is None:
        return {}
    values = softmax.double()
    return {
        f"{name}_max": float(values.amax(-1).mean()),
        f"{name}_median": float(values.median(-1).values.mean()),
        f"{name}_min": float(values.amin(-1).mean()),
        f"{name}_sequence_max": float(values.max()),
        f"{name}_sequence_median": float(values.median()),
        f"{name}_sequence_min": float(values.min()),
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
    projected, of_bias = block.project(rows), block.project(bias[None])
    if projected is None or of_bias is None:
        return dict.fromkeys(names, math.nan)
    term = (of_bias[0] @ projected[1].transpose(1, 2)) / seen.query.shape[-1] ** 0.5  # (h, 1, t)
    return _measure_sharpness((seen.scores - term).softmax(-1), "no_bAx")


def _average(records: Sequence[dict[str, float]]) -> dict[str, float]:
    """The mean of each number over the sequences."""
    return {key: float(np.mean([record[key] for record in records])) for key in records[0]}
