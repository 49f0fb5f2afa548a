"""Capability-based partitioner: groups nodes that a backend supports."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import getitem
from typing import Any

from ...graph_module import GraphModule
from ...node import Node, _get_qualified_name
from ..operator_support import OperatorSupportBase
from ..utils.fuser_utils import fuse_by_partitions

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """A group of nodes."""

    def __init__(
        self, id: int | None = None, nodes: Iterable[Node] | None = None, node_orders: Iterable[int] | None = None
    ) -> None:
        self.id = id
        found = list(nodes or ())
        orders: list[Any] = [None] * len(found) if node_orders is None else list(node_orders)
        self.nodes: dict[Node, int | None] = dict(zip(found, orders, strict=True))

    def __repr__(self) -> str:
        return str(self.nodes)

    def add_node(self, node: Node, node_order: int | None = None) -> None:
        """Add a node."""
        self.nodes[node] = node_order

    def remove_node(self, node: Node) -> None:
        """Remove a node."""
        del self.nodes[node]

    def size(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)


def _is_getitem(node: Node) -> bool:
    return node.op == "call_function" and node.target is getitem


class CapabilityBasedPartitioner:
    """Partition supported nodes into maximal groups without cyclic dependencies.

    allows_single_node_partition: allow groups of one node. non_compute_ops: function names that form no group alone.
    allowed_single_node_partition_ops: function names that may form a group alone anyway.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False,
        non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None,
        skip_horizontal_fusion: bool = False,
    ) -> None:
        self.graph_module, self.operator_support = graph_module, operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = list(non_compute_ops or ())
        self.allowed_single_node_partition_ops = list(allowed_single_node_partition_ops or ())
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def _is_node_supported(self, node: Node) -> bool:
        return self.operator_support.is_node_supported(dict(self.graph_module.named_modules()), node)

    def propose_partitions(self) -> list[Partition]:
        """Return the groups, with nodes in graph order."""
        nodes = list(self.graph_module.graph.nodes)
        place = {node: i for i, node in enumerate(nodes)}
        below: dict[Node, set[Node]] = {}  # dependents of a node
        for node in reversed(nodes):
            below[node] = set(node.users).union(*(below[user] for user in node.users))
        groups: dict[Node, list[Node]] = {}
        supported = {
            node for node in nodes if node.op not in ("placeholder", "output") and self._is_node_supported(node)
        }
        for node in reversed(nodes):
            if node not in supported:
                continue
            groups[node] = [node]
            near = {id(groups[user]): groups[user] for user in node.users if user in groups}
            others = {} if self.skip_horizontal_fusion else {id(group): group for group in groups.values()}
            for group in {**near, **others}.values():
                if group is not groups[node] and self._can_join(groups[node], group, below):
                    joined = groups[node] + group
                    groups.update(dict.fromkeys(joined, joined))
        found = {id(group): sorted(group, key=place.__getitem__) for group in groups.values()}
        ordered = sorted(found.values(), key=lambda group: place[group[-1]], reverse=True)  # PyTorch's numbering
        kept = [group for group in map(self._with_getitems, ordered) if self._counts(group)]
        return [Partition(number, group) for number, group in enumerate(kept)]

    @staticmethod
    def _can_join(one: list[Node], other: list[Node], below: dict[Node, set[Node]]) -> bool:
        """True if the union of two groups has no cycle through outside nodes."""
        inside = set(one) | set(other)
        outer = set().union(*(below[node] for node in inside)) - inside
        return all(below[node].isdisjoint(inside) for node in outer)

    @staticmethod
    def _with_getitems(group: list[Node]) -> list[Node]:
        """Return the group with the getitem nodes of its results, without those of other groups' results."""
        inside = set(group)
        group = [node for node in group if not _is_getitem(node) or node.args[0] in inside]
        for node in list(group):
            for user in node.users:
                if _is_getitem(user) and user not in inside:
                    inside.add(user)
                    group.append(user)
        return group

    def _counts(self, group: list[Node]) -> bool:
        names = [_get_qualified_name(node.target) for node in group if callable(node.target)]
        computes = [name for name in names if name not in self.non_compute_ops and name != "_operator.getitem"]
        computes += [str(node.target) for node in group if node.op in ("call_module", "call_method")]
        if self.allows_single_node_partition:
            return bool(group)
        return len(computes) > 1 or any(name in self.allowed_single_node_partition_ops for name in names)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Replace each group by a submodule."""
        return fuse_by_partitions(self.graph_module, [partition.nodes for partition in partitions], prefix=prefix)

    def remove_bookend_non_compute_ops(self, partitions: list[Partition]) -> None:
        """Remove non-compute nodes from the beginning and end of the groups."""
        for partition in partitions:
            inside = partition.nodes
            for ends in (lambda node: node.all_input_nodes, lambda node: list(node.users)):
                changed = True
                while changed:
                    changed = False
                    for node in list(inside):
                        name = _get_qualified_name(node.target) if callable(node.target) else ""
                        if name in self.non_compute_ops and not any(near in inside for near in ends(node)):
                            partition.remove_node(node)
                            changed = True

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """Run `propose_partitions` and `fuse_partitions`."""
        return self.fuse_partitions(self.propose_partitions(), prefix=prefix)
