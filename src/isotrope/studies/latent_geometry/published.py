"""Table 2 of Marbut, Chandler and Wheeler (latent geometry), and the columns of their published measurements."""

from __future__ import annotations

from typing import NamedTuple


class Row(NamedTuple):
    """What the paper prints of a measure: r with GLUE of perturbed models, and the MSE on the other models."""

    bert_small: float
    roberta: float
    mse: float


#: Our names of the measures, the columns of the authors' files, and Table 2.
TABLE_2: dict[str, tuple[str, Row]] = {
    "point_patchiness_additive": ("a-patchiness", Row(0.902, 0.640, 0.089)),
    "point_count_variance_additive": ("a-count_var", Row(0.901, 0.652, 0.082)),
    "point_count_kl_additive": ("a-count_kl", Row(0.890, 0.228, 0.058)),
    "reconstruction_skew_additive": ("a-skew", Row(0.461, -0.574, 0.039)),
    "reconstruction_error_additive": ("a-error", Row(0.334, 0.227, 0.023)),
    "reconstruction_iqr_additive": ("a-iqr", Row(0.695, -0.051, 0.116)),
    "centroid_variance_additive": ("a-centroids", Row(0.537, -0.292, 0.053)),
    "cluster_eee_additive": ("a-point_dist", Row(-0.429, -0.764, 0.017)),
    "point_patchiness_product": ("p-patchiness", Row(0.326, -0.418, 0.029)),
    "point_count_variance_product": ("p-count_var", Row(0.327, -0.415, 0.029)),
    "point_count_kl_product": ("p-count_kl", Row(0.260, 0.496, 0.032)),
    "reconstruction_skew_product": ("p-skew", Row(-0.123, -0.184, 0.034)),
    "reconstruction_error_product": ("p-error", Row(0.420, 0.001, 0.024)),
    "reconstruction_iqr_product": ("p-iqr", Row(0.808, 0.514, 0.082)),
    "centroid_variance_product": ("p-centroids", Row(0.342, -0.422, 0.037)),
    "cluster_eee_product": ("p-point_dist", Row(-0.456, -0.705, 0.026)),
    "eee": ("EEE", Row(-0.557, -0.535, 0.054)),
    "vrm": ("VRM", Row(-0.573, -0.534, 0.016)),
    "isoscore": ("IsoScore", Row(-0.078, -0.398, 0.035)),
}

#: Cells whose print the authors' own files contradict: the sign of two correlations, and one MSE.
MISPRINTS = {
    ("reconstruction_skew_additive", "roberta"),
    ("point_count_kl_product", "roberta"),
    ("eee", "mse"),
}

#: R² of the regression of GLUE on point patchiness, without and with the architecture (Fig. 4 prints 0.3 and 0.5).
PATCHINESS_R2 = (0.317, 0.506)

#: The architecture of the 13 other models, by their names in the authors' file.
ARCHITECTURE_OF = {
    "chin": "BERT-base",
    "germ": "BERT-base",
    "shuffle_index": "BERT-base",
    "untrained": "BERT-base",
    "untrained_w_emb": "BERT-base",
    "bert-small": "BERT-small",
    "fc": "RoBERTa",
    "mlm": "RoBERTa",
    "asci": "RoBERTa",
    "rand": "RoBERTa",
    "roberta_sinha": "RoBERTa",
    "shuffle_corp": "RoBERTa",
    "shuffle_sent": "RoBERTa",
}

#: The files, the architecture of their models, and their column of GLUE averages.
FILES = {
    "bert_small_metrics.csv": ("BERT-small", "new_average"),
    "bert_model_metrics.csv": ("BERT-base", "average"),
    "roberta_model_metrics.csv": ("RoBERTa", "average"),
    "alt_model_metrics.csv": (None, "glue_average"),
}
