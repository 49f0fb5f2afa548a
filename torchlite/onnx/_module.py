"""The module that a file becomes: a `GraphModule` that pickles as its graph."""

from __future__ import annotations

from typing import Any

from torchlite.fx import Graph, GraphModule, Node
from torchlite.fx.node import map_aggregate
from torchlite.nn import Module

from ._ops.limits import RUN, Limits

_GRAPHS = ("_graph", "_code", "_lineno_map", "_prologue_start")  # of a module, made anew


class _Place:
    """A node in a pickle: which of the graph's it is."""

    def __init__(self, number: int) -> None:
        self.number = number


class LoadedModule(GraphModule):
    """A graph of ONNX's ops.

    Its pickle holds the nodes, for they cannot be had by tracing: the inputs' check refuses a Proxy, and constants of
    the host are calls without inputs.

    A call counts the elements that it makes: `max_elements` is how many a result may have whose size the file says,
    None for a body of control flow, which counts with the call around it.
    """

    max_elements: int | None = None
    scales: bool = True  # whether inputs that are larger let results be larger

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.max_elements is None:
            return super().__call__(*args, **kwargs)
        before = RUN.limits
        RUN.limits = Limits(self.max_elements, (*args, *kwargs.values()) if self.scales else None)
        try:
            return super().__call__(*args, **kwargs)
        finally:
            RUN.limits = before

    def __reduce__(self) -> Any:
        numbers = {node: number for number, node in enumerate(self.graph.nodes)}

        def placed(value: Any) -> Any:
            return _Place(numbers[value]) if isinstance(value, Node) else value

        nodes = [
            (node.op, node.target, map_aggregate(node.args, placed), map_aggregate(node.kwargs, placed), node.name)
            for node in numbers
        ]
        body = {key: value for key, value in self.__dict__.items() if key not in _GRAPHS}
        return _rebuilt, (type(self).__name__, body, nodes)


def _rebuilt(name: str, body: dict[str, Any], nodes: list[tuple]) -> LoadedModule:
    """The module of a pickle."""
    graph = Graph()
    made: list[Node] = []

    def node(value: Any) -> Any:
        return made[value.number] if isinstance(value, _Place) else value

    for op, target, args, kwargs, called in nodes:
        made.append(graph.create_node(op, target, map_aggregate(args, node), map_aggregate(kwargs, node), called))
    root = Module()
    root.__dict__.update(body)
    module = LoadedModule(root, graph, name)
    for key, value in body.items():
        if not hasattr(module, key):
            setattr(module, key, value)
    module.max_elements, module.scales = body.get("max_elements"), body.get("scales", True)
    module.meta.update(body.get("meta", {}))
    return module
