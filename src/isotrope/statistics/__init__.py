"""Statistics: values with an empty element and `+`, filled in one pass over rows."""

from typing import Any

from isotrope.deprecation import resolve_moved
from isotrope.statistics.collection import Collection, MomentsAndSample, Wanted
from isotrope.statistics.duplicates import DuplicateGroup, Duplicates
from isotrope.statistics.moments import Moments
from isotrope.statistics.points import Image, Points
from isotrope.statistics.queried_points import QueriedPoints
from isotrope.statistics.row_lengths import KeptRows, RowLengths
from isotrope.statistics.sample import Sample
from isotrope.statistics.sequences import SequenceSpectra, SequenceStatistics
from isotrope.statistics.summary import Summary
from isotrope.statistics.text_lengths import TextLengths
from isotrope.statistics.token_tables import TokenTables
from isotrope.statistics.tokens import TokenStatistics, TokenTable
from isotrope.statistics.usable_rows import UsableRows, prepare_rows

__all__ = [
    "Collection",
    "DuplicateGroup",
    "Duplicates",
    "Image",
    "KeptRows",
    "Moments",
    "MomentsAndSample",
    "Points",
    "QueriedPoints",
    "RowLengths",
    "Sample",
    "SequenceSpectra",
    "SequenceStatistics",
    "Summary",
    "TextLengths",
    "TokenStatistics",
    "TokenTable",
    "TokenTables",
    "UsableRows",
    "Wanted",
    "prepare_rows",
]


def __getattr__(name: str) -> Any:
    return resolve_moved(__name__, name)
