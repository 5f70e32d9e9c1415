"""Norm and variance of token types by layer: the protocol of Yamagiwa and Shimodaira 2024."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from isotrope.studies.norm_variance.all_models import join_models
from isotrope.studies.norm_variance.frequency import measure_frequency
from isotrope.studies.norm_variance.layers import measure_layers
from isotrope.studies.norm_variance.options import MAX_WORDS, NormVarianceOptions
from isotrope.studies.norm_variance.post_norm import measure_post_norm
from isotrope.studies.norm_variance.texts import count_words
from isotrope.studies.norm_variance.token_types import MEASURES, compare_filters, compare_sizes
from isotrope.studies.norm_variance.words import measure_words
from isotrope.studies.result import Study
from isotrope.studies.runner import repeat_for_models, run_study

PAPER = "Yamagiwa and Shimodaira 2024, Norm of Mean Contextualized Embeddings Determines their Variance"

#: The experiments with each model, in their order.
_EXPERIMENTS = {
    "layers": measure_layers,
    "frequency": measure_frequency,
    "filters": compare_filters,
    "sizes": compare_sizes,
    "words": measure_words,
    "post-norm": measure_post_norm,
}


def norm_variance(
    *,
    output: str | Path,
    texts: int | None = None,
    share: float = 1.0,
    max_words: int = MAX_WORDS,
    merge_types: bool = True,
    column: str | None = None,
    group_by: str | None = None,
    **common: Any,
) -> Study:
    """Q, M and V of every token type and layer, their trade-off, shares, frequency, words and the post-LN bound.

    Texts and types are those of the paper by default, but for the share: its 1 % is of BookCorpus, and most texts at
    hand are smaller.

    Args:
        output: the folder for tables, figures and runs.
        texts: the most texts to read, of those that the next options leave.
        share: the random share of the texts, by a hash of each text and the seed.
        max_words: the most words of a text, longer ones are left out; 0 for any number.
        merge_types: whether tokens that are words and those that are parts of words, such as "ing" and "##ing", or
            "Ġing" and "ing", are one type.
        column: the column of the texts, where there are several.
        group_by: the column whose values are studied apart, such as the language.
        common: the options of every study, see `isotrope.studies.options.StudyOptions`. A quick study reads less text,
            and leaves out smaller corpora.

    References:
        Yamagiwa and Shimodaira 2024, Norm of Mean Contextualized Embeddings Determines their Variance.
    """
    options = NormVarianceOptions(
        output=output,
        texts=texts,
        share=share,
        max_words=max_words,
        merge_types=merge_types,
        column=column,
        group_by=group_by,
        **common,
    )
    experiments = dict(_EXPERIMENTS)
    if options.quick:
        del experiments["sizes"]
    prepare = partial(options.announce, MEASURES, 2.0 if options.quick else 2.75)
    parts = {"texts": partial(count_words, options)} | repeat_for_models(options, experiments)
    parts["all models"] = partial(join_models, options)
    return run_study("norm-variance", PAPER, parts, options, prepare=prepare)
