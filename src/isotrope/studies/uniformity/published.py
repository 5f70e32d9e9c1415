"""The tables of Yan et al. 2022 (SoftDecay), their misprints, and functions that look numbers up."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from isotrope.evaluation.sts import MEAN
from isotrope.evaluation.treatments import RAW
from isotrope.finetuning.settings import family

#: The repairs that claims are about: whitening, and SoftDecay with the α of Appendix B.
WHITENING, FIXED = "whitening", "softdecay:alpha=-0.6:form=paper"

#: The row of SoftDecay with the α that is best on each set.
BEST = "softdecay, best α"

#: The columns of Table 1, by the names of our sets.
SETS = ("sts-b", "sts12", "sts13", "sts14", "sts15", "sts16", "sickr")

#: Table 1, Spearman × 100, by model and row; (NLI): fitted on its sentences, not on those of the set. The table says
#: bert-base-cased; its log and Appendix B say uncased.
TABLE_1: dict[str, dict[str, tuple[float, ...]]] = {
    "bert-base": {
        "none": (59.05, 57.72, 58.38, 61.97, 70.28, 69.63, 63.75),
        "sbert-wk": (16.07, 26.66, 14.74, 24.32, 28.84, 34.32, 41.54),
        "flow (NLI)": (58.56, 59.54, 64.69, 64.66, 72.92, 71.84, 65.44),
        "whitening (NLI)": (68.19, 61.69, 65.70, 66.02, 75.11, 73.11, 63.60),
        "whitening (NLI) 256": (67.51, 61.46, 66.71, 66.17, 74.82, 72.10, 64.90),
        "whitening": (68.72, 62.20, 68.52, 67.35, 74.73, 72.42, 60.43),
        BEST: (72.41, 65.16, 72.10, 69.49, 77.09, 77.05, 65.55),
    },
    "distilbert-base": {
        "none": (61.45, 59.68, 59.60, 63.54, 70.95, 69.90, 63.84),
        "whitening": (69.41, 61.82, 66.90, 67.69, 74.27, 72.81, 59.43),
        BEST: (71.10, 63.33, 70.62, 68.39, 76.34, 75.29, 63.40),
    },
    "albert-base": {
        "none": (46.18, 51.02, 43.94, 50.79, 60.83, 55.35, 54.99),
        "whitening": (61.76, 58.33, 62.89, 59.92, 68.84, 65.90, 58.03),
        BEST: (63.30, 59.42, 62.93, 61.09, 70.84, 68.60, 62.26),
    },
    "roberta-base": {
        "none": (57.54, 58.56, 50.37, 59.62, 66.64, 63.21, 60.75),
        "whitening": (68.18, 62.21, 67.13, 67.63, 74.78, 71.43, 58.80),
        BEST: (69.47, 62.97, 67.65, 68.09, 75.33, 73.26, 62.87),
    },
}

#: Fig. 2 and Section 3.2: medians of the singular values of BERT-base on MRPC, by layer.
FIG_2_MEDIANS = {0: 0.12, 12: 0.0397}

#: Table 4 by set and measure: BERT, ALBERT and DistilBERT, each without and with SoftDecay; None where its print is
#: shifted. The EVs of STS-14 are put back in order.
TABLE_4: dict[str, dict[str, tuple[float | None, ...]]] = {
    "sts-b": {
        "explained_variance_1": (0.6259, 0.0252, 0.6987, 0.0326, 0.7301, 0.0341),
        "rbf_distance": (-1.4624, -3.8534, -1.1602, -3.8016, -1.0549, -3.8052),
        "token_uniformity": (0.6195, 0.0274, 0.6983, 0.036, 0.7282, 0.037),
    },
    "sickr": {
        "explained_variance_1": (0.7383, 0.0212, 0.7711, 0.0274, 0.8135, 0.0289),
        "rbf_distance": (-1.0323, -3.8671, -0.8979, -3.8268, -0.7367, -3.8241),
        "token_uniformity": (0.7361, 0.023, 0.7706, 0.0295, 0.8130, 0.0311),
    },
    "sts12": {
        "explained_variance_1": (0.6219, 0.0182, 0.7052, 0.0247, 0.7321, 0.0245),
        "rbf_distance": (-1.4785, -3.8717, None, None, None, None),
        "token_uniformity": (0.6193, 0.0203, 0.7058, 0.0273, None, None),
    },
    "sts13": {
        "explained_variance_1": (0.5823, 0.0221, 0.6632, 0.0287, 0.7015, 0.0302),
        "rbf_distance": (-1.6189, -3.8706, -1.3032, -3.8258, -1.1594, -3.8262),
        "token_uniformity": (0.5817, 0.024, 0.6637, 0.031, 0.7021, 0.0329),
    },
    "sts14": {
        "explained_variance_1": (0.5933, 0.0151, 0.6729, 0.0204, 0.712, 0.0202),
        "rbf_distance": (-1.593, -3.9124, -1.2712, -3.8787, -1.1288, -3.8855),
        "token_uniformity": (0.5929, 0.016, 0.6743, 0.0217, 0.7127, 0.0215),
    },
    "sts15": {
        "explained_variance_1": (0.6072, 0.0183, 0.6827, 0.0239, 0.7225, 0.0248),
        "rbf_distance": (-1.5177, -3.8706, -1.2178, -3.8379, -1.0772, -3.8313),
        "token_uniformity": (0.6057, 0.0216, 0.6848, 0.0273, 0.7228, 0.0291),
    },
    "sts16": {
        "explained_variance_1": (0.6049, 0.0267, 0.6824, 0.0333, 0.7190, 0.0363),
        "rbf_distance": (-1.5262, -3.8375, None, None, None, None),
        "token_uniformity": (0.6054, 0.0286, 0.6864, 0.0360, 0.7201, 0.0390),
    },
}

#: Appendix C.2: the sets where whitened rows are no unit Gaussian because of abnormal points.
ABNORMAL_SETS = ("sts-b", "sts13", "sts16")

#: The models of Table 4's columns.
TABLE_4_MODELS = ("bert-base", "albert-base", "distilbert-base")

#: Table 5, Spearman × 100 in the order of SETS: BERT-base trained by SimCSE on a million sentences of Wikipedia, and on
#: the pairs of MNLI and SNLI, each without and with SoftDecay.
TABLE_5 = {
    "wikipedia": {
        "simcse": (74.48, 66.01, 81.48, 71.77, 77.55, 76.53, 69.36),
        "simcse+softdecay": (75.81, 63.25, 78.67, 70.41, 79.37, 77.69, 71.15),
    },
    "mnli and snli": {
        "simcse": (82.26, 77.37, 78.12, 77.81, 84.65, 81.10, 78.73),
        "simcse+softdecay": (83.51, 75.31, 81.70, 79.88, 86.33, 81.37, 79.04),
    },
}

#: The rows of Tables 2 and 6: task and metric.
GLUE_ROWS = (
    ("cola", "matthews"),
    ("sst2", "accuracy"),
    ("mrpc", "accuracy"),
    ("mrpc", "f1"),
    ("qnli", "accuracy"),
    ("rte", "accuracy"),
)

#: Tables 2 and 6, scores of fine-tuned models on GLUE's validation rows in per cent, in the order of GLUE_ROWS.
TABLES_2_AND_6: dict[str, dict[str, tuple[float, ...]]] = {
    "bert-base": {
        "base": (59.57, 92.32, 84.00, 89.50, 91.25, 64.98),
        "softdecay": (59.84, 93.12, 85.20, 89.65, 91.98, 68.23),
        "expdecay": (59.37, 92.43, 83.25, 87.92, 89.21, 64.98),
    },
    "albert-base": {
        "base": (46.47, 90.02, 85.54, 89.67, 89.99, 66.43),
        "softdecay": (48.91, 89.91, 85.05, 89.28, 90.24, 68.23),
    },
    "distilbert-base": {
        "base": (50.60, 90.48, 84.56, 89.16, 87.66, 56.68),
        "softdecay": (50.73, 91.40, 84.31, 89.00, 88.81, 59.21),
    },
}

#: The columns of Table 3: task and metric on GLUE's test rows, whose labels only the leaderboard knows.
TABLE_3_COLUMNS = ("mnli", "mnli mismatched", "qqp", "qnli", "sst2", "cola", "mrpc", "rte")

#: Table 3, scores that the leaderboard returned, in the order of TABLE_3_COLUMNS; the first two rows are those of
#: Carlsson et al. 2021.
TABLE_3 = {
    "sbert": (83.9, 83.1, 71.3, 90.5, 90.9, 47.0, 85.3, 61.6),
    "bert-ct": (82.3, 81.9, 70.1, 89.7, 91.3, 48.8, 84.4, 61.1),
    "softdecay": (84.6, 84.0, 71.6, 90.9, 93.3, 50.3, 86.2, 64.5),
}

#: Fig. 8: ΔL of three layers of BERT, first to last, on QNLI and RTE.
FIGURE_8 = {"qnli": (0.16, 0.12, 0.14), "rte": (0.18, 0.13, 0.16)}

MISPRINTS = (
    "Table 4, EVs of STS-14: the row is shuffled; read .5933/.0151, .6729/.0204, .712/.0202.",
    "Table 4, RBF of STS-12 and STS-16: the rows are shifted, so that ALBERT's and DistilBERT's are left out here.",
    "Table 4, TokenUni of STS-12 for DistilBERT repeats that of STS-13, and is left out here.",
    "Table 6, SST-2 with ExpDecay: the gain is 0.12 %, printed 1.19.",
    "Table 6, MRPC F1 with ExpDecay: the loss is 1.77 %, printed 1.21.",
    "Table 1, SoftDecay on BERT: the average gains 13.2 %, printed 12.0.",
    "Table 1, averages: DistilBERT's 64.12 and RoBERTa's with SoftDecay 68.50 are 64.14 and 68.52 by their own rows.",
    "Table 1 says bert-base-cased, the paper's log and Appendix B say uncased.",
)

#: The tables' models by the checkpoints that they may be of.
_CHECKPOINTS = {
    "bert-base-cased": "bert-base",
    "bert-base-uncased": "bert-base",
    "distilbert-base-cased": "distilbert-base",
    "distilbert-base-uncased": "distilbert-base",
    "albert-base-v1": "albert-base",
    "roberta-base": "roberta-base",
}


def find_table_model(name: str) -> str | None:
    """The model of the tables that a checkpoint is of, None for another.

    >>> [find_table_model(name) for name in ("bert-base-uncased", "albert/albert-base-v1", "albert-base-v2")]
    ['bert-base', 'albert-base', None]
    """
    return _CHECKPOINTS.get(name.rstrip("/").rpartition("/")[2])


def find_median(model: str, layer: int) -> float:
    """The median singular value of a layer in Fig. 2, on MRPC; NaN for another model or layer."""
    return FIG_2_MEDIANS.get(layer, math.nan) if find_table_model(model) == "bert-base" else math.nan


def name_fit_text(fit_text: str | Path | Sequence[str]) -> str:
    """The name in tables of a text that repairs are fitted on: NLI, or that of its file without folder and ending.

    >>> [name_fit_text(one) for one in ("data/AllNLI.txt", "data/qnli.txt", ["one text", "another"])]
    ['NLI', 'qnli', 'given text']
    """
    if not isinstance(fit_text, (str, Path)):
        return "given text"
    name = Path(fit_text).stem
    return "NLI" if re.search(r"(?<![qw])nli", name.lower()) else name


def name_row(repair: str, text: str) -> str:
    """The name of the row of a repair that is fitted on a text, as Table 1 prints it.

    >>> [name_row(repair, "NLI") for repair in ("flow", "whitening", "whitening:dimensions=256")]
    ['flow (NLI)', 'whitening (NLI)', 'whitening (NLI) 256']
    """
    kind, _, settings = repair.partition(":")
    return f"{kind} ({text}) {settings.removeprefix('dimensions=')}".rstrip()


def find_sts_score(model: str, name: str, repair: str, protocol: str, sets: Sequence[str] = SETS) -> float:
    """Find the score of a set in Table 1.

    Args:
        model: a short name.
        name: of a set, or of the mean.
        repair: the name of a row.
        protocol: Table 1 is by the protocol "paper".
        sets: the sets that the mean is over.

    Returns:
        The printed score, NaN where the table has none.
    """
    known = find_table_model(model)
    row = TABLE_1[known].get(repair) if known else None
    wanted = sets if name == MEAN else [name]
    if row is None or protocol != "paper" or not set(wanted) <= set(SETS):
        return math.nan
    return float(np.mean([row[SETS.index(one)] for one in wanted]))


def find_printed_gain(model: str) -> float:
    """The gain of SoftDecay over raw rows in per cent of the average of Table 1's row; NaN for another model."""
    rows = TABLE_1.get(model) or TABLE_1.get(find_table_model(model) or "")
    return 100 * sum(rows[BEST]) / sum(rows[RAW]) - 100 if rows else math.nan


