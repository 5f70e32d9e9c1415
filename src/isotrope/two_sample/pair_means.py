"""Squared distances between two means, estimated without bias from products of pairs of rows.

With the product x·y, the distance is that of the mean rows; with (x·y)², that of the covariances of centred rows (Chen
and Qin 2010; Li and Chen 2012). No pair is of one unit, so that neither the noise of a row nor that of its sequence
counts as a distance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from isotrope.two_sample.two_sets import Draws, Matrix, TwoSets

Vector = NDArray[np.float64]


class PairMeans(NamedTuple):
    """Mean products of pairs of rows: within the first set, within the second, between them; one for each draw."""

    first: Vector
    second: Vector
    between: Vector

    @property
    def distance(self) -> Vector:
        """The squared distance of the two means; an estimate may be below zero."""
        return np.asarray(self.first + self.second - 2.0 * self.between)


class Products:
    """The products of all pairs of rows, (n, n), as float32.

    Args:
        sets: Which pairs are of one unit; they do not count.
        rows: (n, d), in units in which their squared lengths are about 1.
        power: 1 for the means of rows, 2 for their covariances.
    """

    def __init__(self, sets: TwoSets, rows: Matrix, power: int) -> None:
        self.sets = sets
        narrow = rows.astype(np.float32)
        self.values = narrow @ narrow.T
        if power == 2:
            np.square(self.values, out=self.values)
        if sets.units == len(rows):
            np.fill_diagonal(self.values, 0.0)
        else:
            self.values[sets.unit[:, None] == sets.unit] = 0.0

    def average(self, labels: Draws) -> PairMeans:
        """Average over the pairs of two sets, for labels of the rows, (n, r)."""
        product = self.values @ labels
        return self._average(1.0 - labels, labels, self.values.sum(axis=1)[:, None] - product, product)

    def average_weighted(self, weights: Draws) -> PairMeans:
        """Average over the pairs of the two sets, for weights of the rows, (n, r)."""
        second = weights * self.sets.second[:, None]
        first = weights - second
        return self._average(first, second, self.values @ first, self.values @ second)

    def _average(self, first: Draws, second: Draws, to_first: Draws, to_second: Draws) -> PairMeans:
        sums = [_sum_products(x, y) for x, y in ((first, to_first), (second, to_second), (first, to_second))]
        counts = _count_pairs(self.sets, first, second)
        return PairMeans(*(total / count for total, count in zip(sums, counts, strict=True)))


def average_products(sets: TwoSets, rows: Matrix) -> PairMeans:
    """Average x·y over the pairs of centred rows, (n, d), of both sets, without the table of all products.

    The sum over all pairs is zero, so that the sum over pairs of different units is minus that over pairs of one.
    """
    labels = sets.second[:, None]
    here, there = sets.membership @ (rows * ~labels), sets.membership @ (rows * labels)
    sums = [-np.sum(x * y, keepdims=True).ravel() for x, y in ((here, here), (there, there), (here, there))]
    counts = _count_pairs(sets, (~labels).astype(np.float32), labels.astype(np.float32))
    return PairMeans(*(total / count for total, count in zip(sums, counts, strict=True)))


def _count_pairs(sets: TwoSets, first: Draws, second: Draws) -> list[Vector]:
    """Count the pairs of different units within the first set, within the second and between them."""
    here, there = sets.membership @ first, sets.membership @ second
    n, m = first.sum(axis=0, dtype=np.float64), second.sum(axis=0, dtype=np.float64)
    return [n * n - _sum_products(here, here), m * m - _sum_products(there, there), n * m - _sum_products(here, there)]


def _sum_products(x: Draws, y: Draws) -> Vector:
    """Sum x times y over rows, column by column, in float64."""
    return np.asarray(np.einsum("ij,ij->j", x, y, dtype=np.float64))
