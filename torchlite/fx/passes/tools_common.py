"""Helpers of passes: target names, node groups, topological sort."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush
from typing import Any

from ..._tensor import Tensor
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, _get_qualified_name

__all__ = [
    "CALLABLE_NODE_OPS", "FxNetAccFusionsFinder", "get_acc_ops_name", "get_node_target", "is_node_output_tensor",
    "legalize_graph", "stable_topological_sort",
]  # fmt: skip

Tensors = Iterable[Tensor]
TensorOrTensors = Any
NodeList = list[Node]
NodeSet = set[Node]
Names = list[str]
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


@compatibility(is_backward_compatible=False)
def get_acc_ops_name(k: Any) -> str:
    """Return the name of a class or of an op in an ops library."""
    if isinstance(k, str):
        return k
    if "acc_ops" in (k.__module__ or ""):
        return f"acc_ops.{k.__name__}"
    return _get_qualified_name(k) if not isinstance(k, type) else f"{k.__module__ or ''}.{k.__name__}"


@compatibility(is_backward_compatible=False)
def get_node_target(submodules: Mapping[str, Any], node: Node) -> str:
    """Return the name of a node's target: method, function or module class."""
    if node.op not in CALLABLE_NODE_OPS:
        raise AssertionError(f"Expect op types of {', '.join(CALLABLE_NODE_OPS)}, but found {node.op}")
    target: Any = node.target
    if node.op == "call_module":
        module = submodules[target]
        return get_acc_ops_name(getattr(module, "_base_class_origin", type(module)))
    if node.op == "call_method":
        return target
    return get_acc_ops_name(target) if "acc_ops" in (target.__module__ or "") else _get_qualified_name(target)


@compatibility(is_backward_compatible=False)
def is_node_output_tensor(node: Node) -> bool:
    """True if ShapeProp recorded a tensor for a node."""
    kind = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


@compatibility(is_backward_compatible=False)
class FxNetAccFusionsFinder:
    """Find groups of nodes connected by non-tensor values, which must stay together.

    module: after ShapeProp. acc_nodes: nodes to group; groups that contain other nodes are removed from the set. A call
    returns the group of each grouped node.
    """

    def __init__(self, module: GraphModule, acc_nodes: NodeSet) -> None:
        self.module, self.acc_nodes = module, acc_nodes
        self.nodes = list(module.graph.nodes)

    def _collect_fusion_group(self, start: Node) -> NodeSet:
        """Return all nodes connected with a node by non-tensor values, and nodes between them."""
        group = {start}
        pending = [start]
        while pending:
            node = pending.pop()
            near = [arg for arg in node.all_input_nodes if "tensor_meta" not in arg.meta]
            near += list(node.users) if "tensor_meta" not in node.meta else []
            near += self._find_nodes_between(group)
            for other in near:
                if other.op in CALLABLE_NODE_OPS and other not in group:
                    group.add(other)
                    pending.append(other)
        return group

    def _find_nodes_between(self, group: NodeSet) -> list[Node]:
        """Return the nodes on paths between nodes of the group."""
        below: NodeSet = set()
        for node in self.nodes:
            if any(arg in group or arg in below for arg in node.all_input_nodes):
                below.add(node)
        above: NodeSet = set()
        for node in reversed(self.nodes):
            if any(user in group or user in above for user in node.users):
                above.add(node)
        return [node for node in self.nodes if node in below and node in above and node not in group]

    def __call__(self) -> dict[Node, NodeSet]:
        found: dict[Node, NodeSet] = {}
        for node in [node for node in self.nodes if node in self.acc_nodes]:
            if node in found or node.op not in CALLABLE_NODE_OPS or "tensor_meta" in node.meta:
                continue
            if node not in self.acc_nodes:
                continue
            group = self._collect_fusion_group(node)
            if group <= self.acc_nodes:
                found.update(dict.fromkeys(group, group))
            else:
                self.acc_nodes -= group
        return found


def _replace_order(gm: GraphModule, order: list[Node]) -> GraphModule:
    if len(order) < len(gm.graph.nodes):
        left = [node for node in gm.graph.nodes if node not in set(order)]
        raise RuntimeError(f"Input graph has cycles, unable to add {left}")
    graph = Graph()
    env: dict[Node, Node] = {}
    for node in order:
        env[node] = graph.node_copy(node, lambda n: env[n])
    graph._codegen = gm.graph._codegen
    gm.graph = graph
    return gm


@compatibility(is_backward_compatible=False)
def legalize_graph(gm: GraphModule) -> GraphModule:
    """Sort a module's nodes topologically, nodes with fewest pending inputs first. Raise RuntimeError for a cycle."""
    waits = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = deque(node for node in gm.graph.nodes if not waits[node])
    order = []
    while ready:
        node = ready.popleft()
        order.append(node)
        for user in node.users:
            waits[user] -= 1
            if not waits[user]:
                ready.append(user)
    return _replace_order(gm, order)


@compatibility(is_backward_compatible=False)
def stable_topological_sort(gm: GraphModule) -> GraphModule:
    """Sort a module's nodes topologically, keeping the order where possible."""
    place = {node: i for i, node in enumerate(gm.graph.nodes)}
    waits = {node: len(node.all_input_nodes) for node in gm.graph.nodes}
    ready = [(place[node], node) for node in gm.graph.nodes if not waits[node]]
    heapify(ready)
    order = []
    while ready:
        _, node = heappop(ready)
        order.append(node)
        for user in node.users:
            waits[user] -= 1
            if not waits[user]:
                heappush(ready, (place[user], user))
    return _replace_order(gm, order)
