"""The token uniformity study (Yan et al. 2022)."""
