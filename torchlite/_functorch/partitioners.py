"""Partitions a joint forward-backward graph into a forward and a backward module."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

from ..fx import Graph, GraphModule, Node

__all__ = ["default_partition"]


def default_partition(
    joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int, **others: Any
) -> tuple[GraphModule, GraphModule]:
    """Return a forward module with the first outputs and the saved values, and a backward module of saved values and
    tangents. Nothing is recomputed. The joint module's inputs are named `primals_1`, ... and `tangents_1`, ...
    """
    graph = joint_module.graph
    (output,) = [node for node in graph.nodes if node.op == "output"]
    results = list(output.args[0])
    behind, inputs = set(), [node for node in graph.nodes if node.op == "placeholder"]
    tangents = [node for node in inputs if str(node.target).startswith("tangents")]
    for node in graph.nodes:
        if node in tangents or any(used in behind for used in node.all_input_nodes):
            behind.add(node)
    first = [node for node in graph.nodes if node not in behind and node.op not in ("placeholder", "output")]
    writes = [node for node in first if node.is_impure()]
    written = {node.args[0] for node in writes if node.args}
    # A node that reads a value before a write belongs to the forward, too.
    writes += [node for node in first if not written.isdisjoint(node.all_input_nodes)]
    ahead = _find_required_nodes([*writes, *(r for r in results[:num_fwd_outputs] if isinstance(r, Node))])
    ahead |= {node for node in graph.nodes if node.target is operator.getitem and node.args[0] in ahead}
    later = _find_required_nodes([r for r in results[num_fwd_outputs:] if isinstance(r, Node)], stop=ahead) - ahead
    primals = [node for node in inputs if node not in tangents]
    saved = [
        node
        for node in graph.nodes
        if node.op not in ("get_attr", "output") and (node in ahead or node in primals)
        if any(user in later for user in node.users) or node in results[num_fwd_outputs:]
    ]
    forward = _extract_graph(joint_module, primals, ahead, [*results[:num_fwd_outputs], *saved])
    return forward, _extract_graph(joint_module, [*saved, *tangents], later, results[num_fwd_outputs:])


def _find_required_nodes(nodes: Iterable[Node], stop: Any = frozenset()) -> set[Node]:
    """Return nodes and their transitive inputs, up to the nodes in `stop`."""
    found: set[Node] = set()
    pending = list(nodes)
    while pending:
        node = pending.pop()
        if node not in found and node not in stop:
            found.add(node)
            pending += node.all_input_nodes
    return found


def _extract_graph(joint_module: GraphModule, inputs: list[Node], nodes: set[Node], results: list) -> GraphModule:
    graph, found = Graph(), {}
    for node in inputs:
        found[node] = graph.placeholder(node.name)
        found[node].meta = dict(node.meta)
    for node in joint_module.graph.nodes:
        constant = node.op == "get_attr" and any(user in nodes for user in node.users)
        if node not in found and node.op not in ("placeholder", "output") and (node in nodes or constant):
            found[node] = graph.node_copy(node, found.__getitem__)
    graph.output(tuple(found[r] if isinstance(r, Node) else r for r in results))
    return GraphModule(joint_module, graph)
