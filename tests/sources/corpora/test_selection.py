"""Shares, lengths and groups of a corpus: which texts are left, in any order, and what the run says of it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import isotrope
from isotrope.errors import InputError, StoreError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.sources.corpora.selection import TextSelection, select_texts
from isotrope.sources.input import Input
from testkit.models import save_model, texts


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_model(tmp_path_factory.mktemp("models") / "small", "bert"))


def select(given: Iterable[str], **selection: Any) -> list[str]:
    return [text.text for text in select_texts(open_corpus(list(given)), TextSelection(**selection))]


NUMBERED = [f"text number {i}" for i in range(20_000)]


def test_a_share_is_the_same_in_any_order_and_in_any_part() -> None:
    kept = select(NUMBERED, share=0.1)
    shuffled = np.random.default_rng(0).permutation(NUMBERED).tolist()
    assert sorted(select(shuffled, share=0.1)) == sorted(kept)
    assert select(NUMBERED[:7000], share=0.1) + select(NUMBERED[7000:], share=0.1) == kept


@pytest.mark.parametrize("share", [0.01, 0.1, 0.7])
def test_a_share_is_a_binomial_draw(share: float) -> None:
    counts = [len(select(NUMBERED, share=share, seed=seed)) for seed in range(3)]
    low, high = stats.binom.interval(1 - 1e-6, len(NUMBERED), share)
    assert all(low <= count <= high for count in counts)
    both = set(select(NUMBERED, share=share, seed=0)) & set(select(NUMBERED, share=share, seed=1))
    low, high = stats.binom.interval(1 - 1e-6, len(NUMBERED), share**2)  # seeds draw independently
    assert low <= len(both) <= high
    assert set(select(NUMBERED, share=share / 2)) < set(select(NUMBERED, share=share))


def test_texts_of_fewer_than_64_words() -> None:
    given = [" ".join(["word"] * count) for count in (1, 62, 63, 64, 65)] + ["tab\tand\nline " * 21, "word  " * 63]
    kept = select(given, max_words=63)
    assert kept == [text for text in given if len(text.split()) < 64]
    assert [len(text.split()) for text in kept] == [1, 62, 63, 63, 63]


def test_what_is_left_out_is_counted_and_told() -> None:
    given = ["one two three", " ", *NUMBERED[:100], "a b c d"]
    corpus = select_texts(open_corpus(given), TextSelection(share=0.5, max_words=3, most=40))
    assert [text.id for text in corpus] == list(range(40))
    told = select_texts(open_corpus(given), TextSelection(share=0.5, seed=1, max_words=3)).describe()["selection"]
    by_share = 102 - len(select([text for text in given if text.strip()], share=0.5, seed=1))
    assert told["left_out"] == {"share": by_share, "max_words": 102 - by_share - told["texts"], "group": 0}
    assert (told["share"], told["seed"], told["max_words"]) == (0.5, 1, 3)
    everything = select_texts(open_corpus(given), TextSelection(seed=3))
    assert everything.describe() == open_corpus(given).describe()


def test_one_group_of_a_file(tmp_path: Path) -> None:
    lines = [{"text": f"{language} {i}", "language": language} for i in range(5) for language in ("de", "fr")]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = open_corpus(tmp_path / "a.jsonl", column="text", group_by="language")
    found = list(select_texts(corpus, TextSelection(group="fr")))
    assert [text.text for text in found] == [f"fr {i}" for i in range(5)]
    assert {text.group for text in found} == {None}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"share": 0.0}, "the share of the texts is 0.0, expected more than 0"),
        ({"share": 1.5}, "expected more than 0 and at most 1"),
        ({"share": float("nan")}, "expected more than 0"),
        ({"max_words": -1}, "expected 1 or more, or 0"),
        ({"max_words": 1}, "no text of texts in memory is left"),
    ],
)
def test_selections_that_cannot_be(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        select(["one two", "three four"], **wrong)


def test_a_scan_reads_the_selected_texts(model: str, tmp_path: Path) -> None:
    given = texts(80)
    options: dict[str, Any] = {"model": model, "device": "cpu", "measures": "mean_cosine", "sample": 0}
    found = isotrope.scan(text=given, share=0.6, max_words=12, seed=5, output=tmp_path / "run", **options)
    kept = [text for text in select(given, share=0.6, seed=5) if len(text.split()) <= 12]
    alone = isotrope.scan(text=kept, **options)
    assert found.counts["texts"] == len(kept)
    assert [r.value for r in found.readings] == pytest.approx([r.value for r in alone.readings])
    assert found.source["corpus"]["selection"]["texts"] == len(kept)
    for other in ({"share": 0.5}, {"max_words": 0}, {"max_words": 11}, {"share": 1.0, "max_words": 0}):
        given_now = {"share": 0.6, "max_words": 12} | other
        with pytest.raises(StoreError, match="begun with other corpus"):
            isotrope.scan(text=given, seed=5, output=tmp_path / "run", resume=True, **given_now, **options)


@pytest.mark.parametrize("option", [{"share": 0.5}, {"max_words": 3}, {"merge_types": True}])
def test_vectors_have_no_texts_to_select(option: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"no use for {next(iter(option)).replace('_', '-')}"):
        Input(vectors=np.eye(3), **option).open()
