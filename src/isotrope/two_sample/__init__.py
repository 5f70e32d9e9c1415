"""Two sets of rows: whether their means, covariances and neighbourhoods differ, by how much, and how sure that is."""

from isotrope.two_sample.shift_tests import SetComparison, ShiftTest, compare_sets
from isotrope.two_sample.two_sets import RowSet

__all__ = ["RowSet", "SetComparison", "ShiftTest", "compare_sets"]
