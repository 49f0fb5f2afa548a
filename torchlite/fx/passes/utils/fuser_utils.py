"""Fuses node groups into submodules."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from heapq import heappop, heappush
from typing import Any

from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from ...proxy import Proxy
from ..tools_common import NodeList, stable_topological_sort
from .lifting import lift_subgraph_as_module

__all__ = [
    "erase_nodes", "fuse_as_graphmodule", "fuse_by_partitions", "insert_subgm", "topo_sort", "validate_partition",
]  # fmt: skip


@compatibility(is_backward_compatible=False)
def topo_sort(nodes: NodeList) -> NodeList:
    """Return the nodes in topological order, otherwise stable."""
    place = {node: i for i, node in enumerate(nodes)}
    waits = {node: sum(used in place for used in node.all_input_nodes) for node in nodes}
    ready: list[tuple[int, Node]] = []
    for node in nodes:
        if not waits[node]:
            heappush(ready, (place[node], node))
    ordered: NodeList = []
    while ready:
        _, node = heappop(ready)
        ordered.append(node)
        for user in node.users:
            if user in waits:
                waits[user] -= 1
                if not waits[user]:
                    heappush(ready, (place[user], user))
    if len(ordered) != len(nodes):
        raise AssertionError("topological sorted nodes doesn't have same length as input nodes")
    return ordered


@compatibility(is_backward_compatible=False)
def validate_partition(partition: Iterable[Node]) -> bool:
    """True if nodes can be fused: no path leaves and re-enters the group."""
    inside = set(partition)
    pending = [user for node in inside for user in node.users if user not in inside]
    seen: set[Node] = set()
    while pending:
        node = pending.pop()
        if node in inside:
            return False
        if node not in seen:
            seen.add(node)
            pending.extend(node.users)
    return True


@compatibility(is_backward_compatible=False)
def fuse_as_graphmodule(
    gm: GraphModule,
    nodes: NodeList,
    module_name: str,
    partition_lookup_table: Any = None,
    *,
    always_return_tuple: bool = False,
) -> tuple[GraphModule, tuple[Node, ...], tuple[Node, ...]]:
    """Return a module that computes these sorted nodes, its input nodes and its output nodes in `gm`."""
    for node in nodes:
        if node.graph.owning_module is not gm:
            raise AssertionError(f"{node} doesn't belong to passed in graph module {gm._get_name()}")
        if node._erased:
            raise AssertionError(f"{node} has been removed from owning graph")
    if not validate_partition(nodes):
        raise AssertionError("Invalid partition, found dependency cycles")
    inside = set(nodes if partition_lookup_table is None else partition_lookup_table)
    graph = Graph()
    inputs: dict[Node, Node] = {}
    copies: dict[Node, Node] = {}

    def inner(node: Node) -> Node:
        if node in inside:
            return copies[node]
        if node not in inputs:
            inputs[node] = graph.placeholder(node.name, type_expr=node.type)
            inputs[node].meta = copy.copy(node.meta)
        return inputs[node]

    for node in nodes:
        copies[node] = graph.node_copy(node, inner)
    outputs = [node for node in nodes if any(user not in inside for user in node.users)]
    found = tuple(copies[node] for node in outputs)
    graph.output(found[0] if len(found) == 1 and not always_return_tuple else found)
    graph.lint()
    fused, _ = lift_subgraph_as_module(gm, graph, comp_name="", class_name=module_name)
    return fused, tuple(inputs), tuple(outputs)


@compatibility(is_backward_compatible=False)
def insert_subgm(
    gm: GraphModule,
    sub_gm: GraphModule,
    orig_inputs: tuple[Node, ...],
    orig_outputs: tuple[Node, ...],
    insertion_point: Node | None = None,
) -> GraphModule:
    """Insert a call of a module with `orig_inputs`; its results replace `orig_outputs`."""
    name = type(sub_gm).__name__
    gm.add_submodule(name, sub_gm)
    if insertion_point is None:
        insertion_point = next((node for node in reversed(gm.graph.nodes) if node in orig_outputs), None)
    if insertion_point is None:
        raise AssertionError(
            "Cannot determine insertion point: no insertion_point provided and orig_outputs is empty. Pass the last "
            "partition node as insertion_point."
        )
    with gm.graph.inserting_after(insertion_point):
        call = gm.graph.call_module(name, args=orig_inputs)
    if len(orig_outputs) == 1 and not isinstance(sub_gm.graph.output_node().args[0], tuple):
        orig_outputs[0].replace_all_uses_with(call, propagate_meta=True)
    elif orig_outputs:
        with gm.graph.inserting_before(call.next):
            for i, node in enumerate(orig_outputs):
                part: Any = Proxy(call)[i]  # type: ignore[index]
                node.replace_all_uses_with(part.node, propagate_meta=True)
        call.meta["val"] = tuple(node.meta.get("val") for node in orig_outputs)
    return gm


@compatibility(is_backward_compatible=False)
def erase_nodes(gm: GraphModule, nodes: NodeList) -> None:
    """Erase nodes, last first."""
    for node in reversed(nodes):
        gm.graph.erase_node(node)


@compatibility(is_backward_compatible=False)
def fuse_by_partitions(
    gm: GraphModule, partitions: list[Any], prefix: str = "fused_", always_return_tuple: bool = False
) -> GraphModule:
    """Fuse each group of nodes into a submodule."""
    for number, partition in enumerate(partitions):
        nodes = topo_sort(list(partition))
        made, inputs, outputs = fuse_as_graphmodule(
            gm, nodes, f"{prefix}{number}", partition, always_return_tuple=always_return_tuple
        )
        insert_subgm(gm, made, inputs, outputs, nodes[-1])
        erase_nodes(gm, nodes)
    stable_topological_sort(gm)
    gm.graph.lint()
    return gm
