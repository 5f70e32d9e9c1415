"""Rows of RTE from the data folder, tokenized by the embedded model's tokenizer."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from testkit.paths import SHARED_DATA

DATA = SHARED_DATA


def rte(count: int, max_length: int = 48) -> tuple[list[dict[str, Any]], Any]:
    """The first training rows as features with labels, and the tokenizer; skips the test where there are no data."""
    from transformers import AutoTokenizer

    from isotrope.sources.models.location import find_embedded_folder

    path = DATA / "glue" / "rte" / "train.tsv"
    if not path.exists():
        pytest.skip(f"there is no {path}; set ISOTROPE_DATA to the folder of the data sets.")
    with path.open(encoding="utf-8", newline="") as file:
        rows = [row for _, row in zip(range(count), csv.DictReader(file, delimiter="\t"), strict=False)]
    tokenizer = AutoTokenizer.from_pretrained(find_embedded_folder())
    features = []
    for row in rows:
        encoded = tokenizer(row["sentence1"], row["sentence2"], truncation=True, max_length=max_length)
        kept = {key: encoded[key] for key in ("input_ids", "attention_mask")}
        features.append({**kept, "labels": int(row["label"])})
    return features, tokenizer
