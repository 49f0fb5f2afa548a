"""Pairs of nodes of two graphs that compute the same."""

from __future__ import annotations

import enum
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from torchlite.ao.quantization import FakeQuantizeBase, ObserverBase
from torchlite.ao.quantization.utils import getattr_from_fqn
from torchlite.fx import GraphModule, Node

from .mappings import get_base_name_to_sets_of_related_ops, get_unmatchable_types_map
from .ns_types import NSNodeTargetType, NSSubgraph
from .pattern_utils import end_node_matches_reversed_fusion, get_reversed_fusions, get_type_a_related_to_b


class GraphMatchingException(Exception):
    """The graphs of two networks are not alike."""


class SubgraphTypeRelationship(enum.Enum):
    """How what two parts of graphs compute is related."""

    EQUAL = enum.auto()
    EQUAL_BUT_UKNOWN = enum.auto()  # the same op, which no table has
    RELATED_BUT_NOT_EQUAL = enum.auto()
    NOT_RELATED = enum.auto()


_CALLS = ("call_function", "call_method")


def _is_matchable(node: Node, gm: GraphModule, unmatchable: dict[str, set[Any]]) -> bool:
    if node.op == "call_module":
        return not isinstance(getattr_from_fqn(gm, str(node.target)), tuple(unmatchable["mods_unmatchable"]))
    if node.op in _CALLS:
        return node.target not in unmatchable["funs_unmatchable" if node.op == "call_function" else "meths_unmatchable"]
    return False


def _matchable_subgraphs(gm: GraphModule, unmatchable: dict[str, set[Any]]) -> Iterator[NSSubgraph]:
    """Yield the parts of a graph that can have a counterpart, from its output."""
    fusions = get_reversed_fusions()
    seen: set[Node] = set()
    open_nodes = [node for node in gm.graph.nodes if node.op == "output"]
    while open_nodes:
        end = open_nodes.pop()
        if end in seen:
            continue
        start = base = end
        fusion = next((one for one in fusions if end_node_matches_reversed_fusion(end, one[0], gm, seen)), None)
        if fusion is not None:
            parts = [end]
            for _ in fusion[0][1:]:
                seen.add(parts[-1])
                parts.append(parts[-1].args[0])  # type: ignore[arg-type]
            start = parts[-1]
            base = parts[-1 - fusion[1]] if len(parts) > 1 else end
        seen.add(start)
        open_nodes += start.all_input_nodes
        if not _is_matchable(base, gm, unmatchable):
            continue
        if end.op == "call_module" and start is end:
            if isinstance(getattr_from_fqn(gm, str(end.target)), (ObserverBase, FakeQuantizeBase)):
                continue
        yield NSSubgraph(start, end, base)


def _get_node_target_type(node: Node, gm: GraphModule) -> Any:
    """Return the function, method or class that a node calls; None for other nodes."""
    if node.op in _CALLS:
        return node.target
    return type(getattr_from_fqn(gm, str(node.target))) if node.op == "call_module" else None


def _get_subgraph_relationship_type(
    subgraph_a: NSSubgraph, subgraph_b: NSSubgraph, gm_a: GraphModule, gm_b: GraphModule, type_a_related_to_b: set
) -> SubgraphTypeRelationship:
    """Return how two parts of graphs are related."""
    a, b = subgraph_a.base_op_node, subgraph_b.base_op_node
    kinds = {a.op, b.op}
    if len(kinds) == 2 and not kinds <= {*_CALLS} or not kinds <= {*_CALLS, "call_module"}:
        return SubgraphTypeRelationship.NOT_RELATED
    type_a, type_b = _get_node_target_type(a, gm_a), _get_node_target_type(b, gm_b)
    same = type_a == type_b
    if (type_a, type_b) not in type_a_related_to_b:
        return SubgraphTypeRelationship.EQUAL_BUT_UKNOWN if same else SubgraphTypeRelationship.NOT_RELATED
    if same and a.op in _CALLS:
        same = (a is subgraph_a.start_node) == (b is subgraph_b.start_node)
    return SubgraphTypeRelationship.EQUAL if same else SubgraphTypeRelationship.RELATED_BUT_NOT_EQUAL


def _get_name_for_subgraph(
    subgraph_a: NSSubgraph, gm_a: GraphModule, base_name_to_sets_of_related_ops: dict[str, set[Any]],
    existing_names: set[str],
) -> str:  # fmt: skip
    """Return a new name: that of the set of related ops, and a number."""
    kind, base = _get_node_target_type(subgraph_a.base_op_node, gm_a), None
    for name, related in base_name_to_sets_of_related_ops.items():
        if kind in related:
            base = name
    number = 0
    while f"base_op_{base}_{number}" in existing_names:
        number += 1
    existing_names.add(f"base_op_{base}_{number}")
    return f"base_op_{base}_{number}"


def get_matching_subgraph_pairs(
    gm_a: GraphModule, gm_b: GraphModule,
    base_name_to_sets_of_related_ops: dict[str, set[NSNodeTargetType]] | None = None,
    unmatchable_types_map: dict[str, set[NSNodeTargetType]] | None = None,
) -> dict[str, tuple[NSSubgraph, NSSubgraph]]:  # fmt: skip
    """The pairs of parts of two graphs that compute the same, in the order of the graphs.

    Args:
        gm_a: The first network.
        gm_b: The second one.
        base_name_to_sets_of_related_ops: The sets of ops that compute the same. Default: those of `mappings`.
        unmatchable_types_map: Ops without a counterpart. Default: those of `mappings`.

    Returns:
        The pairs by names.

    Raises:
        GraphMatchingException: The graphs have parts of which only one has a counterpart.

    Example:
        >>> from torchlite.ao.ns.fx.graph_matcher import get_matching_subgraph_pairs
        >>> model = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(1, 1), torch.nn.ReLU()))
        >>> [pair[0].end_node for pair in get_matching_subgraph_pairs(model, model).values()]
        [_1]
    """
    unmatchable = get_unmatchable_types_map() if unmatchable_types_map is None else unmatchable_types_map
    related = base_name_to_sets_of_related_ops
    if related is None:
        related = get_base_name_to_sets_of_related_ops()
    pairs = get_type_a_related_to_b(related)
    parts_a, parts_b = _matchable_subgraphs(gm_a, unmatchable), _matchable_subgraphs(gm_b, unmatchable)
    found: dict[str, tuple[NSSubgraph, NSSubgraph]] = {}
    names_a: set[str] = set()
    while True:
        a, b = next(parts_a, None), next(parts_b, None)
        if a is None and b is None:
            return OrderedDict(reversed(found.items()))
        shown_a = f"({a}, {_get_node_target_type(a.start_node, gm_a) if a else None})"
        shown_b = f"({b}, {_get_node_target_type(b.start_node, gm_b) if b else None})"
        if a is None or b is None:
            raise GraphMatchingException(
                f"\nAttempting to match\n{shown_a} and\n{shown_b},\none of which is empty. Please ensure that the two "
                "models you pass in have the same number\nof subgraphs."
            )
        relation = _get_subgraph_relationship_type(a, b, gm_a, gm_b, pairs)
        if relation is SubgraphTypeRelationship.NOT_RELATED:
            raise GraphMatchingException(
                f"\nThe subgraphs\n{shown_a} and\n{shown_b}\nare not related. Please ensure that the two models you "
                "pass in have the same number\nof subgraphs, and each pair of subgraphs is related to each other."
            )
        if relation is not SubgraphTypeRelationship.EQUAL_BUT_UKNOWN:
            found[_get_name_for_subgraph(a, gm_a, related, names_a)] = a, b
