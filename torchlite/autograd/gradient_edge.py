"""Edges of the autograd graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._dispatch.autograd_graph import Node


class GradientEdge(NamedTuple):
    """Edge of the autograd graph: an output of a node. `grad` and `backward` accept it in place of a tensor.

    Args:
        node: The node, as `grad_fn` gives it.
        output_nr: The number of the node's output.
        ownership_token: Keeps the node alive. Default: ``None``.

    Example:
        >>> x = torch.ones(2, requires_grad=True)
        >>> y = x * 2
        >>> edge = torch.autograd.graph.get_gradient_edge(y)
        >>> torch.autograd.grad((y * y).sum(), edge)
        (tensor([4., 4.]),)
    """

    node: Node
    output_nr: int
    ownership_token: Any = None
