"""Triplets of natural-language inference: a sentence, one that follows from it, and one that contradicts it."""

from __future__ import annotations

import csv
import math
from pathlib import Path

from isotrope.errors import InputError
from isotrope.finetuning.tasks import TaskRows
from isotrope.storage.files import check_regular

#: The columns of a file: those of SimCSE's nli_for_simcse.csv, or their meaning.
_COLUMNS = (("sent0", "sent1", "hard_neg"), ("premise", "entailment", "contradiction"))

#: The numbers of MNLI's labels.
_ENTAILMENT, _CONTRADICTION = 0.0, 2.0


def read_triplets(path: str | Path) -> TaskRows:
    """Read triplets from a file: comma-separated, or tab-separated for .tsv, with a header.

    Args:
        path: the file, with the columns sent0, sent1 and hard_neg, or premise, entailment and contradiction.
    """
    file = Path(path)
    check_regular(file)
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            reader = csv.DictReader(lines, delimiter="\t" if file.suffix == ".tsv" else ",", strict=True)
            columns = next((names for names in _COLUMNS if set(names) <= set(reader.fieldnames or ())), None)
            if columns is None:
                got = ", ".join(reader.fieldnames or ()) or "none"
                raise InputError(f"{str(file)!r} has the columns {got}, expected {', '.join(_COLUMNS[0])}.")
            texts = [tuple(row[name] or "" for name in columns) for row in reader]
    except FileNotFoundError:
        raise InputError(f"there is no file {str(file)!r}; give one of triplets.") from None
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{str(file)!r} cannot be read as a table of triplets ({error}); check the file.") from error
    if empty := sum(not all(triplet) for triplet in texts):
        raise InputError(f"{str(file)!r} has {empty:,} triplets with an empty text; remove them.")
    return TaskRows(texts, [math.nan] * len(texts))


def make_triplets(rows: TaskRows) -> TaskRows:
    """Make triplets of the labelled pairs of MNLI: each premise that has both kinds of hypotheses (Gao et al. 2021).

    >>> rows = TaskRows([("a", "b"), ("a", "c"), ("d", "e")], [0.0, 2.0, 0.0])
    >>> make_triplets(rows).texts
    [('a', 'b', 'c')]
    """
    sides: dict[float, dict[str, list[str]]] = {_ENTAILMENT: {}, _CONTRADICTION: {}}
    for (premise, hypothesis), label in zip(rows.texts, rows.labels, strict=True):
        if label in sides:
            sides[label].setdefault(premise, []).append(hypothesis)
    contradictions = sides[_CONTRADICTION]
    texts = [
        (premise, positive, negative)
        for premise, positives in sides[_ENTAILMENT].items()
        for positive, negative in zip(positives, contradictions.get(premise, ()), strict=False)
    ]
    return TaskRows(texts, [math.nan] * len(texts))
