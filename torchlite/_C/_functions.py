"""Nodes that PyTorch has by name in C++."""

from .._dispatch.autograd_graph import AccumulateGrad
from ..autograd.function import DelayedError, UndefinedGrad
from ..autograd.graph import Node

Node.register(DelayedError)
Node.register(UndefinedGrad)

__all__ = ["AccumulateGrad", "DelayedError", "UndefinedGrad"]
