"""The token uniformity study (Yan et al. 2022)."""

from isotrope.studies.uniformity.study import PAPER, uniformity

__all__ = ["PAPER", "uniformity"]
