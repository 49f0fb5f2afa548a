"""Splits a module into submodules by a callback."""

from __future__ import annotations

from collections.abc import Callable
from operator import getitem
from typing import Any

from ...nn.modules.module import Module
from .._compatibility import compatibility
from ..graph import Graph
from ..graph_module import GraphModule, _get_attr
from ..node import Node, map_arg

__all__ = ["Partition", "split_module"]

_get_attr_from_qualname = _get_attr


@compatibility(is_backward_compatible=True)
class Partition:
    """A submodule under construction."""

    def __init__(self, name: str) -> None:
        self.name, self.submod_name = name, f"submod_{name}"
        self.node_names: list[str] = []
        self.inputs: dict[str, None] = {}
        self.outputs: dict[str, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.graph = Graph()
        self.environment: dict[Node, Node] = {}
        self.targets: dict[str, Any] = {}

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {self.inputs},\n outputs: {self.outputs},\n "
            f"partitions depended on: {self.dependencies},\n partition dependents: {self.dependents}"
        )


class _Splitter:
    """Splitter of one module."""

    def __init__(self, m: GraphModule, split_callback: Callable[[Node], Any], affix: str | None) -> None:
        self.module = m
        self.nodes = {node.name: node for node in m.graph.nodes}
        self.partitions: dict[str, Partition] = {}
        self.of: dict[Node, str] = {}
        for node in m.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            name = str(split_callback(node)) if affix is None else f"{affix}_{split_callback(node)}"
            self.of[node] = node._fx_partition = name  # type: ignore[attr-defined]
            self.partitions.setdefault(name, Partition(name)).node_names.append(node.name)
        for node in m.graph.nodes:
            if node.op not in ("placeholder", "get_attr"):
                for used in node.all_input_nodes:
                    self._record_crossing_value(used, node)

    def _record_crossing_value(self, made: Node, used: Node) -> None:
        """Record a value that crosses from its producer's partition to a user."""
        source, goal = self.of.get(made), self.of.get(used)
        if source == goal:
            return
        if source is not None:
            self.partitions[source].outputs.setdefault(made.name)
        if goal is not None:
            self.partitions[goal].inputs.setdefault(made.name)
        if source is not None and goal is not None:
            self.partitions[source].dependents.setdefault(goal)
            self.partitions[goal].dependencies.setdefault(source)

    def order(self) -> list[str]:
        """Return the partitions in topological order. Raise RuntimeError for a cycle."""
        waits = {name: len(partition.dependencies) for name, partition in self.partitions.items()}
        ready = [name for name, count in waits.items() if not count]
        found = []
        while ready:
            name = ready.pop()
            found.append(name)
            for dependent in self.partitions[name].dependents:
                waits[dependent] -= 1
                if not waits[dependent]:
                    ready.append(dependent)
        if len(found) != len(self.partitions):
            raise RuntimeError("cycle exists between partitions!")
        return found

    def take_inputs(self, partition: Partition, keep_names: bool) -> None:
        """Create the partition's placeholders; submodules read as attributes are copied instead."""

        def is_module(name: str) -> bool:
            node = self.nodes[name]
            return node.op == "get_attr" and isinstance(_get_attr(self.module, str(node.target)), Module)

        given: dict[str, None] = {}
        for name in sorted(partition.inputs, key=is_module):
            node = self.nodes[name]
            if is_module(name):
                new_node = partition.graph.get_attr(str(node.target))
                partition.targets[str(node.target)] = _get_attr(self.module, str(node.target))
            else:
                new_node = partition.graph.placeholder(name if keep_names else f"arg_{len(given)}", type_expr=node.type)
                given[name] = None
            new_node.meta = dict(node.meta)
            partition.environment[node] = new_node
        partition.inputs = given

    def copy_nodes(self, keep_names: bool, qualname_map: dict[str, str] | None) -> None:
        """Copy the nodes to their partition's graph."""
        for node, name in self.of.items():
            partition = self.partitions[name]
            env = partition.environment
            target: Any = node.target
            if node.op == "call_module":
                target = str(node.target).replace(".", "_")
                partition.targets[target] = _get_attr(self.module, str(node.target))
                if qualname_map is not None:
                    qualname_map[f"{partition.submod_name}.{target}"] = str(node.target)
            new_node = partition.graph.create_node(
                node.op,
                target,
                map_arg(node.args, lambda n, env=env: env[n]),
                map_arg(node.kwargs, lambda n, env=env: env[n]),
                name=node.name if keep_names else None,
                type_expr=node.type,
            )
            new_node.meta = dict(node.meta)
            env[node] = new_node


