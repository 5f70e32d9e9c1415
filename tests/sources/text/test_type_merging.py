"""Merged token types against a plain loop over the names of tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import isotrope
from isotrope.errors import InputError, StoreError
from isotrope.sources.input import Input
from isotrope.sources.text.type_merging import TypeMerging, find_mark
from testkit.models import save_model

PIECES = ["walk", "talk", "##ing", "ing", "##ed", "ed", "##s", "sing", "##walk", "####"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A small BERT with a WordPiece vocabulary, in which `ing`, `ed` and `walk` are words and parts of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    folder = save_model(tmp_path_factory.mktemp("models") / "pieces", "bert")
    names = [*SPECIAL, *PIECES]
    ids = {name: i for i, name in enumerate(names)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    ends = [(name, ids[name]) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=ends)
    roles = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **roles).save_pretrained(folder)
    return str(folder)


def make_texts() -> list[str]:
    rng = np.random.default_rng(0)
    words = ["walking", "ing", "talked", "ed", "walks", "sing", "talkwalk", "walk"]
    return [" ".join(rng.choice(words, size=6)) for _ in range(40)]


def test_statistics_are_those_of_a_loop_over_names(model: str) -> None:
    """n, Q, M and V of each merged type, from the rows and the names of their tokens."""
    given = make_texts()
    options: dict[str, Any] = {"model": model, "text": given, "device": "cpu"}
    found = isotrope.scan(measures="squared_norm_variation", sample=0, merge_types=True, precision="exact", **options)
    source = Input(precision="exact", **options).open()
    names = source.loaded.tokenizer.convert_ids_to_tokens(range(len(SPECIAL) + len(PIECES)))
    by_name: dict[str, list[Any]] = {}
    for batch in source.batches():
        rows, tokens = batch.layers[2].numpy(), batch.rows.token
        assert tokens is not None
        for row, token in zip(rows, tokens, strict=True):
            by_name.setdefault(names[token].removeprefix("##"), []).append(row)
    table = found.tables["tokens"]
    table = table[table["layer"] == "2"].set_index("token")
    assert set(table.index) == set(by_name)
    assert {"[CLS]", "[SEP]", "ing", "walk", "ed"} <= set(by_name)
    for name, rows in by_name.items():
        x = np.array(rows)
        mean = x.mean(0)
        expected = (len(x), (x**2).sum(1).mean(), mean @ mean, ((x - mean) ** 2).sum(1).mean())
        assert tuple(table.loc[name, ["n", "Q", "M", "V"]]) == pytest.approx(expected, rel=1e-9, abs=1e-12)
        assert table.loc[name, "Q"] == pytest.approx(table.loc[name, "M"] + table.loc[name, "V"])  # Eq. 1
    assert "as one type" in found.source["rows_are"]


def test_types_that_are_not_merged_stay_apart(model: str) -> None:
    options: dict[str, Any] = {"model": model, "text": make_texts(), "device": "cpu", "sample": 0}
    apart = isotrope.scan(measures="squared_norm_variation", **options).tables["tokens"]
    merged = isotrope.scan(measures="squared_norm_variation", merge_types=True, **options).tables["tokens"]
    counts = [t[t["layer"] == "0"].set_index("token")["n"] for t in (apart, merged)]
    assert counts[0]["ing"] + counts[0]["##ing"] == counts[1]["ing"]
    assert counts[0].sum() == counts[1].sum()
    assert len(counts[1]) == len(counts[0]) - 3  # ing, ed, walk


def test_a_resumed_scan_refuses_other_types(model: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": model, "text": make_texts(), "device": "cpu", "measures": "mean_cosine"}
    isotrope.scan(output=tmp_path / "run", merge_types=True, **options)
    with pytest.raises(StoreError, match="begun with other rows_are"):
        isotrope.scan(output=tmp_path / "run", resume=True, **options)


class Tokenizer:
    def __init__(self, names: list[str], special: list[int]) -> None:
        self.names, self.all_special_ids = names, special

    def get_vocab(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}


@pytest.mark.parametrize("mark", ["Ġ", "▁"])
def test_marks_of_beginnings(mark: str) -> None:
    names = ["<s>", "ing", f"{mark}ing", mark, f"{mark}##", "##", f"{mark}<s>", f"{mark}{mark}", "the", f"{mark}the"]
    merging = TypeMerging.of(Tokenizer(names, [0]))
    assert merging.ids.tolist() == [0, 1, 1, 3, 4, 4, 6, 3, 8, 8]
    assert [merging.names[i] for i in (0, 1, 3, 4, 6, 8)] == ["<s>", "ing", mark, "##", "<s>", "the"]


def test_special_tokens_and_vocabularies_without_marks_stay() -> None:
    merging = TypeMerging.of(Tokenizer(["[CLS]", "##[CLS]", "a", "##a"], [0]))
    assert merging.ids.tolist() == [0, 1, 2, 2]
    assert TypeMerging.of(Tokenizer(["a", "b"], [])).ids.tolist() == [0, 1]
    assert find_mark(["####", "Ġa", "Ġb", "##"]) == "Ġ"


def test_rows_of_whole_texts_have_no_types_to_merge(model: str) -> None:
    with pytest.raises(InputError, match="no token types to merge"):
        Input(model=model, text=["walk"], pooling="mean", merge_types=True, device="cpu").open()