def find_uniformity(model: str, name: str, measure: str, repair: str) -> float:
    """The value of a measure on a set in Table 4, NaN where the table has none."""
    known = find_table_model(model)
    if known not in TABLE_4_MODELS or name not in TABLE_4 or repair not in (RAW, FIXED):
        return math.nan
    value = TABLE_4[name][measure][2 * TABLE_4_MODELS.index(known) + (repair == FIXED)]
    return math.nan if value is None else value


def find_glue_score(model: str, task: str, metric: str, method: str) -> float:
    """The score of a method on a task in Tables 2 and 6, NaN where the tables have none."""
    row = TABLES_2_AND_6.get(find_table_model(model) or "", {}).get(family(method))
    return math.nan if row is None or (task, metric) not in GLUE_ROWS else row[GLUE_ROWS.index((task, metric))]


def find_simcse_score(model: str, method: str, name: str, trained: str) -> float:
    """The score of a set in Table 5, NaN where the table has none.

    Args:
        model: the name of the checkpoint.
        method: "simcse", or "simcse-nli" for the supervised half.
        name: the name of the set, or that of the mean over all seven.
        trained: "simcse" or "simcse+softdecay".
    """
    row = TABLE_5["mnli and snli" if method == "simcse-nli" else "wikipedia"].get(trained)
    if row is None or find_table_model(model) != "bert-base" or name not in (*SETS, MEAN):
        return math.nan
    return float(np.mean(row)) if name == MEAN else row[SETS.index(name)]
