"""The norm and variance study (Yamagiwa and Shimodaira 2024)."""

from isotrope.studies.norm_variance.study import PAPER, norm_variance

__all__ = ["PAPER", "norm_variance"]
