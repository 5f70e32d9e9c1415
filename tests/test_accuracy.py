"""Every number of every layer against a naive float64 computation on the hidden states of the same run.

The computation below follows the definitions word by word (all pairs, one SVD, one loop over types and sequences) and
shares no code with isotrope.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy import stats

import isotrope
from isotrope.findings import Findings
from isotrope.readings import layer_readings as readings
from isotrope.readings.intervals import NONE
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.text import source as text_source
from isotrope.sources.text.source import TextSource
from testkit.models import smollm2_file

#: Largest relative error allowed, by precision.
TOLERANCE = {"fast": 1e-5, "exact": 1e-9}


@dataclass
class Recorded:
    """What a scan found, and the hidden states that went into it, (n, d) float64 by layer."""

    findings: Findings
    token: Any
    sequence: Any
    layers: dict[Any, Any] = field(default_factory=dict)


def record(monkeypatch: pytest.MonkeyPatch, texts: list[str], precision: str, **options: Any) -> Recorded:
    """Scan texts, keeping the hidden states of the scan's own batches."""
    seen: list[Any] = []

    class Recording(TextSource):
        def batches(self, start: int = 0) -> Any:
            for batch in super().batches(start):
                layers = {layer: rows.numpy().astype(np.float64) for layer, rows in batch.layers.items()}
                seen.append((batch.rows.token, batch.rows.sequence, layers))
                yield batch

    monkeypatch.setattr(text_source, "TextSource", Recording)
    # Intervals and nulls stand beside the values, are not compared here, and would take most of the time.
    monkeypatch.setattr(readings, "compute_intervals", lambda measures, *_: [NONE] * len(measures))
    monkeypatch.setattr(readings.Nulls, "value", lambda *_: math.nan)
    findings = isotrope.scan(text=texts, precision=precision, **options)
    joined = {layer: np.concatenate([layers[layer] for _, _, layers in seen]) for layer in findings.layers}
    sequence = np.concatenate([part[1] for part in seen])
    token = None if seen[0][0] is None else np.concatenate([part[0] for part in seen])
    return Recorded(findings, token, sequence, joined)


def manual(count: int, longest: int = 1000) -> list[str]:
    """The first different texts of the manual, of at most so many words."""
    short = (text.text for text in open_corpus() if len(text.text.split()) <= longest)
    return list(itertools.islice(dict.fromkeys(short), count))


def naive(x: Any, token: Any, sequence: Any) -> dict[str, float]:
    """All measures of one layer; of pooled rows those that need no tokens."""
    return of_moments(x) | ({} if token is None else of_tokens(x, token) | of_sequences(x, sequence))


def pairs_mean(u: Any) -> float:
    """Mean of the products of distinct rows."""
    products = u @ u.T
    return (products.sum() - np.trace(products)) / (len(u) * (len(u) - 1))


def unit(x: Any) -> Any:
    return x / np.linalg.norm(x, axis=-1, keepdims=True)


def exp_entropy(weights: Any) -> float:
    p = weights / weights.sum()
    p = p[p > 0]
    return math.exp(-(p * np.log(p)).sum())


