"""What a scan measures: measures by name and group, and the statistics that they need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from isotrope.errors import InputError
from isotrope.layers import Layer
from isotrope.measures import GROUPS, Measure, select
from isotrope.measures.selection import check_no_images, select_variants
from isotrope.statistics import Collection, Wanted

#: What is measured unless the user says otherwise: of models, and of vectors that someone already has.
DEFAULT_MEASURES = "moments,tokens,sequences"
DEFAULT_OF_VECTORS = "moments,search"

#: Measures across layers need this many.
_FEWEST_LAYERS = 3


@dataclass(frozen=True)
class SelectedMeasures:
    """What a scan computes, apart from what it reads.

    Args:
        measures: The measures, in the order of the readings.
        wanted: The statistics that they need.
        seed: Selects the sampled rows.
        named: Measures that were asked for by name; they have a reading even where they are undefined.
        default: Whether nothing was asked for: what the statistics do not allow is then left out.
    """

    measures: tuple[Measure, ...]
    wanted: Wanted
    seed: int
    named: frozenset[str] = frozenset()
    default: bool = False

    def select_measures(self, collection: Collection, layers: Sequence[Layer], *, texts: bool) -> list[Measure]:
        """Select the measures that the statistics allow, and those that were named: vectors have no tokens.

        texts: whether the texts of the rows are known.
        """
        kept = {name for summary in collection.summaries.values() for name in summary.parts()}
        missing = {"tokens"} - kept if "sequences" in kept else {"tokens", "sequences", "spectra"} - kept
        missing |= {"sample"} - kept if self.default else set()
        missing |= {"layers"} if len(layers) < _FEWEST_LAYERS else set()
        missing |= set() if texts else {"texts"}
        possible = [m for m in self.measures if m.needs not in missing or m.name in self.named]
        return possible or list(self.measures)


def resolve_measures(
    measures: str | list[str] | None,
    *,
    sample: int = 20_000,
    seed: int = 0,
    variant: str = "definition",
    vectors: bool = False,
    queries: bool = False,
) -> SelectedMeasures:
    """Resolve the names of measures and groups, and the statistics that they need.

    Args:
        measures: Names and groups, as a list or separated by commas; None for the default groups.
        sample: How many rows of each layer are sampled.
        seed: Selects the sampled rows.
        variant: Another definition that is computed beside the usual one, for the measures that have it.
        vectors: Whether the rows are vectors that someone already has: other groups by default, and equal rows are
            counted.
        queries: Whether queries search the rows; without any, measures of queries are left out unless they are named.
    """
    if sample < 0:
        raise InputError(f"the sample is {sample} rows, expected 0 or more.")
    if not 0 <= seed < 2**31:
        raise InputError(f"the seed is {seed}, expected 0 to {2**31 - 1:,}.")
    asked = name_default(vectors or queries) if measures is None else measures
    chosen = select(asked)
    names = [part.strip() for part in (asked.split(",") if isinstance(asked, str) else asked)]
    named = select(single) if (single := [n for n in names if n and n not in (*GROUPS, "all")]) else []
    if across := [name for m in chosen for name in m.across]:
        chosen = select([*(m.name for m in chosen), *across])
    check_no_images(chosen)
    if not queries:
        chosen = [m for m in chosen if m.needs != "queries" or m in named]
    chosen += select_variants(chosen, variant)
    needs = {m.needs for m in chosen}
    wanted = Wanted(
        tokens="tokens" in needs,
        sequences=bool(needs & {"sequences", "spectra"}),
        sample=sample,
        seed=seed,
        duplicates=vectors,
    )
    return SelectedMeasures(tuple(chosen), wanted, seed, frozenset(m.name for m in named), measures is None)


def name_default(vectors: bool) -> str:
    """The groups that are measured where none was asked for."""
    return DEFAULT_OF_VECTORS if vectors else DEFAULT_MEASURES
