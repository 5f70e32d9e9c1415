"""The anisotropy study (Godey et al. 2023)."""

from isotrope.studies.anisotropy.study import PAPER, anisotropy

__all__ = ["PAPER", "anisotropy"]