def of_moments(x: Any) -> dict[str, float]:
    n, d = x.shape
    mean = x.mean(axis=0)
    q, m, v = (x**2).sum(axis=1).mean(), (mean**2).sum(), ((x - mean) ** 2).sum(axis=1).mean()
    sigma = np.linalg.svd(x, compute_uv=False)
    relative = sigma / sigma[0]
    eigenvalues = np.linalg.svd(x - mean, compute_uv=False) ** 2 / (n - 1)
    p = min(n, d)
    above = np.cumsum(eigenvalues) - eigenvalues.sum() * np.arange(1, p + 1) / p
    cosine = pairs_mean(unit(x))
    return {
        "mean_cosine": cosine,
        "token_uniformity": cosine,
        "drift_norm": math.sqrt(m),
        "mean_squared_norm": q,
        "mean_norm_squared": m,
        "variance": v,
        "drift_share": m / q,
        "rank_one_residual": np.linalg.norm(x - mean) / np.linalg.norm(x),
        "explained_variance_1": sigma[0] ** 2 / (sigma**2).sum(),
        "spectral_skewness": stats.skew(relative),
        "spectral_median": np.median(relative),
        "vanished_dimensions": (relative < 0.05).sum(),
        "kept_dimensions": (relative >= 0.05).sum(),
        "isoscore": (eigenvalues.sum() ** 2 / (eigenvalues**2).sum() - 1) / (d - 1),
        "participation_ratio": eigenvalues.sum() ** 2 / (eigenvalues**2).sum(),
        "norm_variation": stats.variation(np.linalg.norm(x, axis=1)),
        "effective_rank": exp_entropy(sigma),
        "effective_rank_eigenvalues": exp_entropy(eigenvalues),
        "eee": np.trapezoid(above) / (0.5 * p * eigenvalues.sum()),
        "eee_gini": np.abs(np.subtract.outer(eigenvalues, eigenvalues)).sum() / (2 * p * eigenvalues.sum()),
    }


def of_tokens(x: Any, token: Any) -> dict[str, float]:
    types, counts = np.unique(token, return_counts=True)
    rows = [x[token == t] for t in types]
    share = counts / counts.sum()
    mean = x.mean(axis=0)
    q = np.array([(r**2).sum(axis=1).mean() for r in rows])
    m = np.array([(r.mean(axis=0) ** 2).sum() for r in rows])
    v = np.array([((r - r.mean(axis=0)) ** 2).sum(axis=1).mean() for r in rows])
    between = share @ np.array([((r.mean(axis=0) - mean) ** 2).sum() for r in rows])
    within, total = share @ v, (x**2).sum(axis=1).mean()
    often = (counts >= 10) & (counts <= 100_000)
    alike = np.mean([pairs_mean(unit(r)) for r, kept in zip(rows, often, strict=True) if kept])
    found = {
        "within_variance": within,
        "between_variance": between,
        "mean_share": (mean**2).sum() / total,
        "within_share": within / total,
        "between_share": between / total,
        "within_of_variance": within / ((x - mean) ** 2).sum(axis=1).mean(),
        "squared_norm_variation": q[often].std() / q[often].mean(),
        "self_similarity": alike,
        "self_similarity_adjusted": alike - pairs_mean(unit(x)),
        **line("variance_on_mean", m[often], v[often]),
    }
    frequency = np.log10(counts[often])
    for name, values in (("squared_norm", q), ("mean_norm", m), ("variance", v)):
        found |= line(f"{name}_on_frequency", frequency, values[often])
        found |= line(f"log_{name}_on_frequency", frequency, np.log10(1 + values[often]))
    return found


def line(name: str, x: Any, y: Any) -> dict[str, float]:
    fitted = stats.linregress(x, y)
    return {f"{name}_slope": fitted.slope, f"{name}_r2": fitted.rvalue**2}


def of_sequences(x: Any, sequence: Any) -> dict[str, float]:
    parts = [x[sequence == s] for s in np.unique(sequence)]
    parts = [part for part in parts if len(part) > 1]
    inner = np.mean([(unit(part) @ unit(part.mean(axis=0))).mean() for part in parts])
    spectra = [np.linalg.svd(part, compute_uv=False) for part in parts]
    spectra = [s / s[0] for s in spectra]
    grid = np.linspace(0, 1, 1001)
    curve = np.mean([(s[:, None] <= grid).mean(axis=0) for s in spectra], axis=0)
    i = int(np.argmax(curve >= 0.8))
    reach = grid[i - 1] + (0.8 - curve[i - 1]) / (curve[i] - curve[i - 1]) * (grid[i] - grid[i - 1]) if i else 0.0
    return {
        "sequence_uniformity": np.mean([pairs_mean(unit(part)) for part in parts]),
        "cls_uniformity": np.mean([(unit(part[1:]) @ unit(part[0])).mean() for part in parts]),
        "sequence_rank_one_residual": np.mean([np.linalg.norm(p - p.mean(0)) / np.linalg.norm(p) for p in parts]),
        "intra_sentence_similarity": inner,
        "intra_sentence_similarity_adjusted": inner - pairs_mean(unit(x)),
        "sequence_spectral_skewness": np.mean([stats.skew(s) for s in spectra if np.ptp(s) > 1e-10]),
        "sequence_spectral_median": np.mean([np.median(s) for s in spectra]),
        "sequence_spectral_reach": reach,
        "sequence_vanished_dimensions": np.mean([(s < 0.05).sum() for s in spectra]),
    }


