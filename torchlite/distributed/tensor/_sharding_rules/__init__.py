"""Sharding rules of ops by families; importing this package registers them."""

from . import creation_random_copy as making
from . import indexing as indices
from . import matmul as products
from . import nn_layers as nn
from . import pointwise as pointwise
from . import reductions as reductions
from . import softmax_losses as losses
from . import view_ops as shapes
