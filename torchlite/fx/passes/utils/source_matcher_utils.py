"""Groups nodes by the source function or module class they were traced from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...node import Node

__all__ = ["SourcePartition", "check_subgraphs_connected", "get_source_partitions"]


@compatibility(is_backward_compatible=False)
@dataclass
class SourcePartition:
    """Nodes from one source, with their inputs, outputs and parameters."""

    nodes: list[Node]
    source: Any
    input_nodes: list[Node] = field(default_factory=list)
    output_nodes: list[Node] = field(default_factory=list)
    params: list[Node] = field(default_factory=list)


def _find_source(node: Node, wanted: list[Any]) -> tuple[Any, str] | None:
    """Return the wanted source that a node comes from, and its name, None for others."""
    stack = node.meta.get("source_fn_stack")
    if stack is not None:
        name, source = stack[-1]
        return (source, name) if source in wanted else None
    if node.meta.get("torch_fn") is not None:
        name, function = node.meta["torch_fn"]
        source = function.split(".")[1]
        if source in wanted:
            return source, name
    modules = node.meta.get("nn_module_stack")
    if node.op != "call_function" or not modules:
        return None
    name, kind = list(modules.values())[-1]
    for source in wanted:
        if isinstance(source, type):
            if isinstance(kind, type) and issubclass(kind, source):
                return source, name
            if kind == f"{source.__module__}.{source.__qualname__}":
                return source, name
        elif kind == source:
            return source, name
    return None


@compatibility(is_backward_compatible=False)
def get_source_partitions(
    graph: Graph, wanted_sources: list[Any], filter_fn: Callable[[Node], bool] | None = None
) -> dict[Any, list[SourcePartition]]:
    """Return the node groups by source function or module class.

    filter_fn: keep groups whose nodes all pass.
    """
    found: dict[Any, dict[str, list[Node]]] = {}
    for node in graph.nodes:
        of = _find_source(node, wanted_sources)
        if of is not None:
            found.setdefault(of[0], {}).setdefault(of[1], []).append(node)
    return {
        source: [
            _make_source_partition(nodes, source)
            for nodes in groups.values()
            if filter_fn is None or all(map(filter_fn, nodes))
        ]
        for source, groups in found.items()
    }


def _make_source_partition(nodes: list[Node], source: Any) -> SourcePartition:
    inside = set(nodes)
    inputs: dict[Node, None] = {}
    for node in nodes:
        for arg in node.args:
            if isinstance(arg, Node) and arg not in inside and arg.op != "get_attr":
                inputs[arg] = None
    params = [node for node in nodes if node.op == "get_attr"]
    outputs = [node for node in nodes if node.op != "get_attr" and any(user not in inside for user in node.users)]
    return SourcePartition(nodes, source, list(inputs), outputs, params)


@compatibility(is_backward_compatible=False)
def check_subgraphs_connected(subgraph1: SourcePartition, subgraph2: SourcePartition) -> bool:
    """True if a node of the second group uses one of the first."""
    inside = set(subgraph2.nodes)
    return any(user in inside for node in subgraph1.nodes for user in node.users)
