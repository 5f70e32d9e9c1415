"""The one table of what the words of a verdict mean, with the evidence for each; scan and advise both use it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple


class Threshold(NamedTuple):
    """From `value` of `measure` on, in the worse direction, a space is called `word`.

    Attributes:
        word: what a space beyond the threshold is called.
        level: how bad that is, 1 mild, 2 bad, 3 very bad.
        measure: the number that is compared, one of `QUANTITIES` or of the lengths of rows.
        value: the threshold itself, which counts as beyond.
        worse: 1 where more is worse, -1 where less is.
        meaning: the word in a sentence.
        evidence: why the threshold is where it is.
    """

    word: str
    level: int
    measure: str
    value: float
    worse: int
    meaning: str
    evidence: str

    def applies(self, value: float) -> bool:
        """Whether a value lies at the threshold or beyond it; False for NaN."""
        return self.worse * value >= self.worse * self.value

    @property
    def bound(self) -> str:
        """The threshold in words: "from 0.75", "up to 0.135"."""
        return f"{'from' if self.worse > 0 else 'up to'} {self.value:g}"


class Quantity(NamedTuple):
    """A number that is compared with thresholds: a measure, or its share of what isotropic rows give.

    Attributes:
        measure: the measure that it is computed from.
        title: what the measure is called in a sentence.
        relative: whether its share of the null value counts, which takes more rows than dimensions.
        fewest_rows: with fewer it says nothing.
    """

    measure: str
    title: str
    relative: bool = False
    fewest_rows: int = 0

    def is_known(self, n: int, d: int, null: float) -> bool:
        """Whether n rows of d dimensions are enough for it."""
        compared = not self.relative or (n > ROWS_PER_DIMENSION * d and null > 0)
        return compared and n >= self.fewest_rows

    def scale(self, value: float, null: float) -> float:
        """The number for a value of the measure with its null value."""
        return value / null if self.relative else value


#: Fewer rows than this say nothing about a space.
FEWEST_ROWS = 40

#: Without more rows than this for each dimension the spread cannot be told from noise.
ROWS_PER_DIMENSION = 1.0

#: What thresholds of spaces are about, by name.
QUANTITIES = {
    "mean_cosine": Quantity("mean_cosine", "mean cosine"),
    "isoscore_share": Quantity("isoscore", "IsoScore", relative=True),
    "hubness": Quantity("hubness", "hubness", fewest_rows=1_000),
}

#: For each measure the worst word stands first. The 90 spaces are those of docs/validation.md: layers of four kinds of
#: models with known scores on three sets of sentence pairs; points are those that the advised repair gained.
THRESHOLDS = (
    Threshold(
        "collapsed",
        3,
        "mean_cosine",
        0.75,
        1,
        "nearly all rows point the same way",
        "Of 90 spaces with known scores, 33 lie here: a repair gained between 1.2 and 46.9 points in each of them, 3 "
        "or more in 28.",
    ),
    Threshold(
        "narrow",
        2,
        "mean_cosine",
        0.5,
        1,
        "the rows lie in a narrow cone",
        "Of 90 spaces with known scores, 35 lie between 0.5 and 0.75: a repair gained 3 points or more in 28 of them "
        "and nothing in 3.",
    ),
    Threshold(
        "leaning",
        1,
        "mean_cosine",
        0.2,
        1,
        "the rows lean to one side",
        "Of 90 spaces with known scores, none of the 7 below 0.2 gained anything by any repair; of the 15 between 0.2 "
        "and 0.5, 4 gained 3 points or more. Godey et al. find every layer of every speech model at 0.2 or more.",
    ),
    Threshold(
        "few directions",
        2,
        "isoscore_share",
        0.135,
        -1,
        "a few directions carry most of the spread around the mean",
        "IsoScore over that of isotropic rows of the same number and width: 0 where all rows lie on one line, in any "
        "number of dimensions. Of 90 spaces with known scores, 58 lie here, and a repair gained between 2.3 and 46.9 "
        "points in each of them; of the 32 above, 3 gained 3 points or more.",
    ),
    Threshold(
        "hubs",
        1,
        "hubness",
        2.0,
        1,
        "a few rows are among the nearest neighbours of very many",
        "Isotropic rows give 0.3 in 8 to 768 dimensions, all layers of all-MiniLM-L6-v2 with mean pooling over the "
        "Python manual 1.0 to 1.8; rows whose variances fall as 1/i reach 2.7 in 64 dimensions and 4 in 384.",
    ),
    Threshold(
        "far shorter",
        1,
        "length_ratio",
        1e-3,
        -1,
        "rows are far shorter than the median row",
        "Length over the median length. Of isotropic rows one in a million is as short in 2 dimensions, none in 8 or "
        "more; float16 and int8 storage keep nothing of such a row beside others.",
    ),
    Threshold(
        "far longer",
        1,
        "length_ratio",
        10.0,
        1,
        "rows are far longer than the median row",
        "Length over the median length. The longest of a million isotropic rows has 4.5 in 2 dimensions and less in "
        "more; a row with 10 weighs as much in the covariance as 100 others.",
    ),
)

#: What hurts search in a set of vectors, what hurts most first. Judged on 1,000 rows or more, k = 10.
SEARCH_THRESHOLDS = (
    Threshold(
        "hubs",
        2,
        "hub_share",
        0.08,
        1,
        "one row in a hundred holds a twelfth of all search results or more",
        "Isotropic rows give 0.019 in 8 to 768 dimensions, texts of SciFact, questions of Quora and on medicine "
        "embedded by all-MiniLM-L6-v2 0.034 and 0.035, by e5-small 0.042; rows whose variances fall as 1/i reach 0.098 "
        "in 384 dimensions.",
    ),
    Threshold(
        "never found",
        2,
        "antihub_share",
        0.1,
        1,
        "one row in ten or more is among the ten nearest of no other row",
        "Isotropic rows give 0.000, texts of SciFact, questions of Quora and on medicine embedded by all-MiniLM-L6-v2 "
        "0.001 to 0.009, by e5-small 0.023; rows whose variances fall as 1/i reach 0.11 in 384 dimensions.",
    ),
    Threshold(
        "no contrast",
        2,
        "relative_contrast",
        1.25,
        -1,
        "the nearest row is hardly nearer than any row",
        "Noise of 384 dimensions gives 1.22 with 3,000 rows, and medical questions embedded by all-MiniLM-L6-v2 1.24 "
        "under noise twice as long as they are; without noise they give 3.0, texts of SciFact 2.7 and by e5-small 1.8.",
    ),
    Threshold(
        "near-duplicates",
        1,
        "near_duplicate_share",
        0.1,
        1,
        "one row in ten or more has a nearly equal one that takes a place in its results",
        "Medical questions embedded by all-MiniLM-L6-v2 give 0.000, questions of Quora, many of which were asked "
        "twice, 0.06; isotropic rows give 0 in 16 dimensions or more.",
    ),
    Threshold(
        "metric mismatch",
        1,
        "metric_agreement_cosine_inner",
        0.4,
        -1,
        "by inner product most results differ from those by cosine, because the rows' lengths vary",
        "Questions of Quora and on medicine embedded by all-MiniLM-L6-v2 without its last, normalizing step give 0.73 "
        "and 0.48; half of the rows normalized and half not 0.38. Texts of SciFact embedded by e5-small without that "
        "step give 0.33: in a narrow cone, lengths that vary by 3 % decide the order.",
    ),
    Threshold(
        "outliers",
        1,
        "outlier_rows",
        0.005,
        1,
        "one row in two hundred or more is far from all others",
        "Isotropic rows and questions embedded by all-MiniLM-L6-v2 give 0.000; medical questions with 2 % of random "
        "rows among them 0.009.",
    ),
    Threshold(
        "islands",
        1,
        "island_share",
        0.3,
        1,
        "many rows are in small islands of the neighbour graph",
        "Isotropic rows give 0.000, medical questions embedded by all-MiniLM-L6-v2 0.01, questions of Quora with their "
        "many paraphrases 0.14; rows whose variances fall as 1/i 0.38 in 384 dimensions.",
    ),
)

#: Share of rows that repeat an earlier one.
DUPLICATES = (
    Threshold(
        "duplicates",
        2,
        "duplicate_share",
        0.1,
        1,
        "one row in ten or more repeats an earlier one",
        "Each copy takes one place of ten in the results of a query that finds it: with one in ten rows repeated, a "
        "list of ten loses about one.",
    ),
    Threshold(
        "duplicates",
        1,
        "duplicate_share",
        0.01,
        1,
        "one row in a hundred or more repeats an earlier one",
        "Equal texts give equal vectors: no set of distinct texts has any, so that one in a hundred is a fault of the "
        "pipeline that made them.",
    ),
)

#: Words for spaces in which a repair gained in every case that was tried.
REPAIRABLE = ("collapsed", "few directions")

#: A handful of rows: at most this many, and at most this share of all rows (but always one).
HANDFUL, HANDFUL_SHARE = 16, 0.01


def get(word: str) -> Threshold:
    """The threshold of a word."""
    return next(t for t in THRESHOLDS if t.word == word)


def level_of(word: str) -> int:
    """How bad a verdict's word is, 0 where it names no trouble."""
    return max((t.level for t in (*THRESHOLDS, *SEARCH_THRESHOLDS) if t.word == word), default=0)


def find_troubles(values: Mapping[str, float]) -> list[Threshold]:
    """The worst threshold that each value reaches, the worst of all first.

    Args:
        values: by measure; NaN where one has no value.

    >>> [t.word for t in find_troubles({"mean_cosine": 0.6, "isoscore_share": 0.9})]
    ['narrow']
    """
    reached = [
        next((t for t in THRESHOLDS if t.measure == measure and t.applies(value)), None)
        for measure, value in values.items()
        if not math.isnan(value)
    ]
    return sorted((t for t in reached if t is not None), key=lambda t: -t.level)


def name_space(values: Mapping[str, float]) -> str:
    """The word for a space: of the worst threshold that is reached, or "healthy"."""
    return next((t.word for t in find_troubles(values)), "healthy")
