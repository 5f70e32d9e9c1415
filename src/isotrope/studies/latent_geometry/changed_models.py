"""The changed models of the latent-geometry study: which there are, and how each is made of a trained one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from isotrope.sources.models.load import Loaded
from isotrope.studies.latent_geometry.weight_noise import foreign_embeddings, noisy, shuffled_embeddings, untrained

#: Noise on all weights of the blocks, N(0, 1) as in the paper, which correlations and regressions are over.
WEIGHTS = "weights"

#: The same with N(0, 0.02²), as large as initial weights; on one block; and on the rows that come out of the model.
SMALL, ONE_BLOCK, ROWS = "weights, small noise", "one block", "rows"

SHUFFLED, FOREIGN, UNTRAINED = "shuffled embeddings", "foreign embeddings", "untrained"

#: Another checkpoint as it is.
CHECKPOINT = "checkpoint"

#: Models that are not made by noise, on which regressions are tried.
OTHERS = (SHUFFLED, FOREIGN, UNTRAINED, CHECKPOINT)

_SMALL_DEVIATION = 0.02


@dataclass(frozen=True)
class Case:
    """One changed model. level: share of noise, NaN where there is none. block: the one with noise, None for all."""

    kind: str
    level: float
    seed: int
    block: int | None = None

    @property
    def name(self) -> str:
        """What tells it from the others of a model.

        >>> Case("one block", 0.1, 0, 3).name, Case("untrained", math.nan, 1).name
        ('one block 3 0.1 seed 0', 'untrained seed 1')
        """
        block = "" if self.block is None else f" {self.block}"
        level = "" if math.isnan(self.level) else f" {self.level:g}"
        return f"{self.kind}{block}{level} seed {self.seed}"

    @property
    def scored(self) -> bool:
        """Whether it can be fine-tuned: noise on rows is in no model."""
        return self.kind != ROWS

    def of(self, loaded: Loaded, foreign: Loaded | None = None) -> Loaded:
        """The changed model. foreign: whose embeddings it gets, where it gets any."""
        if self.kind == SHUFFLED:
            return shuffled_embeddings(loaded, self.seed)
        if self.kind == UNTRAINED:
            return untrained(loaded, self.seed)
        if self.kind == FOREIGN:
            assert foreign is not None
            return foreign_embeddings(loaded, foreign)
        if self.kind in (ROWS, CHECKPOINT):
            return loaded
        deviation = _SMALL_DEVIATION if self.kind == SMALL else 1.0
        return noisy(loaded, self.level, self.seed, deviation=deviation, block=self.block)


def cases(levels: Sequence[float], seeds: Sequence[int], blocks: int, *, foreign: bool = False) -> list[Case]:
    """Weight noise at all levels and seeds, and once each what else there is.

    blocks: of the model; each gets the middle one of the levels alone. foreign: whether there are other embeddings.

    >>> [case.name for case in cases([0, 0.1], [0, 1], 1)][:4]
    ['weights 0 seed 0', 'weights 0 seed 1', 'weights 0.1 seed 0', 'weights 0.1 seed 1']
    """
    first, noise = seeds[0], [level for level in levels if level]
    made = [Case(WEIGHTS, level, seed) for level in levels for seed in seeds]
    made += [Case(kind, math.nan, first) for kind in (SHUFFLED, *([FOREIGN] if foreign else []), UNTRAINED)]
    made += [Case(kind, level, first) for kind in (ROWS, SMALL) for level in noise]
    return made + [Case(ONE_BLOCK, noise[len(noise) // 2], first, block) for block in range(blocks if noise else 0)]
