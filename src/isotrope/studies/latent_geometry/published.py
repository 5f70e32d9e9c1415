"""Table 2 of Marbut, Chandler and Wheeler, and the same again from the measurements that they published."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.regression import compute_skill, correlate, fit, split_models
from isotrope.studies.result import Claim, Table
from isotrope.studies.runner import Results
from isotrope.studies.verdict import judge_exact


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

#: The 13 other models by their names in the authors' file: their names in the paper, and their architecture.
OTHER_MODELS = {
    "chin": ("Chinese", "BERT-base"),
    "germ": ("German", "BERT-base"),
    "shuffle_index": ("Shuffle", "BERT-base"),
    "untrained": ("Untrained without embeddings", "BERT-base"),
    "untrained_w_emb": ("Untrained", "BERT-base"),
    "bert-small": ("BERT-small", "BERT-small"),
    "fc": ("First Char", "RoBERTa"),
    "mlm": ("MLM", "RoBERTa"),
    "asci": ("ASCII", "RoBERTa"),
    "rand": ("Random", "RoBERTa"),
    "roberta_sinha": ("RoBERTa", "RoBERTa"),
    "shuffle_corp": ("Corpus", "RoBERTa"),
    "shuffle_sent": ("Sequence", "RoBERTa"),
}

#: The files, the architecture of their models, and their column of GLUE averages.
FILES = {
    "bert_small_metrics.csv": ("BERT-small", "new_average"),
    "bert_model_metrics.csv": ("BERT-base", "average"),
    "roberta_model_metrics.csv": ("RoBERTa", "average"),
    "alt_model_metrics.csv": (None, "glue_average"),
}

#: How near ours must be to the printed numbers, which have three digits.
_NEAR = 0.001 + 1e-9


def read_models(folder: Path) -> pd.DataFrame:
    """One row for each measured model: model, architecture, other (one of the 13), glue, level, seed, our measures."""
    parts = []
    for name, (architecture, average) in FILES.items():
        path = folder / name
        if not path.is_file():
            raise InputError(
                f"there is no {name} in {str(folder)!r}; name the folder of the authors' files with --data."
            )
        table = pd.read_csv(path)
        model = table.iloc[:, 0].astype(str)
        facts = {
            "model": model if architecture else [OTHER_MODELS[name][0] for name in model],
            "architecture": architecture or [OTHER_MODELS[name][1] for name in model],
            "other": architecture is None,
            "glue": table[average],
            "level": table["alpha"] / 100.0 if "alpha" in table else math.nan,
            "seed": model.str.extract(r"_(\d+)$")[0].astype(float) if architecture is not None else math.nan,
        }
        parts.append(pd.DataFrame(facts | {ours: table[column] for ours, (column, _) in TABLE_2.items()}))
    models: pd.DataFrame = pd.concat(parts, ignore_index=True)
    return models


def repeat_table_2(models: pd.DataFrame) -> Results:
    """Pearson's r with GLUE, and the MSE on the 13 other models, with the printed numbers."""
    perturbed, others = split_models(models)
    rows, claims, wrong = [], [], 0
    for name, (_, printed) in TABLE_2.items():
        row: dict[str, Any] = {"measure": name}
        for column, architecture in (("bert_small", "BERT-small"), ("roberta", "RoBERTa")):
            found = correlate(perturbed[perturbed["architecture"] == architecture], name)
            row |= {column: found["r"], f"{column}_low": found["low"], f"{column}_high": found["high"]}
            row[f"{column}_printed"] = getattr(printed, column)
        row |= {"mse": compute_skill(fit(perturbed, [name, "architecture"]), others)["mse"], "mse_printed": printed.mse}
        rows.append(row)
        for column in ("bert_small", "roberta", "mse"):
            if abs(row[column] - row[f"{column}_printed"]) > _NEAR:
                wrong += (name, column) not in MISPRINTS
                ours, theirs = row[column], row[f"{column}_printed"]
                text = f"{name}, {column}: printed {theirs:.3f}, the authors' files give {ours:.3f}."
                claims.append(Claim("misprint", text, "Table 2", ours, theirs))
    cells = 3 * len(rows)
    text = f"{cells - len(claims)} of the {cells} numbers come out of the authors' files within 0.001."
    claims.insert(0, Claim(judge_exact(not wrong), text, "Table 2"))
    title = "Table 2: r of each measure with GLUE, and MSE on the others"
    return Results([Table("table_2", title, pd.DataFrame(rows))], claims)
