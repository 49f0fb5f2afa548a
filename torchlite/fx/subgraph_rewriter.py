"""`replace_pattern`: replaces matching subgraphs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchlite._settings.module_dir import make_module_dir

from ..nn.modules.module import Module
from ._compatibility import compatibility
from ._symbolic_trace import symbolic_trace
from .graph import Graph
from .graph_module import GraphModule
from .node import Node
from .passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

Filter = Callable[[InternalMatch, Graph, Graph], bool]


@compatibility(is_backward_compatible=True)
class Match(NamedTuple):
    """A match: its anchor node, and the graph node for each pattern node."""

    anchor: Node
    nodes_map: dict[Node, Node]


@compatibility(is_backward_compatible=False)
@dataclass
class ReplacedPatterns:
    """Match with the replacement nodes."""

    anchor: Node
    nodes_map: dict[Node, Node]
    replacements: list[Node]


@compatibility(is_backward_compatible=True)
def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces all matches of a pattern in a module, which is changed and recompiled.

    Inner values of a match must have no other users, and matches must not overlap.

    Args:
        gm: A `GraphModule`.
        pattern: Function or module that is traced.
        replacement: Function or module whose parameters correspond to the pattern's by position.

    Returns:
        List of matches, each with ``anchor`` and ``nodes_map``.

    Example:
        >>> import torchlite as torch
        >>> module = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y))
        >>> found = torch.fx.replace_pattern(module, lambda a, b: torch.relu(a + b), lambda a, b: torch.sigmoid(a * b))
        >>> len(found), module(torch.zeros(1), torch.ones(1))
        (1, tensor([0.5000]))
    """
    found = replace_pattern_with_filters(gm, pattern, replacement)
    return [Match(anchor=one.anchor, nodes_map=one.nodes_map) for one in found]


@compatibility(is_backward_compatible=False)
def replace_pattern_with_filters(
    gm: GraphModule,
    pattern: Any,
    replacement: Any = None,
    match_filters: list[Filter] | None = None,
    ignore_literals: bool = False,
    replacement_callback: Callable[[InternalMatch, Graph, Graph], Graph] | None = None,
    node_name_match: str = "",
) -> list[ReplacedPatterns]:
    """Replace patterns with options; graphs are accepted, too.

    match_filters: predicates of (match, graph, pattern). ignore_literals: constants in the pattern match any.
    replacement_callback: creates the replacement per match, instead of `replacement`. node_name_match: nodes with this
    substring in their name match the pattern's outputs.
    """
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule or a replacement callback")
    graph, sought = gm.graph, _to_graph(pattern)
    matcher = SubgraphMatcher(sought, ignore_literals=ignore_literals)
    matches = [
        match
        for match in matcher.match(graph, node_name_match=node_name_match)
        if all(passes(match, graph, sought) for passes in match_filters or ())
    ]
    common = None if replacement is None else _to_graph(replacement)
    renewed: dict[Node, Any] = {}  # replacements of nodes so far
    done = []
    for match in matches:
        replacement_graph = common if replacement_callback is None else replacement_callback(match, graph, sought)
        assert replacement_graph is not None
        new = _insert_replacement(graph, match, replacement_graph, renewed)
        for node in reversed(sought.nodes):
            if node.op not in ("placeholder", "output"):
                graph.erase_node(match.nodes_map[node])
        done.append(ReplacedPatterns(match.anchors[0], match.nodes_map, new))
    gm.recompile()
    if isinstance(replacement, Module):
        _replace_attributes(gm, replacement)
    return done


def _to_graph(thing: Any) -> Graph:
    if isinstance(thing, Graph):
        return thing
    return thing.graph if isinstance(thing, GraphModule) else symbolic_trace(thing).graph


def _insert_replacement(graph: Graph, match: InternalMatch, made: Graph, renewed: dict[Node, Any]) -> list[Node]:
    """Copy a graph to a match and redirect users of its results; return the new nodes."""
    inputs = [node for node in made.nodes if node.op == "placeholder"]
    if len(match.placeholder_nodes) != len(inputs):
        raise AssertionError(f"Placeholder count mismatch: {len(match.placeholder_nodes)} vs {len(inputs)}")
    for key, value in match.nodes_map.items():
        if isinstance(value, Node) and key.op == "placeholder" and value in renewed:
            match.nodes_map[key] = renewed[value]
    match.placeholder_nodes = [
        renewed.get(value, value) if isinstance(value, Node) else value for value in match.placeholder_nodes
    ]
    env: dict[Node, Any] = dict(zip(inputs, match.placeholder_nodes, strict=True))
    with graph.inserting_before(_insertion_point(graph, match)):
        found = graph.graph_copy(made, env)
    results = found if isinstance(found, (tuple, list)) else (found,)
    if len(match.returning_nodes) != len(results):
        raise AssertionError(f"Returning nodes count mismatch: {len(match.returning_nodes)} vs {len(results)}")
    for old, new in zip(match.returning_nodes, results, strict=True):
        old.replace_all_uses_with(new)
        renewed[old] = new
    given = [value for value in match.placeholder_nodes if isinstance(value, Node)]
    return [node for node in env.values() if isinstance(node, Node) and node not in given]


def _insertion_point(graph: Graph, match: InternalMatch) -> Node:
    """Return the node before which the replacement is inserted: the first user of a result, else the successor of the
    last matched output.
    """
    users = {user for node in match.returning_nodes for user in node.users}
    if users:
        return next(node for node in graph.nodes if node in users)
    last = next(node for node in reversed(graph.nodes) if node in match.returning_nodes)
    return last.next


def _replace_attributes(gm: GraphModule, replacement: Any) -> None:
    """Copy the replacement's attributes to a module and remove unused ones."""
    gm.delete_all_unused_submodules()
    if isinstance(replacement, GraphModule):
        replacement.graph.lint()

    def attribute(module: Any, target: str) -> Any:
        path, _, name = target.rpartition(".")
        try:
            return getattr(module.get_submodule(path), name, None)
        except AttributeError:
            return None

    for node in gm.graph.nodes:
        target = str(node.target)
        if node.op not in ("call_module", "get_attr") or attribute(gm, target) is not None:
            continue
        found = attribute(replacement, target)
        if found is None:
            raise RuntimeError(
                f'Attempted to create a "{node.op}" node during subgraph rewriting with target {target}, but the '
                "referenced attribute does not exist in the replacement GraphModule"
            )
        if isinstance(found, Module):
            gm.add_submodule(target, copy.deepcopy(found))
        else:
            setattr(gm, target, copy.deepcopy(found))
    gm.graph.lint()


__dir__ = make_module_dir(globals())
