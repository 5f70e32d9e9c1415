"""For people who search with vectors: calibrated cut-offs and the fidelity of an index."""
