"""Split backward: first the gradients of a stage's inputs, later those of its parameters.

The first half runs the nodes of the graph that lead to the inputs, with all other edges removed, so that only requested
gradients are computed. Nodes with removed edges store their incoming gradient. The second half starts at these, with
the other edges.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torchlite as torch
from torchlite.autograd.engine import ancestors_of, edge_of, node_of
from torchlite.autograd.graph import GradientEdge

Root = tuple[Any, Any]  # a tensor, or an edge of the graph, and the gradient of it (None for a loss's)


def _partition_edges(edges: Any, inside: set[Any]) -> tuple[Any, Any]:
    """Split edges into those to inside nodes and the others, each with None in place of the other kind."""
    if isinstance(edges, tuple):
        pairs = [_partition_edges(edge, inside) for edge in edges]
        return tuple(ours for ours, _ in pairs), tuple(others for _, others in pairs)
    if edges is None:
        return None, None
    node = node_of(edges)
    return (edges, None) if (edges if node is None else node) in inside else (None, edges)


def _has_any(edges: Any) -> bool:
    return any(map(_has_any, edges)) if isinstance(edges, tuple) else edges is not None


def backward_input(
    roots: Sequence[Root], inputs: Sequence[torch.Tensor]
) -> tuple[tuple[torch.Tensor | None, ...], list[Root]]:
    """Return the gradients of leaf tensors, and the state for `backward_weight`."""
    starts = [edge_of(tensor) for tensor, _ in roots]
    inside = ancestors_of([node for node in map(node_of, starts) if node is not None], set(inputs))
    ends = inside | set(inputs)
    leads = [(start if node_of(start) is None else node_of(start)) in ends for start in starts]
    left = [root for root, lead in zip(roots, leads, strict=True) if not lead]
    towards = [root for root, lead in zip(roots, leads, strict=True) if lead]
    if not towards:
        return (None,) * len(inputs), left
    others: dict[Any, Any] = {}
    seen: dict[Any, Any] = {}
    handles = []
    for node in inside:
        ours, rest = _partition_edges(tuple(node._edges), ends)
        if _has_any(rest):
            others[node], node._edges = rest, ours
            handles.append(node.register_prehook(lambda grads, node=node: seen.__setitem__(node, grads)))
    try:
        tensors, grads = zip(*towards, strict=True)
        found = torch.autograd.grad(tensors, inputs, grads, retain_graph=True, allow_unused=True)
    finally:
        for handle in handles:
            handle.remove()
        for node, rest in others.items():
            node._edges = rest
    for node, grads in seen.items():
        left += [(GradientEdge(node, i), grad) for i, grad in enumerate(grads) if grad is not None]
    return found, left


def backward_weight(left: Sequence[Root]) -> None:
    """Add to `.grad` of the parameters the gradients that `backward_input` deferred."""
    if left:
        edges, grads = zip(*left, strict=True)
        torch.autograd.backward(edges, grads)
