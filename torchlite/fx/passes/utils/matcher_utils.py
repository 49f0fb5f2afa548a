"""Subgraph matching: finds occurrences of a pattern graph."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ...._library.op_overload import OpOverload
from ...._tensor import Tensor
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import _get_attr
from ...node import Node
from .fuser_utils import validate_partition

__all__ = ["InternalMatch", "SubgraphMatcher"]


@compatibility(is_backward_compatible=False)
@dataclass
class InternalMatch:
    """A match: the graph node or value for each pattern node."""

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Any] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), list(self.placeholder_nodes), list(self.returning_nodes)
        )


@compatibility(is_backward_compatible=False)
class SubgraphMatcher:
    """Find matches of a pattern, from its outputs back to its inputs, which match anything.

    match_output: the pattern's output must be the graph's. match_placeholder: its inputs must be the graph's.
    remove_overlapping_matches: keep the first of overlapping matches. ignore_literals: constants match any others.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.utils.matcher_utils import SubgraphMatcher
    >>> matcher = SubgraphMatcher(torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph)
    >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(torch.relu(x) + 1) + 1).graph
    >>> len(matcher.match(graph))
    2
    """

    def __init__(
        self,
        pattern: Graph,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        self.pattern, self.match_output, self.match_placeholder = pattern, match_output, match_placeholder
        self.remove_overlapping_matches, self.ignore_literals = remove_overlapping_matches, ignore_literals
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        for node in pattern.nodes:
            if node.op != "output" and not node.is_impure() and not node.users:
                raise AssertionError("SubgraphMatcher cannot be initialized with an pattern with dead code")
        output = pattern.output_node()
        self.pattern_placeholder_nodes = [node for node in pattern.nodes if node.op == "placeholder"]
        self.pattern_returning_nodes = output.all_input_nodes
        ends = [node for node in self.pattern_returning_nodes if len(node.users) == 1]
        self.pattern_anchors = [output] if match_output else ends

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """Return the matches whose inner values have no other users.

        node_name_match: nodes with this substring in their name match any pattern node.
        """
        self._loose_name = node_name_match
        candidates = {
            anchor: found
            for anchor in self.pattern_anchors
            if (found := [node for node in graph.nodes if self._nodes_are_equal(anchor, node, node_name_match)])
        }
        places = []
        for nodes_map in self._match_output_anchors(list(candidates.items()), {}):
            match = InternalMatch(self.pattern_anchors, nodes_map)
            match.placeholder_nodes = [nodes_map[node] for node in self.pattern_placeholder_nodes]
            match.returning_nodes = [nodes_map[node] for node in self.pattern_returning_nodes]
            if self._is_contained(nodes_map) and validate_partition(_matched_inner_nodes(nodes_map)):
                places.append(match)
        return self._drop_overlapping_matches(places) if self.remove_overlapping_matches else places

    def _match_output_anchors(
        self, candidates: list[tuple[Node, list[Node]]], found: dict[Node, Any]
    ) -> Iterator[dict]:
        """Return all combinations in which every output anchor matches."""
        if not candidates:
            if found:
                yield found
            return
        (anchor, nodes), *rest = candidates
        for node in nodes:
            nodes_map = dict(found)
            if self._match_nodes(anchor, node, nodes_map):
                yield from self._match_output_anchors(rest, nodes_map)

    def _match_nodes(self, pn: Node, gn: Node, nodes_map: dict[Node, Any]) -> bool:
        """True if a node and its inputs match a pattern node; fills `nodes_map`."""
        if pn in nodes_map:
            return nodes_map[pn] is gn
        if any(gn is other for other in nodes_map.values()):
            return False
        if not self._nodes_are_equal(pn, gn, self._loose_name if pn in self.pattern_anchors else ""):
            return False
        before = dict(nodes_map)
        nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        theirs, ours = self._arguments_to_compare(pn, gn)
        if theirs is not None and self._match_values(theirs, ours, nodes_map):
            return True
        nodes_map.clear()
        nodes_map.update(before)
        return False

    @staticmethod
    def _arguments_to_compare(pn: Node, gn: Node) -> tuple[Any, Any]:
        """Return the arguments to compare, None if they are incompatible."""
        if len(pn.args) == len(gn.args) and list(pn.kwargs) == list(gn.kwargs):
            return [*pn.args, *pn.kwargs.values()], [*gn.args, *gn.kwargs.values()]
        if pn.op != "call_function" or not isinstance(pn.target, OpOverload):
            return None, None
        places = pn.target._schema.arguments

        def arguments_by_schema(node: Node) -> list[Any]:
            return [
                node.kwargs[place.name]
                if place.name in node.kwargs
                else node.args[i]
                if i < len(node.args) and not place.kwarg_only
                else place.default_value
                for i, place in enumerate(places)
            ]

        return arguments_by_schema(pn), arguments_by_schema(gn)

    def _match_values(self, theirs: Any, ours: Any, nodes_map: dict[Node, Any]) -> bool:
        if len(theirs) != len(ours):
            return False
        for pattern, value in zip(theirs, ours, strict=True):
            if isinstance(pattern, Node) and isinstance(value, Node):
                fits = self._match_nodes(pattern, value, nodes_map)
            elif isinstance(pattern, (list, tuple)) and isinstance(value, (list, tuple)):
                fits = self._match_values(pattern, value, nodes_map)
            else:
                fits = self._match_literals(pattern, value, nodes_map) or self.ignore_literals
            if not fits:
                return False
        return True

    @staticmethod
    def _match_literals(pattern: Any, value: Any, nodes_map: dict[Node, Any]) -> bool:
        """True if a constant matches a pattern input or an equal constant."""
        if isinstance(pattern, Node):
            if pattern.op != "placeholder":
                return False
            return nodes_map.setdefault(pattern, value) == value
        return not isinstance(value, Node) and type(value) is type(pattern) and value == pattern

    def _nodes_are_equal(self, pn: Node, gn: Node, node_name_match: str = "") -> bool:
        """True if a node's operation equals a pattern node's."""
        if pn.op == "placeholder" and not self.match_placeholder:
            return True
        if node_name_match and node_name_match in gn.name:
            return True
        if pn.op != gn.op:
            return False
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        return pn.op in ("placeholder", "output") or pn.target == gn.target

    @staticmethod
    def _match_attributes(pn: Node, gn: Node) -> bool:
        for node in (pn, gn):
            if node.graph.owning_module is None:
                raise AssertionError(f"{node}'s graph must have an owning module")
        theirs, ours = (_get_attr(node.graph.owning_module, str(node.target)) for node in (pn, gn))
        if type(theirs) is not type(ours):
            return False
        if not isinstance(theirs, Tensor):
            raise RuntimeError(f"Unsupported type {theirs} when matching attributes")
        return True

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """True if inner values of a match have no users outside."""
        inner = {gn: pn for pn, gn in nodes_map.items() if pn.op != "placeholder"}
        return all(
            user in inner for gn, pn in inner.items() if pn not in self.pattern_returning_nodes for user in gn.users
        )

    @staticmethod
    def _drop_overlapping_matches(places: list[InternalMatch]) -> list[InternalMatch]:
        """Return the matches that share no node with an earlier one."""
        taken: set[Node] = set()
        kept = []
        for match in places:
            nodes = _matched_inner_nodes(match.nodes_map)
            if taken.isdisjoint(nodes):
                taken.update(nodes)
                kept.append(match)
        return kept

    def _remove_overlapping_matches(self, matches: list[InternalMatch]) -> list[InternalMatch]:
        return self._drop_overlapping_matches(matches)


def _matched_inner_nodes(nodes_map: dict[Node, Any]) -> list[Node]:
    return [gn for pn, gn in nodes_map.items() if pn.op not in ("placeholder", "output")]
