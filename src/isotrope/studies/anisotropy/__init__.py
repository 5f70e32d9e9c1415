"""The anisotropy study (Godey et al. 2023)."""