def across(drift: list[float], cosine: list[float]) -> dict[str, float]:
    found = {}
    for name, test, scale in (("spearman", stats.spearmanr, stats.rankdata), ("pearson", stats.pearsonr, np.array)):
        value, p = test(drift, cosine)
        orders = [np.corrcoef(scale(drift), order)[0, 1] for order in itertools.permutations(scale(cosine))]
        found |= {
            f"drift_correlation_{name}": value,
            f"drift_correlation_{name}_p": np.mean(np.abs(orders) >= abs(value) - 1e-12),
            f"drift_correlation_{name}_p_asymptotic": p,
        }
    return found


def errors(recorded: Recorded) -> dict[tuple[str, Any], float]:
    """Relative error of each reading, by measure and layer."""
    wanted = {layer: naive(x, recorded.token, recorded.sequence) for layer, x in recorded.layers.items()}
    columns = ([wanted[layer][name] for layer in wanted] for name in ("drift_norm", "mean_cosine"))
    wanted[None] = across(*columns)
    found = {(r.measure, r.layer): r.value for r in recorded.findings.readings}
    named = {(name, layer): value for layer, values in wanted.items() for name, value in values.items()}
    assert found.keys() == named.keys()
    return {key: _error(found[key], value) for key, value in named.items()}


def _error(found: float, value: float) -> float:
    """Relative error, absolute where the value is zero; none where both are undefined."""
    if math.isnan(found) or math.isnan(value):
        return 0.0 if math.isnan(found) and math.isnan(value) else math.inf
    return abs(found - value) / (abs(value) or 1.0)


def check(recorded: Recorded, precision: str) -> None:
    found = errors(recorded)
    wrong = {key: error for key, error in found.items() if not error <= TOLERANCE[precision]}
    assert not wrong, sorted(wrong.items(), key=lambda item: -item[1])


@pytest.mark.parametrize("precision", ["fast", "exact"])
def test_every_number_of_every_layer_of_minilm(precision: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded = record(monkeypatch, manual(20), precision)
    assert list(recorded.layers) == list(range(7))
    assert all(len(x) > 2 * x.shape[1] for x in recorded.layers.values())
    check(recorded, precision)


@pytest.mark.validation
@pytest.mark.parametrize("precision", ["fast", "exact"])
def test_every_number_of_smollm2_whose_first_tokens_are_a_hundred_times_longer_than_the_others(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record(monkeypatch, manual(60), precision, model=smollm2_file(), layers="0,10,15,20,30")
    lengths = np.linalg.norm(recorded.layers[15], axis=1)
    assert lengths.max() > 100 * np.median(lengths)
    check(recorded, precision)


@pytest.mark.validation
@pytest.mark.parametrize("precision", ["fast", "exact"])
def test_every_number_of_smollm2_whose_sentences_have_collapsed(
    precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = record(
        monkeypatch,
        manual(700, longest=14),
        precision,
        model=smollm2_file(),
        layers="0,10,15,20,30",
        pooling="mean",
        measures="moments",
    )
    for layer in (15, 20):
        assert recorded.findings.get("mean_cosine", layer).value > 0.99
        assert np.median(np.linalg.norm(recorded.layers[layer], axis=1)) > 1_500
    check(recorded, precision)
