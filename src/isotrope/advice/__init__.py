"""Advice without labels: whether to repair a space, how, and in which layers; and the embedder built from it."""
