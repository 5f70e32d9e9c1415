"""The version of isotrope."""

__version__ = "0.1.0"
