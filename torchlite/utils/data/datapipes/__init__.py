"""DataPipes: data sets built from other data sets by named functions."""

from . import iter as iter
from . import map as map

__all__ = ["iter", "map"]
