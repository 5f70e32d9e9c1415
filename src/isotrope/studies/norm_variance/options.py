"""The options of the norm and variance study: which texts it reads, in which groups, and what a token type is."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from isotrope.errors import InputError
from isotrope.sources.corpora.corpus import Corpus, open_corpus
from isotrope.sources.corpora.selection import TextSelection, select_texts
from isotrope.sources.models.load import Loaded
from isotrope.sources.source import Source
from isotrope.studies.options import StudyOptions, to_file_name

#: The most words of a sentence of the paper: fewer than 64.
MAX_WORDS = 63


@dataclass(frozen=True, kw_only=True)
class NormVarianceOptions(StudyOptions):
    """The options of the study.

    Args:
        share: the random share of the texts, by a hash of each text and the seed.
        max_words: the most words of a text; 0 for any number.
        merge_types: whether tokens that are words and those that are parts of words are one type.
        column: the column of the texts, where there are several.
        group_by: the column whose values are studied apart, such as a language.
    """

    share: float = 1.0
    max_words: int = MAX_WORDS
    merge_types: bool = True
    column: str | None = None
    group_by: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if len({to_file_name(name) for name in self.names}) < len(self.names):
            raise InputError(
                f"the groups {', '.join(map(str, self.groups))} do not all have file names of their own; name them in "
                "Latin letters and digits."
            )

    def settings(self) -> dict[str, Any]:
        """The settings that must not change when a study is resumed."""
        names = ("share", "max_words", "merge_types", "column", "group_by")
        return super().settings() | {name: getattr(self, name) for name in names}

    @cached_property
    def _whole(self) -> Corpus:
        return open_corpus(self.text, column=self.column, group_by=self.group_by)

    @cached_property
    def groups(self) -> list[str | None]:
        """The groups of the texts in the order of their names, None alone where they have none."""
        if self.group_by is None:
            return [None]
        return [*sorted({str(text.group) for text in self._whole})]

    @cached_property
    def _spaces(self) -> dict[str, tuple[str, str | None]]:
        """Model and group of each space that is studied, by its name."""
        models = super().names
        return {m if g is None else f"{m} {g}": (m, g) for m in models for g in self.groups}

    @property
    def names(self) -> list[str]:
        """The names of the models, each with each group where the texts have some."""
        return list(self._spaces)

    def reference(self, model: str) -> str | Loaded | None:
        """The hub id, folder or file of a model, without the group that it reads."""
        return super().reference(self._spaces.get(model, (model, None))[0])

    @cached_property
    def _corpora(self) -> dict[tuple[str | None, int | None], Corpus]:
        """The corpora that were selected, by group and number of texts: each counts its texts once."""
        return {}

    def select_corpus(self, group: str | None = None, most: int | None = None) -> Corpus:
        """The texts of a group; most: fewer of them than the study reads."""
        limits = [limit for limit in (self._most, most) if limit is not None]
        key = group, min(limits, default=None)
        if key not in self._corpora:
            selection = TextSelection(self.share, self.seed, self.max_words, *key)
            self._corpora[key] = select_texts(self._whole, selection)
        return self._corpora[key]

    def source(self, model: str, *, most: int | None = None, **more: Any) -> Source:
        """The rows of a model over the texts of its group; most: of fewer texts than the study reads."""
        if self.modality(model) != "text":
            return super().source(model, **more)
        reading = self.input(model, **{"merge_types": self.merge_types} | more)
        return reading.rows_over(self.select_corpus(self._spaces[model][1], most), reading.load())
