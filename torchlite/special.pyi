"""Special functions: the names of `torch.special`."""

from ._stubs.special import *
