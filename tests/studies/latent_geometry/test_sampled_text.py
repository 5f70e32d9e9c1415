"""The sample of the paper: lines of both corpora, scikit-learn's tokens, ten samples with their frequencies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from sklearn.feature_extraction.text import CountVectorizer

from isotrope.errors import InputError
from isotrope.studies.latent_geometry.corpus import find_files, is_complete, sample_text
from isotrope.studies.representative_sample import count_frequencies, list_curves, split_sequences, split_tokens
from testkit.paths import SHARED_DATA

WIKITEXT = SHARED_DATA / "wikitext-2" / "valid.txt"


def write_corpora(folder: Path) -> Path:
    """All splits of both corpora, under the names that they are distributed by."""
    for corpus, pattern in (("ptb", "ptb.{}.txt"), ("wikitext-2", "wiki.{}.tokens")):
        (folder / corpus).mkdir(parents=True)
        for split in ("train", "valid", "test"):
            lines = [f" {corpus} {split} line number {word} . It ends here ." for word in ("one", "two", "three")]
            text = "\n".join([" = A heading of words = ", "", *lines, lines[0], "too short"])
            (folder / corpus / pattern.format(split)).write_text(text + "\n", encoding="utf-8")
    return folder


def test_tokens_are_those_of_scikit_learn() -> None:
    lines = WIKITEXT.read_text("utf-8").splitlines()[:400] if WIKITEXT.is_file() else ["A U.S. firm 's 10 plans é"]
    analyse = CountVectorizer().build_analyzer()
    assert all(split_tokens(line, "scikit-learn") == analyse(line) for line in lines)


def test_sequences_have_3_to_50_of_these_tokens_once() -> None:
    """Both readings of what a token is: `a` is no token of scikit-learn."""
    long, longer = " ".join(["word"] * 50), " ".join(["word"] * 51)
    lines = ["a b c", "one two three", "one two three", " one two three ", "one , two", long, longer]
    assert split_sequences(lines, "lines", "scikit-learn") == ["one two three", long]
    assert split_sequences(lines, "lines", "words") == ["a b c", "one two three", "one , two", long]


def test_both_corpora_are_read_by_lines_where_all_splits_are_there(tmp_path: Path) -> None:
    root = write_corpora(tmp_path)
    files = find_files(root)
    assert is_complete(files)
    assert len(files) == 6
    found = sample_text(None, root)
    assert (found.unit, found.tokens, found.complete) == ("lines", "scikit-learn", True)
    # A heading of three tokens is a line like others, and the same in each file; the last of 9 lines is there twice.
    assert found.sources[-1]["sequences"] == 6 * 3 + 1
    assert sorted(found.texts)[0] == "= A heading of words ="
    assert sample_text(None, root, unit="sentences").sources[-1]["sequences"] == 6 * 3 + 1  # "It ends here ." is one


def test_without_penn_treebank_sentences_are_sampled(tmp_path: Path) -> None:
    root = write_corpora(tmp_path)
    for path in (root / "ptb").iterdir():
        path.unlink()
    found = sample_text(None, root)
    assert (found.unit, found.complete) == ("sentences", False)
    assert all(not text.startswith("=") for text in found.texts)
    assert sample_text(["one two three four", "x"], root).texts == [
        "one two three four"
    ]  # a given text is read instead
    with pytest.raises(InputError, match="no sentences of 3 to 50 tokens"):
        sample_text(["x"], None)


def test_curves_are_the_ranks_of_the_counts() -> None:
    texts = [f"the word{i % 7} of line {i % 3}{i}" for i in range(200)]
    rows = list_curves(count_frequencies(texts, "scikit-learn"))
    words = Counter(token for text in texts for token in CountVectorizer().build_analyzer()(text))
    ranked = [count for _, count in words.most_common()]
    for row in (row for row in rows if row["what"] == "words"):
        assert row["share"] == pytest.approx(ranked[row["at"] - 1] / sum(ranked))
    lengths = Counter(len(CountVectorizer().build_analyzer()(text)) for text in texts)
    assert {row["at"]: row["share"] for row in rows if row["what"] == "lengths"} == pytest.approx(
        {length: count / 200 for length, count in lengths.items()}
    )


def test_ten_samples_have_curves_of_their_own(tmp_path: Path) -> None:
    found = sample_text(None, write_corpora(tmp_path), count=8)
    assert len(found.samples) == 10
    assert all(len(sample.texts) == 8 for sample in found.samples)
    assert {row["sample"] for row in found.curves} == set(range(11))
    first = {row["at"]: row["share"] for row in found.curves if row["sample"] == 1 and row["what"] == "lengths"}
    expected = Counter(len(split_tokens(text, "scikit-learn")) for text in found.texts)
    assert first == pytest.approx({length: count / 8 for length, count in expected.items()})
