"""The latent-geometry study (Marbut, Chandler and Wheeler)."""

from isotrope.studies.latent_geometry.prediction import predict_glue
from isotrope.studies.latent_geometry.study import PAPER, latent_geometry

__all__ = ["PAPER", "latent_geometry", "predict_glue"]
