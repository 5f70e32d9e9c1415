"""Whether the nearest neighbours of a row are of its own set as often as by chance.

Neighbours of the own set are counted for each set by itself (Schilling 1986; Henze 1988), and both counts are tested
together (Chen and Friedman 2017). Their sum alone would miss a set of hubs: rows of both sets have neighbours in it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from isotrope.compute.arrays import to_unit_rows
from isotrope.statistics.neighbours import nearest
from isotrope.two_sample.pair_means import Vector
from isotrope.two_sample.two_sets import Draws, Indices, Matrix, TwoSets

#: Neighbours of a row that count.
NEIGHBOURS = 10


class NeighbourLists:
    """The nearest neighbours of each row by cosine, among all rows of both sets but those of its own unit."""

    def __init__(self, sets: TwoSets) -> None:
        size = np.bincount(sets.unit)
        smaller = min(int(sets.second.sum()), int((~sets.second).sum()))
        k = max(1, min(NEIGHBOURS, smaller - 1, len(sets.unit) - int(size.max())))
        self.which: Indices = nearest(to_unit_rows(sets.rows), k, unit=sets.unit).which
        # Rows of the own unit and set, and rows that may answer: neither changes when labels are exchanged.
        own = np.zeros((2, sets.units), np.int64)
        np.add.at(own, (sets.second.astype(np.int64), sets.unit), 1)
        self.own = own[sets.second.astype(np.int64), sets.unit].astype(np.float64)
        self.answering = (len(sets.unit) - size[sets.unit]).astype(np.float64)

    def count_own(self, labels: Draws, weights: Draws | None = None) -> OwnNeighbours:
        """Count how many neighbours are of the row's own set, for labels and weights of the rows, (n, r)."""
        labels = np.broadcast_to(labels, (len(labels), labels.shape[1] if weights is None else weights.shape[1]))
        heavy = np.ones_like(labels) if weights is None else weights
        same, total = (np.zeros(labels.shape, np.float32) for _ in range(2))
        for neighbour in self.which.T:
            there = heavy[neighbour]
            same += there * (labels[neighbour] == labels)
            total += there
        share = same / np.maximum(total, np.float32(1e-9))
        counted = heavy * (total > 0)
        count = labels.sum(axis=0, dtype=np.float64)
        found = []
        for mine, size in ((labels == 0, len(labels) - count), (labels > 0, count)):
            part = counted * mine
            whole = np.maximum(part.sum(axis=0, dtype=np.float64), 1e-9)
            chance = np.asarray((size - self.own[:, None]) / self.answering[:, None], np.float32)
            found.append([_sum(part, share) / whole, _sum(part, chance) / whole])
        return OwnNeighbours(*(np.array(rows) for rows in zip(*found, strict=True)))


class OwnNeighbours(NamedTuple):
    """The share of neighbours that are of the own set, for rows of the first set and of the second, (2, r).

    Args:
        share: The share.
        chance: The share that random neighbours would have.
    """

    share: Matrix
    chance: Matrix

    def compute_statistic(self) -> Vector:
        """Compute how unusual both shares are together, (r,): their squared distance from the mean of all draws."""
        beyond = self.share - self.chance
        beyond -= beyond.mean(axis=1, keepdims=True)
        inverse = np.linalg.pinv(np.cov(beyond), hermitian=True)
        return np.asarray(np.einsum("ir,ij,jr->r", beyond, inverse, beyond))

    def compute_squares(self) -> Vector:
        """Compute how far neighbourhoods are from a mixture, squared, (r,): 0 is one, 1 is two separate clouds.

        The share beyond chance is related to the largest that it can be, and both sets count alike.
        """
        beyond = self.share - self.chance
        most = np.where(beyond > 0, 1.0 - self.chance, self.chance)
        return np.asarray(np.mean((beyond / np.maximum(most, 1e-9)) ** 2, axis=0))


def _sum(weights: Draws, values: Draws) -> Vector:
    return np.asarray(np.einsum("ir,ir->r", weights, values, dtype=np.float64))
