"""Tables 2 and 6 of Yan et al. 2022 (SoftDecay): fine-tuned models on GLUE's validation rows, in per cent.

Table 3 is of GLUE's test rows, whose labels are secret: nothing here can be set beside it.
"""

from __future__ import annotations

#: The rows of the tables: task and metric.
ROWS = (
    ("cola", "matthews"),
    ("sst2", "accuracy"),
    ("mrpc", "accuracy"),
    ("mrpc", "f1"),
    ("qnli", "accuracy"),
    ("rte", "accuracy"),
)

#: Scores in the order of ROWS, by model and method.
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
