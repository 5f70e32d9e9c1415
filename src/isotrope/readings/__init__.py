"""Readings: the value of a measure with its interval, its null value and its cost."""
