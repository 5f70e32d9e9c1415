"""isotrope measures, explains and repairs the geometry of embedding spaces."""

__version__ = "0.1.0"
