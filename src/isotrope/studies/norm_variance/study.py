"""Norm and variance of token types by layer: the protocol of Yamagiwa and Shimodaira 2024."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from isotrope.findings import Findings
from isotrope.measures import get
from isotrope.runs.saved_statistics import saved_summary
from isotrope.sources.text.words import WordSource
from isotrope.statistics.token_tables import FEWEST, MOST
from isotrope.studies.figures import run_figures
from isotrope.studies.norm_variance.claims import (
    judge_decomposition,
    judge_frequency,
    judge_post_norm,
    judge_trade_off,
    judge_words,
)
from isotrope.studies.norm_variance.figures import (
    RUN_FIGURES,
    make_post_norm_figure,
    make_slopes_figure,
    make_words_figure,
)
from isotrope.studies.norm_variance.layer_norms import find_layer_norms
from isotrope.studies.norm_variance.token_tables import (
    FILTERS,
    tabulate_filters,
    tabulate_token_counts,
    tabulate_variation,
)
from isotrope.studies.options import StudyOptions, layer_readings
from isotrope.studies.result import Study, Table
from isotrope.studies.runner import Experiment, Results, run_study

if TYPE_CHECKING:
    import pandas as pd

PAPER = "Yamagiwa and Shimodaira 2024, Norm of Mean Contextualized Embeddings Determines their Variance"

#: What a scan for this study measures.
_MEASURES = "tokens,mean_squared_norm,mean_norm_squared,variance"

_TRADE_OFF = ("squared_norm_variation", "variance_on_mean_slope", "variance_on_mean_r2")
_SHARES = ("mean_share", "within_share", "between_share", "within_of_variance")
_SIZES = (0.25, 0.5)


def norm_variance(*, output: str | Path, texts: int | None = None, **common: Any) -> Study:
    """Q, M and V of every token type and layer, their trade-off, shares, frequency, words and the post-LN bound.

    Args:
        output: the folder for tables, figures and runs.
        texts: the most texts to read.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`. A quick study reads less text,
            and leaves out smaller corpora.

    References:
        Yamagiwa and Shimodaira 2024, Norm of Mean Contextualized Embeddings Determines their Variance.
    """
    options = StudyOptions(output=output, texts=texts, **common)
    experiments = [
        Experiment(f"{model} {name}", partial(run, options, model))
        for model in options.names
        for name, run in _EXPERIMENTS.items()
        if not (options.quick and name == "sizes")
    ]
    prepare = partial(options.announce, _MEASURES, 2.0 if options.quick else 2.75)
    return run_study("norm-variance", PAPER, experiments, options, prepare=prepare)


def _scan(options: StudyOptions, model: str) -> Findings:
    return options.scan(model, options.source(model), _MEASURES)


def _measure_layers(options: StudyOptions, model: str) -> Results:
    """Figs. 4 to 6 and 18 to 20: the trade-off and the decomposition by layer."""
    import pandas as pd

    findings = _scan(options, model)
    rows = []
    for layer in findings.layers:
        by = layer_readings(findings, layer)
        tokens = saved_summary(options.run_folder(model), layer).tokens
        assert tokens is not None
        # All four from the sums by token type: moments in fast precision are another path, with roundings of their own.
        table = tokens.table
        q, m = float(table.n @ table.q) / int(table.n.sum()), table.mean_square
        w, b = by["within_variance"].value, by["between_variance"].value
        row: dict[str, Any] = {"layer": layer, "Q": q, "M": m, "V_W": w, "V_B": b, "residual": abs(q - m - w - b) / q}
        for name in _TRADE_OFF:
            row |= {name: by[name].value, f"{name}_low": by[name].low, f"{name}_high": by[name].high}
        for name in _SHARES:
            row |= {name: by[name].value, f"{name}_window": get(name)(tokens, variant="published")}
        rows.append(row | {"self_similarity": by["self_similarity"].value})
    frame = pd.DataFrame(rows)
    title = f"Decomposition Q = M + V_W + V_B and trade-off of V with M by layer, {model}"
    norms = find_layer_norms(options.input(model).load())
    claims = [*judge_decomposition(frame), *judge_trade_off(frame, post_norm=len(norms) == len(frame))]
    return Results(
        [Table("layers", title, frame)], claims, run_figures(options.run_folder(model), RUN_FIGURES["layers"])
    )


def _measure_frequency(options: StudyOptions, model: str) -> Results:
    """Figs. 7, 11 to 13 and 17: slopes and R² of Q, M and V on log10 of frequency, and of their logarithms."""
    import pandas as pd

    findings = _scan(options, model)
    rows = []
    for layer in findings.layers:
        by = layer_readings(findings, layer)
        row: dict[str, Any] = {"layer": layer}
        for letter, name in (("Q", "squared_norm"), ("M", "mean_norm"), ("V", "variance")):
            for prefix in ("", "log_"):
                for suffix in ("slope", "r2"):
                    r = by[f"{prefix}{name}_on_frequency_{suffix}"]
                    row[f"{prefix}{letter}_{suffix}"] = r.value
                    if prefix and suffix == "slope":
                        row |= {f"log_{letter}_low": r.low, f"log_{letter}_high": r.high}
        rows.append(row)
    frame = pd.DataFrame(rows)
    counts = findings.tables["tokens"]
    first = counts[counts["layer"] == str(findings.layers[0])]["n"].to_numpy()
    sizes = pd.DataFrame(
        [
            {
                "types": len(first),
                "tokens": int(first.sum()),
                "in window": int(((first >= FEWEST) & (first <= MOST)).sum()),
            }
        ]
    )
    tables = [
        Table("frequency", f"Q, M and V of a type on log10 of its frequency, by layer, {model}", frame),
        Table("sizes", f"Types |T| and tokens |X|, {model} (paper: 24,149 and 12,384,011 for BERT)", sizes),
        Table("histogram", f"How many types have log10 n between two tenths, {model}", _count_log_frequencies(first)),
    ]
    return Results(tables, judge_frequency(frame), run_figures(options.run_folder(model), RUN_FIGURES["frequency"]))


def _count_log_frequencies(n: Any) -> pd.DataFrame:
    """Fig. 10."""
    import pandas as pd

    edges = np.arange(0.0, math.ceil(10 * math.log10(n.max() + 1)) / 10 + 0.05, 0.1)
    frame: pd.DataFrame = pd.DataFrame({"from": edges[:-1], "types": np.histogram(np.log10(n), edges)[0]})
    return frame


def _compare_filters(options: StudyOptions, model: str) -> Results:
    """Whether the trade-off depends on which types are counted."""
    findings = _scan(options, model)
    title = f"C.V. of Q, slope and R² of V on M over types chosen otherwise, {model}: {', '.join(FILTERS)}"
    frame = tabulate_filters(findings.tables["tokens"], findings.layers)
    return Results([Table("filters", title, frame)], (), [make_slopes_figure(frame, "filters", "types", "slope")])


def _compare_sizes(options: StudyOptions, model: str) -> Results:
    """Whether the trade-off depends on how much text there is."""
    import pandas as pd

    from isotrope.sources.corpora.corpus import open_corpus

    every = [text.text for text in open_corpus(options.limited_text)]
    rows = []
    for share in (*_SIZES, 1.0):
        count = round(share * len(every))
        if share < 1.0:
            source = options.input(model, text=every[:count]).open()
            findings = options.scan(f"{model}-{share}", source, _MEASURES)
        else:
            findings = _scan(options, model)
        for layer in findings.layers:
            by = layer_readings(findings, layer)
            rows.append({"texts": count, "layer": layer} | {name: by[name].value for name in _TRADE_OFF})
    frame = pd.DataFrame(rows)
    figure = make_slopes_figure(frame, "sizes", "texts", "variance_on_mean_slope")
    return Results([Table("sizes", f"The trade-off over a part of the texts, {model}", frame)], (), [figure])


def _measure_words(options: StudyOptions, model: str) -> Results:
    """Fig. 22: what averaging the tokens of a word does to Q, M and V."""
    reading = options.input(model)
    source = WordSource(reading.open())  # type: ignore[arg-type]
    findings = options.scan(f"{model}-words", source, "squared_norm_variation", sample=0, checkpoints=False)
    frame = tabulate_token_counts(findings.tables["tokens"], findings.layers)
    title = f"Mean Q, M and V over words of 1, 2, ... tokens and their ratio to words of one, by layer, {model}"
    return Results([Table("words", title, frame)], judge_words(frame), [make_words_figure(frame)])


def _measure_post_norm(options: StudyOptions, model: str) -> Results:
    """Appendix I: Q against ‖γ‖² + ‖β‖², and whether its C.V. falls with 1/√n₀."""
    findings = _scan(options, model)
    norms = find_layer_norms(options.input(model).load())
    frame = tabulate_variation(findings.tables["tokens"], findings.layers, norms)
    title = f"Q, ‖γ‖² + ‖β‖² and the C.V. of Q over types of n₀ or more, {model}"
    return Results([Table("post_norm", title, frame)], judge_post_norm(frame), [make_post_norm_figure(frame)])


#: The experiments in their order.
_EXPERIMENTS = {
    "layers": _measure_layers,
    "frequency": _measure_frequency,
    "filters": _compare_filters,
    "sizes": _compare_sizes,
    "words": _measure_words,
    "post-norm": _measure_post_norm,
}
