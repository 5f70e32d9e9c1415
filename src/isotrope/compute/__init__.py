"""Threads, and arrays of numpy and torch."""
