"""Subgraph matcher that also returns matched nodes by names from the pattern."""

from __future__ import annotations

from typing import Any

from ....utils._pytree import tree_flatten, tree_unflatten
from ..._codegen import _PyTreeCodeGen
from ..._compatibility import compatibility
from ...graph import Graph
from ...graph_module import GraphModule
from ...node import Node
from .matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


def _split_to_graph_and_name_node_map(gm: GraphModule) -> tuple[GraphModule, dict[str, Node]]:
    """Return a pattern without the name dictionary at the end of its output, and the dictionary."""
    output = gm.graph.output_node()
    codegen = gm.graph._codegen
    found: Any = output.args[0]
    if isinstance(codegen, _PyTreeCodeGen) and codegen.pytree_info.out_spec is not None:
        found = tree_unflatten(found, codegen.pytree_info.out_spec)
    if not isinstance(found, tuple):
        raise AssertionError("Expecting the pattern graph to return a tuple")
    if len(found) < 2:
        raise AssertionError("Expecting the pattern graph to have at least two outputs")
    *rest, names = found
    if not isinstance(names, dict):
        raise AssertionError("Expecting the input graph to have a dict output as the last element")
    flat, out_spec = tree_flatten(rest)
    output.args = (flat,)
    if isinstance(codegen, _PyTreeCodeGen):
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
    gm.recompile()
    return gm, names


@compatibility(is_backward_compatible=False)
class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """SubgraphMatcher for a pattern that returns a dictionary last. Each match has `name_node_map` with the nodes for
    the dictionary's values.
    """

    def __init__(
        self,
        pattern_gm: GraphModule,
        match_output: bool = False,
        match_placeholder: bool = False,
        remove_overlapping_matches: bool = True,
        ignore_literals: bool = False,
    ) -> None:
        pattern_gm, self.name_node_map = _split_to_graph_and_name_node_map(pattern_gm)
        super().__init__(pattern_gm.graph, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map = {name: match.nodes_map[node] for name, node in self.name_node_map.items()}
        return found
