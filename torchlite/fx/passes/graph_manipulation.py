"""Replaces node targets, and computes value sizes."""

from __future__ import annotations

from typing import Any, NamedTuple

from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, Target, map_arg
from .shape_prop import ShapeProp, TensorMetadata

__all__ = ["get_size_of_all_nodes", "get_size_of_node", "get_tensor_meta", "replace_target_nodes_with", "size_bytes"]


@compatibility(is_backward_compatible=False)
def replace_target_nodes_with(
    fx_module: GraphModule, old_op: str, old_target: Target, new_op: str, new_target: Target
) -> None:
    """Replace kind and target of all nodes with a given kind and target."""
    graph = Graph()
    env: dict[Node, Node] = {}
    for node in fx_module.graph.nodes:
        if node.op == old_op and node.target == old_target:
            args, kwargs = map_arg((node.args, dict(node.kwargs)), lambda n: env[n])
            env[node] = graph.create_node(new_op, new_target, args, kwargs, node.name)
        else:
            env[node] = graph.node_copy(node, lambda n: env[n])
    fx_module.graph = graph


@compatibility(is_backward_compatible=False)
class size_bytes(NamedTuple):
    """Size of a value in bytes, without and with the parameters of its module."""

    output_size: int
    total_size: int


@compatibility(is_backward_compatible=False)
def get_size_of_all_nodes(fx_module: GraphModule, args: list[Any] | None = None) -> None:
    """Store each node's size in `node.size_bytes`. `args` are sample inputs for shape propagation."""
    if args is not None:
        ShapeProp(fx_module).propagate(*args)
    for node in fx_module.graph.nodes:
        if node.op != "output":
            node.size_bytes = get_size_of_node(fx_module, node)  # type: ignore[attr-defined]


@compatibility(is_backward_compatible=False)
def get_tensor_meta(node: Node) -> TensorMetadata:
    """Return a node's tensor metadata. Raise RuntimeError without shape propagation."""
    found = node.meta.get("tensor_meta")
    if not found:
        raise RuntimeError(
            f"Node {node} has no tensor metadata associated with it! Check that shape propagation has run."
        )
    return found


@compatibility(is_backward_compatible=False)
def get_size_of_node(fx_module: GraphModule, node: Node) -> size_bytes:
    """Return the size of a node's value, without and with its module's parameters."""
    meta = get_tensor_meta(node)
    weights = 0
    if node.op == "call_module":
        weights = sum(weight.numel() for weight in fx_module.get_submodule(str(node.target)).parameters())
    elements = meta.shape.numel()
    return size_bytes(meta.dtype.itemsize * elements, meta.dtype.itemsize * (elements + weights))
