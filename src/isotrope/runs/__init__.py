"""Run folders: findings, tables, statistics and checkpoints on disk, and comparisons of runs."""
