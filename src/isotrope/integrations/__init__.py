"""A fitted repair in the hands of other libraries, none of which needs isotrope to run it."""

from isotrope.integrations.export import KINDS, export

__all__ = ["KINDS", "export"]
