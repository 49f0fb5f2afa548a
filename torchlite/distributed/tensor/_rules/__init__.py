"""The ways in which ops are computed in parts, by families: importing this fills the tables."""

from __future__ import annotations

from . import indices as indices
from . import losses as losses
from . import making as making
from . import nn as nn
from . import pointwise as pointwise
from . import products as products
from . import reductions as reductions
from . import shapes as shapes
