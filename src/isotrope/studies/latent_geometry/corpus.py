"""The text that spaces are sampled by: Penn Treebank and WikiText-2 where they are there, as in the paper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import open_corpus
from isotrope.storage.files import name_path_in_errors
from isotrope.studies.options import Tokens, Unit
from isotrope.studies.representative_sample import (
    SEQUENCES,
    TextSample,
    count_frequencies,
    draw_samples,
    list_curves,
    split_sequences,
)

#: The corpora of the paper by their folders, and the splits that are read of each.
CORPORA = {"ptb": "Penn Treebank", "wikitext-2": "WikiText-2"}
SPLITS = ("train", "valid", "test")
_SUFFIXES = (".txt", ".tokens", ".raw")


@dataclass(frozen=True)
class SampledText:
    """Ten samples of sequences, and the text that they are from.

    Args:
        samples: ten of them, the one nearest to the text first.
        sources: files, and the number of sequences in all.
        complete: whether the text is all that the paper reads.
        unit: what a sequence is.
        tokens: what is counted in it.
        curves: how often words, pairs and lengths occur in the text and in each sample.
    """

    samples: list[TextSample]
    sources: list[dict[str, Any]]
    complete: bool
    unit: Unit
    tokens: Tokens
    curves: list[dict[str, Any]]

    @property
    def texts(self) -> list[str]:
        """The sequences of the nearest sample."""
        return self.samples[0].texts


def find_files(root: str | Path | None) -> list[Path]:
    """Find the splits of both corpora in the folder of the data."""
    if root is None:
        return []
    files = [path for folder in CORPORA for path in sorted((Path(root) / folder).glob("*")) if path.suffix in _SUFFIXES]
    return [path for path in files if _find_split(path) is not None]


def _find_split(path: Path) -> str | None:
    return next((split for split in SPLITS if split in path.stem.lower()), None)


def _read_lines(path: Path) -> list[str]:
    with name_path_in_errors(path), path.open(encoding="utf-8") as file:
        return [line for line in file if line.strip()]


def is_complete(files: list[Path]) -> bool:
    """Whether files are all splits of both corpora."""
    there = {(path.parent.name, _find_split(path)) for path in files}
    return there == {(folder, split) for folder in CORPORA for split in SPLITS}


def sample_text(
    text: Any,
    root: str | Path | None,
    *,
    count: int = SEQUENCES,
    unit: Unit | None = None,
    tokens: Tokens = "scikit-learn",
    seed: int = 0,
) -> SampledText:
    """Draw ten samples of sequences of a text.

    Args:
        text: as for a scan; None for Penn Treebank and WikiText-2 in the folder of the data, or, where it has neither,
            the embedded text.
        root: the folder of the data, None for none.
        count: the most sequences of a sample.
        unit: what a sequence is; None for lines where all splits of both corpora are there, as in the paper, and
            sentences elsewhere: a line of WikiText-2 is a paragraph, and few have at most 50 tokens.
        tokens: what is counted.
        seed: of the draws.

    Returns:
        The samples and what they are from.
    """
    files = find_files(root) if text is None else []
    complete = is_complete(files)
    unit = unit or ("lines" if complete else "sentences")
    given = {f"{path.parent.name}/{path.name}": _read_lines(path) for path in files}
    if not given:
        given = {"the given text": [item.text for item in open_corpus(text)]}
    lines, sources = [], []
    for name, read in given.items():
        sources.append({"text": name, "lines": len(read), "sequences": len(split_sequences(read, unit, tokens))})
        lines += read
    sequences = split_sequences(lines, unit, tokens)
    sources.append({"text": "all, each sequence once", "lines": len(lines), "sequences": len(sequences)})
    if not sequences:
        raise InputError(f"the text has no {unit} of 3 to 50 tokens to sample; give another with --text.")
    samples = draw_samples(sequences, min(count, len(sequences)), seed=seed, tokens=tokens)
    curves = [{"sample": 0} | row for row in list_curves(count_frequencies(sequences, tokens))]
    for number, sample in enumerate(samples, start=1):
        curves += [{"sample": number} | row for row in list_curves(sample.frequencies)]
    return SampledText(samples, sources, complete, unit, tokens, curves)
