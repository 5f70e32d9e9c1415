"""Vectors from arrays, files, object stores and vector databases."""
