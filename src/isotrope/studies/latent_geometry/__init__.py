"""The latent-geometry study (Marbut, Chandler and Wheeler)."""
