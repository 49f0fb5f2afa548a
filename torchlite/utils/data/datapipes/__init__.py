"""Data sets that are made of one another, in steps that have names."""

from . import iter as iter
from . import map as map

__all__ = ["iter", "map"]
