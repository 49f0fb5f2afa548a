"""Splits a module into submodules by node tags."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from operator import getitem
from typing import Any

from ...nn.modules.container import ModuleList
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule
from ..node import Node, map_arg
from .utils.lifting import HolderModule, lift_subgraph_as_module

__all__ = ["Component", "getattr_recursive", "setattr_recursive", "split_by_tags"]


@compatibility(is_backward_compatible=False)
def getattr_recursive(obj: Any, name: str) -> Any:
    """Return the attribute of a dotted name, None if there is none."""
    for part in name.split("."):
        if isinstance(obj, ModuleList):
            obj = obj._modules.get(part)
        else:
            obj = getattr(obj, part, None)
        if obj is None:
            return None
    return obj


@compatibility(is_backward_compatible=False)
def setattr_recursive(obj: Any, attr: str, value: Any) -> None:
    """Set the attribute of a dotted name."""
    *path, last = attr.split(".")
    for part in path:
        obj = getattr(obj, part)
    setattr(obj, last, value)


@compatibility(is_backward_compatible=False)
@dataclass
class Component:
    """A submodule under construction: its graph, and the nodes at its boundary."""

    graph: Graph
    order: int
    name: str
    input_placeholders: list[Node] = field(default_factory=list)
    orig_inputs: list[Node] = field(default_factory=list)
    orig_outputs: list[Node] = field(default_factory=list)
    getattr_maps: dict[Node, Node] = field(default_factory=dict)
    constructor_args: list[str] = field(default_factory=list)
    gm: GraphModule | None = None

    def inner(self, node: Node) -> Node:
        """Return the inner node for an outside value."""
        if node.op == "get_attr":
            if node not in self.getattr_maps:
                self.getattr_maps[node] = self.graph.get_attr(str(node.target), type_expr=node.type)
                self.getattr_maps[node].meta = copy.copy(node.meta)
            return self.getattr_maps[node]
        if node not in self.orig_inputs:
            self.orig_inputs.append(node)
            made = self.graph.placeholder(node.name, type_expr=node.type)
            made.meta = copy.copy(node.meta)
            self.input_placeholders.append(made)
        return self.input_placeholders[self.orig_inputs.index(node)]


@compatibility(is_backward_compatible=False)
def split_by_tags(
    gm: GraphModule,
    tags: list[str],
    return_fqn_mapping: bool = False,
    return_tuple: bool = False,
    GraphModuleCls: Any = GraphModule,
) -> Any:
    """Return a module with one submodule per tag, in order; nodes are assigned by their attribute `tag`.

    return_fqn_mapping: also return a mapping of old to new names of modules and attributes. return_tuple: submodules
    with one result return a tuple. GraphModuleCls: class of the result.
    """
    components = {tag: Component(Graph(), place, tag) for place, tag in enumerate(tags)}
    main = Graph()
    main.set_codegen(copy.copy(gm.graph._codegen))
    outer: dict[Node, Any] = {}
    home: dict[Node, Component] = {}
    copies: dict[Node, Node] = {}
    for node in gm.graph.nodes:
        if node.op == "placeholder":
            outer[node] = main.placeholder(node.name, type_expr=node.type)
            outer[node].meta = copy.copy(node.meta)
        elif node.op not in ("get_attr", "output"):
            _copy_node_to_component(node, components, home, copies)
    output = gm.graph.output_node()
    used: dict[Node, None] = {node: None for part in components.values() for node in part.orig_inputs}
    for node in output.all_input_nodes:
        if node.op == "get_attr":
            outer[node] = main.get_attr(str(node.target), type_expr=node.type)
        else:
            used[node] = None
    for node in gm.graph.nodes:
        if node in used and node.op != "placeholder":
            home[node].orig_outputs.append(node)
    names: dict[str, str] = {}
    for part in components.values():
        results = tuple(copies[node] for node in part.orig_outputs)
        single = len(results) == 1 and not return_tuple
        part.graph.output(results[0] if single else results)
        part.gm, found = lift_subgraph_as_module(gm, subgraph=part.graph, comp_name=part.name)
        names.update(found)
        call = main.call_module(part.name, tuple(outer[node] for node in part.orig_inputs))
        for place, node in enumerate(part.orig_outputs):
            outer[node] = call if single else main.call_function(getitem, (call, place))
            outer[node].meta = copy.copy(node.meta)
    main.output(map_arg(output.args[0], lambda n: outer[n])).meta = copy.copy(output.meta)
    root = HolderModule({part.name: part.gm for part in components.values()})
    for node in main.nodes:
        if node.op == "get_attr":
            setattr(root, str(node.target), getattr_recursive(gm, str(node.target)))
    split = GraphModuleCls(root, main)
    return (split, names) if return_fqn_mapping else split


def _copy_node_to_component(
    node: Node, components: dict[str, Component], home: dict[Node, Component], copies: dict[Node, Node]
) -> None:
    """Copy a node to the graph of its tag."""
    if not hasattr(node, "tag"):
        raise AssertionError(f"Node does not have tag: {node.format_node()}")
    part = home[node] = components[node.tag]
    latest = max((home[used].order for used in node.all_input_nodes if used in home), default=0)
    if part.order < latest:
        raise AssertionError(
            f"Component {part.name} order must be >= max of its upstream components, order={part.order} and "
            f"max={latest}"
        )
    copies[node] = part.graph.node_copy(node, lambda used: copies[used] if home.get(used) is part else part.inner(used))
    copies[node].tag = node.tag  # type: ignore[attr-defined]
    home[copies[node]] = part
