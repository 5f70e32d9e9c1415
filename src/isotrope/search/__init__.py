"""Search with vectors: calibrated cut-offs for cosines."""