class _RootModule:
    """Outer module: inputs, attributes and calls of partitions."""

    def __init__(self, splitter: _Splitter, keep_names: bool) -> None:
        self.splitter, self.keep_names = splitter, keep_names
        self.graph = Graph()
        self.env: dict[str, Node] = {}
        self.attributes: dict[str, Any] = {}

    def outer(self, node: Node) -> None:
        """Copy an input or attribute node once."""
        if node.name in self.env:
            return
        if node.op == "placeholder":
            name = node.name if self.keep_names else str(node.target)
            default = node.args[0] if node.args else ...
            made = self.graph.placeholder(name, type_expr=node.type, default_value=default)
        else:
            made = self.graph.get_attr(str(node.target))
            self.attributes[str(node.target)] = _get_attr(self.splitter.module, str(node.target))
        made.meta = dict(node.meta)
        self.env[node.name] = made

    def call(self, partition: Partition, tuple_return: bool) -> None:
        """Add a partition's call; return its results by name."""
        for name in partition.inputs:
            if self.splitter.nodes[name].op in ("placeholder", "get_attr"):
                self.outer(self.splitter.nodes[name])
        results = tuple(partition.environment[self.splitter.nodes[name]] for name in partition.outputs)
        single = len(results) == 1 and not tuple_return
        partition.graph.output(results[0] if single else results)
        self.attributes[partition.submod_name] = GraphModule(partition.targets, partition.graph)
        call = self.graph.call_module(partition.submod_name, tuple(self.env[name] for name in partition.inputs))
        for place, name in enumerate(partition.outputs):
            part: Any = call
            if not single:
                part = self.graph.call_function(getitem, (call, place))
                part.meta = dict(self.splitter.nodes[name].meta)
            self.env[name] = part
        if single:
            call.meta = dict(self.splitter.nodes[next(iter(partition.outputs))].meta)


@compatibility(is_backward_compatible=True)
def split_module(
    m: GraphModule,
    root_m: Any,
    split_callback: Callable[[Node], Any],
    qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False,
    keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True,
    *,
    partition_affix: str | None = None,
    tuple_return: bool = False,
) -> GraphModule:
    """Return a module that calls submodules `submod_0`, `submod_1`, ..., each with a part of the graph.

    split_callback: returns a node's partition. qualname_map: filled with old names by new names of modules.
    keep_original_order: call partitions in the order of their first nodes. keep_original_node_name,
    keep_original_input_name: keep names in partitions. partition_affix: prefix `submod_<affix>_`. tuple_return: return
    single results as tuples. Raise RuntimeError for cyclic partitions.

    `root_m` has no effect: PyTorch ignores it too.

    >>> import torchlite as torch
    >>> from torchlite.fx.passes.split_module import split_module
    >>> module = torch.fx.symbolic_trace(lambda x: torch.relu(x + 1) * 2)
    >>> split = split_module(module, None, lambda node: 0 if node.name in ("add", "relu") else 1)
    >>> print(split.code.strip())
    def forward(self, x):
        submod_0 = self.submod_0(x);  x = None
        submod_1 = self.submod_1(submod_0);  submod_0 = None
        return submod_1
    """
    splitter = _Splitter(m, split_callback, partition_affix)
    ordered = splitter.order()
    for name in ordered:
        splitter.take_inputs(splitter.partitions[name], keep_original_input_name)
    splitter.copy_nodes(bool(keep_original_node_name), qualname_map)
    base = _RootModule(splitter, bool(keep_original_node_name))
    for node in m.graph.nodes:
        if node.op == "placeholder" or node.op == "get_attr" and not keep_original_order:
            base.outer(node)
    for name in splitter.partitions if keep_original_order else ordered:
        base.call(splitter.partitions[name], tuple_return)
    for node in m.graph.nodes:
        if node.op == "output":
            for used in node.all_input_nodes:
                if used.op == "get_attr":
                    base.outer(used)
            base.graph.output(map_arg(node.args[0], lambda n: base.env[n.name])).meta = dict(node.meta)
    split = GraphModule(base.attributes, base.graph)
    split.meta = dict(m.meta)
    return split
