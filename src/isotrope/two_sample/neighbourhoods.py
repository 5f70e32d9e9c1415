"""Whether the nearest neighbours of a row are of its own set more often than by chance (Schilling 1986; Henze 1988)."""

from __future__ import annotations

import numpy as np

from isotrope.compute.arrays import to_unit_rows
from isotrope.statistics.neighbours import nearest
from isotrope.two_sample.pair_means import Vector
from isotrope.two_sample.two_sets import Draws, Indices, TwoSets

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

    def separate(self, labels: Draws, weights: Draws | None = None) -> Vector:
        """How far the two sets are apart, for labels and weights of the rows, (n, r): 0 where mixed, 1 where separate.

        For each row this is the share of neighbours of its own set, beyond that by chance, of what could be beyond it.
        The rows of each set are averaged, and then the two sets, so that a small set counts as much as a large one.
        """
        labels = np.broadcast_to(labels, (len(labels), labels.shape[1] if weights is None else weights.shape[1]))
        heavy = np.ones_like(labels) if weights is None else weights
        same, total = (np.zeros(labels.shape, np.float32) for _ in range(2))
        for neighbour in self.which.T:
            there = heavy[neighbour]
            same += there * (labels[neighbour] == labels)
            total += there
        second = labels.sum(axis=0, dtype=np.float64)
        chance = [(count - self.own[:, None]) / self.answering[:, None] for count in (len(labels) - second, second)]
        expected = np.where(labels > 0, chance[1], chance[0])
        counted = heavy * (total > 0)
        beyond = (same / np.maximum(total, 1e-9) - expected) / np.maximum(1.0 - expected, 1e-9)
        parts = [counted * (labels > 0), counted * (labels == 0)]
        means = [(part * beyond).sum(axis=0) / np.maximum(part.sum(axis=0), 1e-9) for part in parts]
        return np.asarray((means[0] + means[1]) / 2.0, np.float64)
